// Super-resolution by antialiased bicubic reduction (Keys' kernel, a = -0.5, stretched by the factor;
// reflected at the border, half-sample symmetric), as image editors shrink. Separable. "sr-bicubic:4"
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "dpg/measure/operator.h"

namespace dpg {

struct BicubicOptions {
  std::int64_t factor = 4;  // at least 1; divides the image's height and width

  void validate(const ImageShape& shape) const;
  std::string spec() const;
};
std::shared_ptr<const SpectralOperator> make_bicubic(const ImageShape& shape, const BicubicOptions& options);

// The [length / factor, length] float64 matrix of the reduction along one axis; its rows sum to one.
Tensor bicubic_matrix(std::int64_t length, std::int64_t factor);

}  // namespace dpg
