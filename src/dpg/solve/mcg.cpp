#include "dpg/solve/mcg.h"

#include <torch/torch.h>

#include <cmath>

#include "dpg/core/error.h"
#include "dpg/sample/reverse_step.h"
#include "dpg/solve/damped_inverse.h"
#include "dpg/solve/dps.h"
#include "dpg/solve/measured_guide.h"
#include "dpg/solve/method_entry.h"
#include "dpg/tensor/convert.h"

namespace dpg {

template <class Visitor>
void fields(Visitor& visit, McgOptions& o) {
  visit("steps", o.steps);
  visit("spacing", o.spacing);
  visit("variance", o.variance);
  visit("alpha", o.alpha);
  visit("damping", o.damping);
}

namespace {

constexpr std::uint32_t kProjectionNoise = 1;  // beside the sampler's own

// (I - A^+ A) x + A^+ y_t, the paper's A x + b, for a measurement noised as x itself is:
// y_t = sqrt(abar) y + sqrt(1 - abar) A n. An undefined n is none.
Tensor onto_measurement(const LinearOperator& A, double damping, const Tensor& x, const Tensor& y,
                        double abar, const Tensor& n) {
  Tensor y_t = std::sqrt(abar) * y;
  if (n.defined()) y_t = y_t + std::sqrt(1 - abar) * A.apply(n);
  return x + damped_inverse(A, y_t - A.apply(x), damping);
}

}  // namespace

void validate(const McgOptions& o) {
  check(o.steps >= 1, "steps = ", o.steps, " must be at least 1");
  check(o.alpha >= 0, "alpha = ", o.alpha, " must not be negative");
  check(o.damping >= 0, "damping = ", o.damping, " must not be negative");
}

Mcg::Mcg(McgOptions options) : options_(std::move(options)) {
  validate(options_);
}

void Mcg::check_problem(const Measurement& m) const {
  need_linear(kName, m);
}

Result Mcg::solve(const Measurement& measurement, const Prior& prior, const Rng& rng,
                  std::span<const std::uint32_t> images, const Observer& observer) const {
  check_problem(measurement);
  check_sizes(measurement, prior, images);
  const Measurement m = to_device(measurement, prior.device());
  const LinearOperator& A = need_linear(kName, m);
  const ImageShape shape = A.input_shape();
  const Schedule schedule = spaced_schedule(prior.schedule(), options_.spacing, options_.steps);
  const auto noise_at = [&](std::uint32_t step, std::uint32_t use) {
    return normal_noise(rng, images, step, use, {shape.channels, shape.height, shape.width}, prior.device());
  };

  Result result;
  Tensor x = noise_at(kBeforeFirstStep, kSamplerNoise);
  for (int i = schedule.steps() - 1; i >= 0; --i) {
    const auto index = static_cast<std::uint32_t>(i);
    const Denoised denoised = prior.denoise(x, schedule.timestep(i), Track::gradient);
    const Tensor e = m.y - A.apply(denoised.x0);
    const Tensor gradient = residual_gradient(A, denoised, e, torch::ones({}));

    const Tensor noise = i > 0 ? noise_at(index, kSamplerNoise) : Tensor();
    const auto variance = choose_variance(options_.variance, denoised.variance_fraction.defined());
    x = ddpm_step(schedule, i, x, denoised, variance, noise) - options_.alpha * gradient;
    // x now is as noisy as step i-1; at the end that is not at all, and A x = y.
    x = onto_measurement(A, options_.damping, x, m.y, schedule.alpha_bar_prev()[index],
                         i > 0 ? noise_at(index, kProjectionNoise) : Tensor());

    ++result.cost.network_calls, ++result.cost.reverse_passes;
    result.cost.operator_calls += (i > 0 ? 5 : 4) + (options_.damping > 0 ? 1 : 0);
    result.history.t.push_back(schedule.timestep(i));
    result.history.residual.push_back(e.flatten(1).norm(2, {1}));
    const StepRecord record{schedule.steps() - i, schedule.steps(), schedule.timestep(i), denoised.x0,
                            result.history.residual.back()};
    if (observer && observer(record) == Next::stop) {
      result.image = denoised.x0.clamp(-1, 1);
      result.stopped = true;
      return result;
    }
  }
  result.image = x.clamp(-1, 1);
  return result;
}

MethodEntry mcg_entry() {
  return method_entry<Mcg, McgOptions>(
      {"", "manifold constrained gradient: a gradient step, then a projection onto the measurement",
       "Chung et al., Improving diffusion models for inverse problems using manifold constraints, NeurIPS "
       "2022",
       "linear"});
}

}  // namespace dpg
