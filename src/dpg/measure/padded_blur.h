// Convolution with any kernels where the picture ends: reflected or zero beyond the edge. An FFT over the
// padded picture; the adjoint folds the padding back, so it is exact. Solves by conjugate gradients.
#pragma once

#include <memory>
#include <string>

#include "dpg/measure/boundary.h"
#include "dpg/measure/operator.h"

namespace dpg {

// `kernels` is [B, height, width] with the origin at sample (height / 2, width / 2); used as they are.
// `boundary` is reflect or zero.
std::shared_ptr<const LinearOperator> make_padded_blur(const ImageShape& shape, const Tensor& kernels,
                                                       Boundary boundary, std::string spec);

}  // namespace dpg
