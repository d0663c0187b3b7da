// Along which directions a reverse step is late.
#pragma once

#include "dpg/measure/operator.h"

namespace dpg {

// Along a direction that A keeps with singular value s, y says x0 to within sigma_y / s. The step there is
// late once x_t itself says about as much: c s^2 below a few sigma_y^2, c the largest variance of x0 given
// x_t. This is the late part of a measurement v, h(A A^T) v with
//   h(s^2) = 1 / (1 + (s^2 / reach)^2),     reach = (a few sigma_y^2) / c, [N, 1, ...].
// Where the noise differs from entry to entry, `weights` (mean variance over variance; undefined: all one)
// make it alike: W^-1 h(W A A^T W) W v, W = sqrt(weights).
// By a fixed number of conjugate gradients, so that it can be recorded on a GPU. Exact where A A^T has few
// different values (masks, averaging); for blurs, the later the step the nearer, and early on too little
// rather than too much (late_noise_test).
Tensor late_part(const LinearOperator& A, const Tensor& v, const Tensor& reach, const Tensor& weights = {});

// Of pictures x what is not late, x - h(A^T W A) x, by as many iterations: nothing along what A does not see.
// For blurs, the nearer the larger the reach, and too little rather than too much.
Tensor early_part(const LinearOperator& A, const Tensor& x, const Tensor& reach, const Tensor& weights = {});

// Applications of A and A^T in one call.
int late_part_calls();
int early_part_calls();

}  // namespace dpg
