// How near pictures are to the truth, pixel by pixel: PSNR and SSIM. No weights are needed.
//
// Both take two tensors [N, C, H, W] of equal shape, on any device and in any floating type, and give one
// number for each of the N pictures; nothing is ever averaged over the batch. The range of a picture is
// [-1, 1] (data range 2): values outside are clamped first, because that is what a viewer or a file shows.
// They are NOT rounded to 8 bits: numbers measured on written 8-bit files differ a little from these.
// Computed in float64. A NaN in a picture makes that picture's number NaN.
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <vector>

namespace dpg {

using torch::Tensor;

// Peak signal-to-noise ratio in dB, 10 log10(2^2 / mean squared error), the mean over all channels and
// pixels. Equal pictures give +infinity.
std::vector<double> psnr(const Tensor& pictures, const Tensor& truth);

// Structural similarity (Wang, Bovik, Sheikh, Simoncelli: "Image quality assessment: from error visibility to
// structural similarity", 2004), equation 13 averaged over windows:
//   (2 m_a m_b + C1)(2 s_ab + C2) / ((m_a^2 + m_b^2 + C1)(s_a^2 + s_b^2 + C2)),  C1 = (0.01 L)^2, C2 = (0.03
//   L)^2
// with data range L = 2. Means, variances and the covariance are those under an 11x11 Gaussian window (sigma
// 1.5) whose weights sum to one: population statistics, no correction for a sample. Only windows that lie
// wholly inside the picture count. Each channel by itself, then the mean over channels.
std::vector<double> ssim(const Tensor& pictures, const Tensor& truth);

// The side of SSIM's window; smaller pictures are refused.
inline constexpr std::int64_t kSsimWindow = 11;

}  // namespace dpg
