// Noise with little detail: drawn on a coarse grid and enlarged. Little of the guidance is fine detail,
// because the denoiser's Jacobian passes low frequencies before all; samples with more detail than that are
// spent on nothing. docs/methods/dpg.md has the figures.
#pragma once

#include <cstdint>
#include <span>

#include "dpg/core/rng.h"
#include "dpg/measure/operator.h"

namespace dpg {

// Points a side of the grid for pictures of so many pixels: a quarter of them, at least 4.
std::int64_t coarse_side(std::int64_t side);

// Bilinearly, [N, C, H, W].
Tensor resized(const Tensor& pictures, std::int64_t height, std::int64_t width);

// Rows as normal_samples gives them, [samples * images, shape], drawn on a grid of `height` x `width` and
// enlarged bilinearly to the image's size, with variance 1 on average over the pixels. Equal to
// normal_samples where the grid is the image's own.
Tensor coarse_samples(const Rng& rng, std::span<const std::uint32_t> images, std::uint32_t step,
                      std::uint32_t first_sample, std::int64_t samples, const ImageShape& shape,
                      std::int64_t height, std::int64_t width, torch::Device device);

}  // namespace dpg
