// From a draw to the answer: it is brought nearer to a mean, and its residual to the noise floor.
// docs/methods/dpg.md says why, with figures.
#pragma once

#include "dpg/measure/operator.h"

namespace dpg {

// What is coarse in pictures [N, C, H, W]: a Gaussian blur of `sigma` pixels, edges repeated.
Tensor coarse_part(const Tensor& pictures, double sigma);

// From `draw` towards `mean`, [N, C, H, W] each, scale by scale and place by place: all of the way where it
// is short beside what the draw has there, less where it is long, so that never more than about the part
// `smoothing` of the draw's energy is lost. The finest detail is the draw's.
Tensor way_to_mean(const Tensor& draw, const Tensor& mean, double smoothing);

// x [N, C, H, W] moved along A^T (y - A x) until ||y - A x|| is `floors`, [N], where it lies below that;
// elsewhere as it is. Pictures are clamped to the range before A sees them, as an answer will be.
Tensor raised_to_floor(const LinearOperator& A, const Tensor& y, const Tensor& floors, const Tensor& x);

// Applications of A and A^T in one call.
int raised_to_floor_calls();

// How far x may go along `way`, at most all of it (1), [N, 1, 1, 1], so that ||y - A x|| does not rise above
// `floors`, [N]; where it lies above them already, so that it does not rise. A is applied twice.
Tensor share_within_floor(const LinearOperator& A, const Tensor& y, const Tensor& floors, const Tensor& x,
                          const Tensor& way);

}  // namespace dpg
