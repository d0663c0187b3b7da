#include "dpg/measure/view.h"

#include <torch/torch.h>

#include <algorithm>
#include <cmath>

namespace dpg {
namespace {

// Per image, so that a batch looks like its images alone.
Tensor stretched(const Tensor& values) {
  const Tensor low = values.amin({1, 2, 3}, true), high = values.amax({1, 2, 3}, true);
  return 2 * (values - low) / (high - low).clamp_min(1e-12) - 1;
}

// Numbers without places, row by row into a rectangle about as high as wide, the rest filled with mid-grey.
Tensor rectangle(const Tensor& y) {
  const Tensor rows = y.flatten(1);
  const auto width = static_cast<std::int64_t>(std::ceil(std::sqrt(static_cast<double>(rows.size(1)))));
  const std::int64_t height = (rows.size(1) + width - 1) / width;
  return torch::constant_pad_nd(rows, {0, height * width - rows.size(1)})
      .view({rows.size(0), 1, height, width});
}

}  // namespace

View view_of(const Tensor& y) {
  const Tensor values = y.detach().to(torch::kCPU, torch::kFloat32);
  const bool picture = values.dim() == 4 && (values.size(1) == 1 || values.size(1) == 3);
  if (!picture)
    return {stretched(rectangle(values)), "shown as a stretched grey rectangle, for it is no picture"};
  // Noise leaves the range on both sides; a spectrum's amplitudes leave it by far, and upwards only.
  const double low = values.min().item<double>(), high = values.max().item<double>();
  if (high > 3 && low > -0.5)
    return {stretched(torch::log1p(values.clamp_min(0))), "shown on a logarithmic scale"};
  if (std::max(high, -low) <= 6) return {values, ""};
  return {stretched(values), "shown stretched to the range"};
}

}  // namespace dpg
