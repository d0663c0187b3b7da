// Noise with little detail: drawn on a coarse grid and enlarged. Early in sampling the denoiser's Jacobian
// lets low frequencies through alone; samples with more detail than that are spent on nothing.
#pragma once

#include <cstdint>
#include <span>

#include "dpg/core/rng.h"
#include "dpg/measure/operator.h"

namespace dpg {

// The grid on which noise of level sigma = sqrt((1 - abar) / abar) has to be drawn for a picture of `side`
// pixels. Pictures have a power spectrum that falls as 1 / f^2: of a standard deviation of 0.5 on the
// [-1, 1] range, what is left at frequency f (in cycles per picture) is K / f^2, K = side^2 * 0.25 /
// (2 pi ln(side / 2)). The denoiser keeps at least half of what exceeds the noise, K / f^2 >= sigma^2, and a
// grid of 2 f points holds the frequencies up to f. Between 4 and `side`; `detail` widens it.
std::int64_t coarse_side(std::int64_t side, double sigma, double detail = 1);

// Rows as normal_samples gives them, [samples * images, shape], drawn on a grid of `height` x `width` and
// enlarged bilinearly to the image's size, with variance 1 on average over the pixels. Equal to
// normal_samples where the grid is the image's own.
Tensor coarse_samples(const Rng& rng, std::span<const std::uint32_t> images, std::uint32_t step,
                      std::uint32_t first_sample, std::int64_t samples, const ImageShape& shape,
                      std::int64_t height, std::int64_t width, torch::Device device);

}  // namespace dpg
