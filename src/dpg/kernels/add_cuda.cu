#include "dpg/kernels/norm_cuda.cuh"

namespace dpg::cuda {
namespace {

template <class T, Size kSize>
__global__ void __launch_bounds__(kThreads)
    add_resized(int pixels, int channels, int width, T* out, const T* other, const float* bias) {
  const int image = static_cast<int>(blockIdx.y), channel = static_cast<int>(threadIdx.x) * kVector;
  const int others = kSize == Size::half ? 4 * pixels : kSize == Size::twice ? pixels / 4 : pixels;
  const Column<T> to({out, channels, nullptr}, image, pixels, channels, channel);
  const Column<const T> from({other, channels, nullptr}, image, others, channels, channel);
  float b[kVector] = {};
  if (bias) load(bias + channel, b);
  const int step = static_cast<int>(blockDim.y * gridDim.x);
#pragma unroll 2
  for (int pixel = static_cast<int>(blockIdx.x * blockDim.y + threadIdx.y); pixel < pixels; pixel += step) {
    float a[kVector], v[kVector];
    load(to(pixel), a);
    if constexpr (kSize == Size::same) {
      load(from(pixel), v);
    } else if constexpr (kSize == Size::twice) {
      const int row = pixel / (2 * width), across = pixel - row * 2 * width;
      load(from((row >> 1) * width + (across >> 1)), v);
    } else {
      const int half = width / 2, row = pixel / half, corner = 2 * row * width + 2 * (pixel - row * half);
      float w[kVector];
      load(from(corner), v);
#pragma unroll
      for (int q = 1; q < 4; ++q) {
        load(from(corner + (q & 1) + (q >> 1) * width), w);
#pragma unroll
        for (int j = 0; j < kVector; ++j) v[j] += w[j];
      }
#pragma unroll
      for (int j = 0; j < kVector; ++j) v[j] *= 0.25f;
    }
#pragma unroll
    for (int j = 0; j < kVector; ++j) a[j] += v[j] + b[j];
    store(to(pixel), a);
  }
}

}  // namespace

template <class T>
void add_with_bias(std::int64_t images, std::int64_t out_pixels, std::int64_t channels, T* out,
                   const T* other, std::int64_t width, Size size, const float* bias, CUstream_st* stream) {
  check(channels % kVector == 0 && channels <= kMaxNormChannels,
        "the GPU's sum takes channels in multiples of ", kVector, " up to ", kMaxNormChannels, ", not ",
        channels);
  const NormShape shape{images, out_pixels, channels, 1, 0, false};
  const auto run = size == Size::same   ? add_resized<T, Size::same>
                   : size == Size::half ? add_resized<T, Size::half>
                                        : add_resized<T, Size::twice>;
  run<<<slice_grid(shape, out_pixels, 2, 2 * kApplyBlocks), slice_threads(shape), 0, stream>>>(
      static_cast<int>(out_pixels), static_cast<int>(channels), static_cast<int>(width), out, other, bias);
  check_launch("the sum of a residual block");
}

template void add_with_bias(std::int64_t, std::int64_t, std::int64_t, float*, const float*, std::int64_t,
                            Size, const float*, CUstream_st*);
template void add_with_bias(std::int64_t, std::int64_t, std::int64_t, Bf16*, const Bf16*, std::int64_t, Size,
                            const float*, CUstream_st*);

}  // namespace dpg::cuda
