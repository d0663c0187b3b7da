// Gaussian blur of any size and sigma. Separable: A x = K_h X K_w^T with the boundary inside the matrices;
// the circular one goes through the FFT. "blur:sigma=3,size=61,boundary=reflect"
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "dpg/measure/boundary.h"
#include "dpg/measure/operator.h"

namespace dpg {

struct GaussianBlurOptions {
  std::optional<double> sigma = {};  // in pixels; unset: 3 at a shorter side of 256, in proportion otherwise
  std::optional<std::int64_t> size = {};  // odd; unset: 61 at 256, in proportion
  Boundary boundary = Boundary::reflect;

  void validate(const ImageShape& shape) const;
  GaussianBlurOptions resolved(const ImageShape& shape) const;  // with every field set
  std::string spec() const;
};
std::shared_ptr<const SpectralOperator> make_gaussian_blur(const ImageShape& shape,
                                                           const GaussianBlurOptions& options);

// `size` samples of a Gaussian, float64, sum one.
Tensor gaussian_kernel(std::int64_t size, double sigma);

// A length given for 256 pixels, at the shorter side of `shape`; the second rounds to the nearest odd number.
double scaled_to(const ImageShape& shape, double length_at_256);
std::int64_t odd_scaled_to(const ImageShape& shape, double length_at_256);

}  // namespace dpg
