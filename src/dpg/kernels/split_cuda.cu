#include "dpg/kernels/norm_cuda.cuh"
#include "dpg/kernels/split_cuda.h"

namespace dpg::cuda {
namespace {

// One thread makes eight channels of one pixel.
__global__ void __launch_bounds__(kThreads)
    split(int channels, std::int64_t pixels, const float* x, int vectors, Bf16* out) {
  const std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  const std::int64_t pixel = i / vectors, image = blockIdx.y;
  if (pixel >= pixels) return;
  const int first = static_cast<int>(i - pixel * vectors) * kVector;
  const float* from = x + image * channels * pixels + pixel;
  float v[kVector];
#pragma unroll
  for (int j = 0; j < kVector; ++j) {
    const int c = first + j;
    if (c < channels) {
      v[j] = from[c * pixels];
    } else if (c < 2 * channels) {
      const float whole = from[(c - channels) * pixels];
      v[j] = whole - __bfloat162float(__float2bfloat16_rn(whole));
    } else {
      v[j] = c < 2 * channels + 2 ? 1.0f : 0.0f;
    }
  }
  store(out + (image * pixels + pixel) * vectors * kVector + first, v);
}

}  // namespace

void split_channels(std::int64_t images, std::int64_t channels, std::int64_t pixels, const float* x,
                    std::int64_t out_channels, Bf16* out, CUstream_st* stream) {
  check(out_channels % kVector == 0 && out_channels >= 2 * channels + 2, channels,
        " channels do not split into ", out_channels);
  const std::int64_t threads = pixels * (out_channels / kVector);
  const dim3 grid(static_cast<unsigned>((threads + kThreads - 1) / kThreads), static_cast<unsigned>(images),
                  1);
  split<<<grid, kThreads, 0, stream>>>(static_cast<int>(channels), pixels, x,
                                       static_cast<int>(out_channels / kVector), out);
  check_launch("the splitting of floats");
}

}  // namespace dpg::cuda
