// Circular convolution with any kernels, diagonal in the Fourier domain: A = F* D F. As real matrices: V is
// the Hartley transform (orthogonal, symmetric, its own inverse), the singular values are |D|, and U is V
// followed by the phase of D.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "dpg/measure/operator.h"

namespace dpg {

// `kernels` is [B, height, width] with the origin at sample (height / 2, width / 2); used as they are.
std::shared_ptr<const SpectralOperator> make_fourier_blur(const ImageShape& shape, const Tensor& kernels,
                                                          std::string spec);

// The transfer function of the kernels on a periodic plane: [B, 1, height, width / 2 + 1], complex float64.
// Kernels larger than the plane wrap around.
Tensor transfer_function(const Tensor& kernels, std::int64_t height, std::int64_t width);

}  // namespace dpg
