#include "dpg/solve/own_loop.h"

#include <torch/torch.h>

#include <cmath>
#include <limits>

#include "dpg/tensor/convert.h"

namespace dpg {

Tensor unclamped_x0(const Tensor& x_t, const Tensor& eps, double alpha_bar) {
  return (x_t - std::sqrt(1 - alpha_bar) * eps) / std::sqrt(alpha_bar);
}

double noise_to_signal(double alpha_bar) {
  return std::sqrt((1 - alpha_bar) / alpha_bar);
}

std::string method_that_serves(const Operator& A) {
  if (as_linear(A)) return "use --method diffpir, which needs no more than a linear operator";
  if (as_differentiable(A)) return "use --method dps or daps, which need no more than a derivative";
  return "use --method dpg, which needs no more than A itself";
}

OwnLoop::OwnLoop(const Measurement& measurement, const Prior& prior, const Rng& rng,
                 std::span<const std::uint32_t> images, int network_calls, const Observer& observer)
    : m(to_device(measurement, prior.device())),
      prior_(prior),
      rng_(rng),
      images_(images),
      total_(network_calls),
      observer_(observer) {
  check_sizes(m, prior, images);
}

Tensor OwnLoop::noise(std::uint32_t step, std::uint32_t sample) const {
  const ImageShape shape = m.A->input_shape();
  return normal_noise(rng_, images_, step, sample, {shape.channels, shape.height, shape.width},
                      prior_.device());
}

Denoised OwnLoop::denoise(const Tensor& x_t, int t) {
  ++calls_;
  return prior_.denoise(x_t, t, Track::nothing);
}

bool OwnLoop::go_on(int t, const Tensor& x0) {
  const Tensor estimate = x0.clamp(-1, 1);
  const Tensor residual = residual_norm(m.y, m.A->apply(estimate));
  ++operator_calls;
  history_.t.push_back(t);
  history_.residual.push_back(residual);
  stopped_ = observer_ && observer_({calls_, total_, t, estimate, residual}) == Next::stop;
  return !stopped_;
}

Result OwnLoop::result(const Tensor& x) {
  check_finite(x, "the result");  // a NaN at any step is one here
  return {x.clamp(-1, 1), std::move(history_), {calls_, 0, operator_calls}, stopped_};
}

SpectralView spectral_view(const Measurement& m) {
  const SpectralOperator& A = *as_spectral(*m.A);
  const Tensor values = A.singular_values();
  const Tensor s = values.repeat({m.y.size(0) / values.size(0), 1});  // row j has state j mod batch
  const Tensor seen = s > 0, safe = torch::where(seen, s, torch::ones_like(s));
  const Tensor level = torch::tensor(noise_levels(m), s.options()).view({-1, 1});
  const Tensor lost = torch::full_like(s, std::numeric_limits<double>::infinity());
  return {torch::where(seen, A.Ut(m.y) / safe, torch::zeros_like(s)), torch::where(seen, level / safe, lost)};
}

}  // namespace dpg
