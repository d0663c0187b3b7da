#include "dpg/measure/gaussian_blur.h"

#include <torch/torch.h>

#include <algorithm>
#include <cmath>

#include "dpg/core/error.h"
#include "dpg/measure/fourier_blur.h"
#include "dpg/measure/separable.h"
#include "dpg/measure/spec.h"

namespace dpg {

double scaled_to(const ImageShape& shape, double length_at_256) {
  return length_at_256 * static_cast<double>(std::min(shape.height, shape.width)) / 256;
}

std::int64_t odd_scaled_to(const ImageShape& shape, double length_at_256) {
  return 2 * std::llround((scaled_to(shape, length_at_256) - 1) / 2) + 1;
}

GaussianBlurOptions GaussianBlurOptions::resolved(const ImageShape& shape) const {
  GaussianBlurOptions out = *this;
  if (!out.sigma) out.sigma = scaled_to(shape, 3);
  if (!out.size) out.size = std::max<std::int64_t>(1, odd_scaled_to(shape, 61));
  return out;
}

void GaussianBlurOptions::validate(const ImageShape& shape) const {
  const GaussianBlurOptions set = resolved(shape);
  check(std::isfinite(*set.sigma) && *set.sigma > 0, "blur has sigma = ", *set.sigma,
        ": it must be positive.");
  check(*set.size >= 1 && *set.size % 2 == 1, "blur has size = ", *set.size,
        ": it must be odd and at least 1.");
  check_reach("blur", *set.size, std::min(shape.height, shape.width), boundary);
}

std::string GaussianBlurOptions::spec() const {
  Spec text{"blur", {}};
  if (sigma) text.arguments.push_back({"sigma", number_text(*sigma)});
  if (size) text.arguments.push_back({"size", std::to_string(*size)});
  text.arguments.push_back({"boundary", name(boundary)});
  return to_text(text);
}

Tensor gaussian_kernel(std::int64_t size, double sigma) {
  const Tensor place = torch::arange(size, torch::kDouble) - static_cast<double>(size / 2);
  const Tensor weights = torch::exp(place.square() / (-2 * sigma * sigma));
  return weights / weights.sum();
}

std::shared_ptr<const SpectralOperator> make_gaussian_blur(const ImageShape& shape,
                                                           const GaussianBlurOptions& options) {
  check_shape(options.spec(), shape);
  options.validate(shape);
  const GaussianBlurOptions set = options.resolved(shape);
  const Tensor kernel = gaussian_kernel(*set.size, *set.sigma);
  if (set.boundary == Boundary::circular)
    return make_fourier_blur(shape, torch::outer(kernel, kernel).unsqueeze(0), set.spec());
  return make_separable(shape, convolution_matrix(kernel, shape.height, set.boundary),
                        convolution_matrix(kernel, shape.width, set.boundary), set.spec());
}

}  // namespace dpg
