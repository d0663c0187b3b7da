#include "dpg/solve/coarse_noise.h"

#include <torch/torch.h>

#include <algorithm>
#include <cmath>

#include "dpg/tensor/convert.h"

namespace dpg {

Tensor resized(const Tensor& pictures, std::int64_t height, std::int64_t width) {
  namespace F = torch::nn::functional;
  return F::interpolate(pictures, F::InterpolateFuncOptions()
                                      .size(std::vector<std::int64_t>{height, width})
                                      .mode(torch::kBilinear)
                                      .align_corners(false));
}

namespace {

constexpr std::int64_t kSmallestGrid = 4, kPixelsPerPoint = 4;

// Mean over the pixels of the squared weights along one side: what enlarging does to white noise's variance.
double mean_square_weight(std::int64_t grid, std::int64_t side) {
  const Tensor unit = torch::eye(grid).view({1, grid, grid, 1});  // one channel for each grid point
  return resized(unit, side, 1).square().sum(1).mean().item<double>();
}

}  // namespace

std::int64_t coarse_side(std::int64_t side) {
  return std::min(side, std::max(kSmallestGrid, side / kPixelsPerPoint));
}

Tensor coarse_samples(const Rng& rng, std::span<const std::uint32_t> images, std::uint32_t step,
                      std::uint32_t first_sample, std::int64_t samples, const ImageShape& shape,
                      std::int64_t height, std::int64_t width, torch::Device device) {
  const Tensor noise =
      normal_samples(rng, images, step, first_sample, samples, {shape.channels, height, width}, device);
  if (height == shape.height && width == shape.width) return noise;
  const double variance = mean_square_weight(height, shape.height) * mean_square_weight(width, shape.width);
  return resized(noise, shape.height, shape.width) / std::sqrt(variance);
}

}  // namespace dpg
