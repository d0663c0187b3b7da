// How far to follow a guidance direction, without a knob.
#pragma once

#include "dpg/measure/operator.h"

namespace dpg {

struct SlopeProblem {
  const Operator& A;
  const Tensor& mu;          // [N, C, H, W], the denoised images
  const Tensor& prediction;  // A(mu)
  const Tensor& radius;      // [N], how far a non-linear A is followed to find its slope
};

// A's change along w at mu: A w for a linear operator; otherwise over a distance of `radius` per value.
Tensor slope_along(const SlopeProblem& problem, const Tensor& w);

struct StepLengthProblem {
  SlopeProblem at;
  const Tensor& residual;      // e = y - A(mu)
  const Tensor& noise_levels;  // sigma_y, [N]
};

// s for x0 <- mu + s c w, w = J^T A^T e up to a positive factor, c = (1 - abar) / sqrt(abar), [N].
// c J is the covariance of x0 given x_t. Under that Gaussian the mean of x0 given y is mu + c J A^T u with
// (A c J A^T + sigma_y^2 I) u = e; this is its best u along e:
//   s = <e, Ke> / (||Ke||^2 + sigma_y^2 <e, Ke>),   Ke = c A w.
// Zero where w does not lead towards the data: w may be sampled, and mostly noise. A is applied once, for A
// w.
Tensor posterior_step_length(const StepLengthProblem& problem, const Tensor& w, double alpha_bar);

}  // namespace dpg
