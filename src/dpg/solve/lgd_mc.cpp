#include "dpg/solve/lgd_mc.h"

#include <torch/torch.h>

#include <cmath>

#include "dpg/core/error.h"
#include "dpg/solve/measured_guide.h"
#include "dpg/solve/method_entry.h"
#include "dpg/tensor/convert.h"

namespace dpg {

template <class Visitor>
void fields(Visitor& visit, LgdMcOptions& o) {
  sampler_fields(visit, o.sampler);
  visit("mc", o.mc);
  visit("radius", o.radius);
  visit("average", o.average);
  visit("zeta", o.zeta);
}

namespace {

class LossGuide : public MeasuredGuide {
 public:
  LossGuide(const LgdMcOptions& options, const Measurement& m, const Rng& rng,
            std::span<const std::uint32_t> images)
      : MeasuredGuide(m),
        options_(options),
        A_(need_differentiable(LgdMc::kName, m)),
        rng_(rng),
        images_(images),
        // Without noise the softest minimum that float can still tell from a hard one.
        variances_(noise_levels_tensor(m).square().clamp_min(1e-8)) {}

 private:
  Tensor move(const ReverseStep& step, const Tensor&, const Tensor&) override {
    const Tensor& x0 = step.denoised.x0;
    const double abar = step.schedule.alpha_bar()[static_cast<std::size_t>(step.i)];
    const double r = options_.radius * std::sqrt(1 - abar);  // sigma_t^2 = (1 - abar) / abar
    const std::int64_t n = options_.mc, images = x0.size(0);

    // Row k * images + i is sample k of image i, as operators with one state per image expect.
    const Tensor xi = normal_samples(rng_, images_, static_cast<std::uint32_t>(step.i), 1, n,
                                     x0.sizes().slice(1), x0.device());
    const Tensor samples = x0.repeat({n, 1, 1, 1}) + r * xi;
    const Tensor predictions = A_.apply(samples);
    const Tensor e = (m_.y.unsqueeze(0) - predictions.unflatten(0, {n, images})).flatten(0, 1);
    const Tensor squares = e.flatten(1).square().sum(1).view({n, images});
    const AveragedLoss average =
        options_.average == "mean" ? average_losses(squares) : average_likelihoods(squares, variances_);

    // -grad sqrt(loss) = sum_k w_k J^T A'(x0_k)^T e_k / sqrt(loss); J is the same for all samples.
    const Tensor slopes = A_.vjp(samples, e).unflatten(0, {n, images});
    const Tensor slope = (slopes * average.weights.view({n, images, 1, 1, 1})).sum(0);
    operator_calls += 2 * n;
    const Tensor root = average.loss.clamp_min(0).sqrt().clamp_min(1e-30);
    return options_.zeta * step.denoised.pull_back(slope) / over_pictures(root);
  }

  const LgdMcOptions& options_;
  const DifferentiableOperator& A_;
  const Rng& rng_;
  std::span<const std::uint32_t> images_;
  Tensor variances_;  // sigma_y^2, [N]
};

}  // namespace

AveragedLoss average_likelihoods(const Tensor& squares, const Tensor& variances) {
  // Around the smallest, because the likelihoods themselves are far below what a float holds.
  const Tensor smallest = std::get<0>(squares.min(0));
  const Tensor exponents = -(squares - smallest) / (2 * variances);
  const Tensor log_mean = torch::logsumexp(exponents, 0) - std::log(static_cast<double>(squares.size(0)));
  return {smallest - 2 * variances * log_mean, torch::softmax(exponents, 0)};
}

AveragedLoss average_losses(const Tensor& squares) {
  return {squares.mean(0), torch::full_like(squares, 1.0 / static_cast<double>(squares.size(0)))};
}

void validate(const LgdMcOptions& o) {
  validate(o.sampler);
  check(o.mc >= 1, "mc = ", o.mc, " must be at least 1");
  check(o.radius >= 0, "radius = ", o.radius, " must not be negative");
  check(o.average == "log-mean-exp" || o.average == "mean", "average \"", o.average,
        "\" is not one of log-mean-exp, mean");
  check(o.zeta >= 0, "zeta = ", o.zeta, " must not be negative");
}

LgdMc::LgdMc(LgdMcOptions options) : options_(std::move(options)) {
  validate(options_);
}

void LgdMc::check_problem(const Measurement& m) const {
  need_differentiable(kName, m);
}

Result LgdMc::solve(const Measurement& measurement, const Prior& prior, const Rng& rng,
                    std::span<const std::uint32_t> images, const Observer& observer) const {
  check_problem(measurement);
  check_sizes(measurement, prior, images);
  const Measurement m = to_device(measurement, prior.device());
  LossGuide guide(options_, m, rng, images);
  return run_guided(guide, options_.sampler, m.A->input_shape(), prior, rng, images, observer);
}

MethodEntry lgd_mc_entry() {
  return method_entry<LgdMc, LgdMcOptions>(
      {"", "loss-guided diffusion: the residual averaged over samples around the denoised picture",
       "Song et al., Loss-guided diffusion models for plug-and-play controllable generation, ICML 2023",
       "differentiable"});
}

}  // namespace dpg
