#include "dpg/solve/posterior_mean.h"

#include <torch/torch.h>

#include <cmath>
#include <vector>

#include "dpg/solve/measured_guide.h"
#include "dpg/solve/step_length.h"

namespace dpg {
namespace {

// A direction, and what the equation's left side makes of it.
struct Direction {
  Tensor w, q, weighted_q, square;  // square: <q, weighted_q>
};

}  // namespace

Tensor posterior_mean_move(const PosteriorMeanProblem& p, int passes) {
  const double c = (1 - p.alpha_bar) / std::sqrt(p.alpha_bar);
  const Tensor& mu = p.denoised.x0;
  Tensor left = p.residual, move;
  std::vector<Direction> directions;
  const auto weighted = [&](const Tensor& e) { return p.weights.defined() ? p.weights * e : e; };
  for (int pass = 0; pass < passes; ++pass) {
    Tensor w = p.denoised.pull_back(p.adjoint(weighted(left)));
    Tensor q = c * slope_along({p.A, mu, p.prediction, p.radius}, w) + p.variance * left;
    for (const Direction& d : directions) {
      const Tensor part = image_product(q, d.weighted_q) / d.square;
      q = q - part * d.q;
      w = w - over_rows(part, w) * d.w;
    }
    const Tensor weighted_q = weighted(q), square = image_product(q, weighted_q).clamp_min(1e-30);
    const Tensor length = image_product(left, weighted_q) / square;
    move = move.defined() ? move + over_rows(length, w) * w : over_rows(length, w) * w;
    left = left - length * q;
    directions.push_back({w, q, weighted_q, square});
  }
  return move;
}

}  // namespace dpg
