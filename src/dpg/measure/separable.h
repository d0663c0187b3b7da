// Operators that act on rows and columns one after the other: A x = R X C^T in every channel, with any
// matrices R and C. Their SVD is the product of the two small ones.
#pragma once

#include <memory>
#include <string>

#include "dpg/measure/operator.h"

namespace dpg {

// `rows` is [h, H] and `columns` [w, W], float64, h <= H and w <= W; measurements are [C, h, w].
std::shared_ptr<const SpectralOperator> make_separable(const ImageShape& shape, const Tensor& rows,
                                                       const Tensor& columns, std::string spec);

}  // namespace dpg
