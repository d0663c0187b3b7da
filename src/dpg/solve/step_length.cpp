#include "dpg/solve/step_length.h"

#include <torch/torch.h>

#include <cmath>

#include "dpg/solve/measured_guide.h"

namespace dpg {

Tensor slope_along(const SlopeProblem& p, const Tensor& w) {
  if (as_linear(p.A)) return p.A.apply(w);
  const Tensor root_mean_square = w.flatten(1).square().mean(1).sqrt().clamp_min(1e-30);
  const Tensor h = p.radius / root_mean_square;
  const Tensor moved = p.A.apply(p.mu + over_pictures(h) * w);
  return (moved - p.prediction) / over_rows(h, moved);
}

Tensor posterior_step_length(const StepLengthProblem& p, const Tensor& w, double alpha_bar) {
  const double c = (1 - alpha_bar) / std::sqrt(alpha_bar);
  const Tensor Ke = (c * slope_along(p.at, w)).flatten(1), e = p.residual.flatten(1);
  const Tensor gain = (e * Ke).sum(1).clamp_min(0);
  return gain / (Ke.square().sum(1) + p.noise_levels.square() * gain).clamp_min(1e-30);
}

}  // namespace dpg
