#include "dpg/solve/dps.h"

#include <torch/torch.h>

#include <algorithm>

#include "dpg/core/error.h"
#include "dpg/solve/measured_guide.h"
#include "dpg/solve/method_entry.h"

namespace dpg {

template <class Visitor>
void fields(Visitor& visit, DpsOptions& o) {
  sampler_fields(visit, o.sampler);
  visit("zeta", o.zeta);
}

namespace {

// x_{i-1} <- ancestral step - zeta grad ||y - A(x0)||_Lambda (Algorithms 1 and 2, line 7).
class PosteriorGuide : public MeasuredGuide {
 public:
  PosteriorGuide(const Measurement& m, double zeta)
      : MeasuredGuide(m),
        A_(need_differentiable(Dps::kName, m)),
        zeta_(zeta),
        weights_(inverse_variances(m)) {}
  bool stays_on_gpu() const override { return as_linear(*m_.A) != nullptr; }

 private:
  Tensor move(const ReverseStep& step, const Tensor&, const Tensor& e) override {
    ++operator_calls;  // its derivative
    return -zeta_ * residual_gradient(A_, step.denoised, e, weights_);
  }

  const DifferentiableOperator& A_;
  double zeta_;
  Tensor weights_;
};

}  // namespace

Tensor residual_gradient(const DifferentiableOperator& A, const Denoised& denoised, const Tensor& e,
                         const Tensor& weights) {
  const Tensor weighted = weights * e;
  const Tensor norm = (weighted * e).flatten(1).sum(1).sqrt().clamp_min(1e-30);
  return -denoised.pull_back(A.vjp(denoised.x0, weighted)) / over_pictures(norm);
}

Tensor inverse_variances(const Measurement& m) {
  // The model tells the level of measurements that all have one value; so its variance is read off as a
  // function of the value, in as many steps as a byte has.
  constexpr int kValues = 256;
  std::vector<double> table;
  for (int k = 0; k < kValues; ++k) {
    const double value = 2.0 * k / (kValues - 1) - 1;
    const double level = m.noise->level(torch::full({1}, value, torch::kDouble));
    table.push_back(level * level);
  }
  const auto [least, most] = std::minmax_element(table.begin(), table.end());
  if (*most - *least <= 1e-9 * *most) return torch::ones({});

  const Tensor place = ((m.y.clamp(-1, 1) + 1) * ((kValues - 1) / 2.0)).round().to(torch::kLong);
  const Tensor variance = torch::tensor(table, torch::kFloat).to(m.y.device()).index({place}).flatten(1);
  const Tensor weights = 1 / torch::maximum(variance, 0.1 * variance.mean(1, true)).clamp_min(1e-30);
  return (weights / weights.mean(1, true)).view_as(m.y);
}

void validate(const DpsOptions& o) {
  validate(o.sampler);
  check(o.zeta >= 0, "zeta = ", o.zeta, " must not be negative");
}

Dps::Dps(DpsOptions options) : options_(std::move(options)) {
  validate(options_);
}

void Dps::check_problem(const Measurement& m) const {
  need_differentiable(kName, m);
}

Result Dps::solve(const Measurement& measurement, const Prior& prior, const Rng& rng,
                  std::span<const std::uint32_t> images, const Observer& observer) const {
  check_problem(measurement);
  check_sizes(measurement, prior, images);
  const Measurement m = to_device(measurement, prior.device());
  PosteriorGuide guide(m, options_.zeta);
  return run_guided(guide, options_.sampler, m.A->input_shape(), prior, rng, images, observer);
}

MethodEntry dps_entry() {
  return method_entry<Dps, DpsOptions>(
      {"", "diffusion posterior sampling: every step descends the gradient of the residual's norm",
       "Chung et al., Diffusion posterior sampling for general noisy inverse problems, ICLR 2023",
       "differentiable"});
}

}  // namespace dpg
