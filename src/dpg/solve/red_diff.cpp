#include "dpg/solve/red_diff.h"

#include <torch/torch.h>

#include <cmath>

#include "dpg/core/error.h"
#include "dpg/solve/method_entry.h"

namespace dpg {

template <class Visitor>
void fields(Visitor& visit, RedDiffOptions& o) {
  visit("steps", o.steps);
  visit("spacing", o.spacing);
  visit("lr", o.lr);
  visit("lambda", o.lambda);
}

void validate(const RedDiffOptions& o) {
  check(o.steps >= 1, "steps = ", o.steps, " must be at least 1");
  check(o.lr > 0, "lr = ", o.lr, " must be above 0");
  check(o.lambda >= 0, "lambda = ", o.lambda, " must not be negative");
}

namespace {

// A^+ y where A is linear; otherwise y itself where it is a picture like x, or mid-grey. Within the range of
// pictures: a pseudo-inverse may blow noise up beyond what Adam's steps could ever undo.
Tensor first_guess(const Measurement& m) {
  if (const LinearOperator* A = as_linear(*m.A)) return A->pseudo_inverse(m.y).clamp(-1, 1);
  const ImageShape shape = m.A->input_shape();
  if (m.y.sizes().slice(1) == torch::IntArrayRef({shape.channels, shape.height, shape.width}))
    return m.y.clamp(-1, 1);
  return torch::zeros({m.y.size(0), shape.channels, shape.height, shape.width}, m.y.options());
}

}  // namespace

Tensor Adam::step(const Tensor& gradient) {
  if (!mean_.defined()) mean_ = torch::zeros_like(gradient), square_ = torch::zeros_like(gradient);
  decay1_ *= kBeta1, decay2_ *= kBeta2;
  mean_ = kBeta1 * mean_ + (1 - kBeta1) * gradient;
  square_ = kBeta2 * square_ + (1 - kBeta2) * gradient.square();
  return -lr_ * (mean_ / (1 - decay1_)) / ((square_ / (1 - decay2_)).sqrt() + kEpsilon);
}

RedDiff::RedDiff(RedDiffOptions options) : options_(std::move(options)) {
  validate(options_);
}

void RedDiff::check_problem(const Measurement& m) const {
  check(as_differentiable(*m.A), "red-diff needs the operator's derivative, and \"", m.A->spec(), "\" is a ",
        kind_name(*m.A), "; ", method_that_serves(*m.A));
}

Result RedDiff::solve(const Measurement& measurement, const Prior& prior, const Rng& rng,
                      std::span<const std::uint32_t> images, const Observer& observer) const {
  check_problem(measurement);
  const Schedule schedule = spaced_schedule(prior.schedule(), options_.spacing, options_.steps);
  OwnLoop run(measurement, prior, rng, images, schedule.steps(), observer);
  const DifferentiableOperator& A = *as_differentiable(*run.m.A);
  // Both terms of the loss are means, over the measurements and over the picture's values.
  const auto m = static_cast<double>(A.measurements()), d = static_cast<double>(A.input_shape().elements());

  Tensor mu = first_guess(run.m);
  Adam adam(options_.lr);
  for (int i = schedule.steps() - 1; i >= 0; --i) {
    const double abar = schedule.alpha_bar()[static_cast<std::size_t>(i)];
    const double weight = options_.lambda * noise_to_signal(abar);
    const Tensor noise = run.noise(static_cast<std::uint32_t>(i));
    const Tensor x_t = std::sqrt(abar) * mu + std::sqrt(1 - abar) * noise;
    const Tensor eps = run.denoise(x_t, schedule.timestep(i)).eps;
    const Tensor misfit = -A.vjp(mu, run.m.y - A.apply(mu));
    run.operator_calls += 2;
    mu = mu + adam.step(misfit / m + weight * (eps - noise) / d);
    if (!run.go_on(schedule.timestep(i), mu)) break;
  }
  return run.result(mu);
}

MethodEntry red_diff_entry() {
  return method_entry<RedDiff, RedDiffOptions>(
      {"", "optimises one picture for the data and a denoiser's regularisation, noise level by noise level",
       "Mardani et al., A variational perspective on solving inverse problems with diffusion models, ICLR "
       "2024",
       "differentiable"});
}

}  // namespace dpg
