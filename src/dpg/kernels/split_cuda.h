// Floats as pairs of bf16 for the GPU's matrix units. No torch, no CUDA headers here.
#pragma once

#include <cstdint>

#include "dpg/kernels/norm.h"

struct CUstream_st;

namespace dpg::cuda {

// x: [images][channels][pixels]; out: [images][pixels][out_channels], out_channels a multiple of 8 and at
// least 2 * channels + 2. Of each value v the nearest bf16 goes to channel c and the nearest bf16 of what is
// left to channel channels + c: together they hold v to 16 bits. Two ones follow, then zeros: weights for the
// ones add a bias.
void split_channels(std::int64_t images, std::int64_t channels, std::int64_t pixels, const float* x,
                    std::int64_t out_channels, kernels::Bf16* out, CUstream_st* stream);

}  // namespace dpg::cuda
