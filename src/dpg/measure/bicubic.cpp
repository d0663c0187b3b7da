#include "dpg/measure/bicubic.h"

#include <torch/torch.h>

#include <cmath>

#include "dpg/core/error.h"
#include "dpg/measure/separable.h"

namespace dpg {
namespace {

// Keys' cubic convolution kernel with a = -0.5; zero from 2 on.
double cubic(double x) {
  x = std::abs(x);
  if (x < 1) return (1.5 * x - 2.5) * x * x + 1;
  if (x < 2) return ((-0.5 * x + 2.5) * x - 4) * x + 2;
  return 0;
}

// The pixel that a half-sample symmetric extension shows at place i: b a | a b c | c b.
std::int64_t mirrored(std::int64_t i, std::int64_t length) {
  const std::int64_t period = 2 * length;
  const std::int64_t place = ((i % period) + period) % period;
  return place < length ? place : period - 1 - place;
}

}  // namespace

Tensor bicubic_matrix(std::int64_t length, std::int64_t factor) {
  const std::int64_t reduced = length / factor;
  const auto stretch = static_cast<double>(factor);
  Tensor matrix = torch::zeros({reduced, length}, torch::kDouble);
  auto m = matrix.accessor<double, 2>();
  for (std::int64_t i = 0; i < reduced; ++i) {
    const double centre = (static_cast<double>(i) + 0.5) * stretch - 0.5;
    const auto first = static_cast<std::int64_t>(std::ceil(centre - 2 * stretch));
    for (std::int64_t j = first; j <= first + 4 * factor; ++j)
      m[i][mirrored(j, length)] += cubic((static_cast<double>(j) - centre) / stretch);
  }
  return matrix / matrix.sum(1, /*keepdim=*/true);
}

void BicubicOptions::validate(const ImageShape& shape) const {
  check(factor >= 1, "sr-bicubic has factor = ", factor, ": it must be at least 1.");
  check(shape.height % factor == 0 && shape.width % factor == 0, "sr-bicubic has factor = ", factor,
        ": it must divide the image's ", shape.width, " x ", shape.height, " pixels.");
}

std::string BicubicOptions::spec() const {
  return str("sr-bicubic:", factor);
}

std::shared_ptr<const SpectralOperator> make_bicubic(const ImageShape& shape, const BicubicOptions& options) {
  check_shape(options.spec(), shape);
  options.validate(shape);
  return make_separable(shape, bicubic_matrix(shape.height, options.factor),
                        bicubic_matrix(shape.width, options.factor), options.spec());
}

}  // namespace dpg
