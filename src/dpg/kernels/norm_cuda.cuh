// What the norm's GPU kernels share.
#pragma once

#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include <algorithm>
#include <numeric>

#include "dpg/core/error.h"
#include "dpg/kernels/norm_cuda.h"

namespace dpg::cuda {

using kernels::Bf16;
using kernels::NormShape;

constexpr int kVector = 8;             // channels of one thread: 16 bytes of bf16
constexpr int kThreads = 256;          // of a block that takes a slice of a picture
constexpr int kSlabThreads = 512;      // of a block that takes a slab of channels
constexpr int kHeld = 8;               // vectors such a thread holds at most
constexpr int kSlabPixels = 1024;      // beyond that its rows get too short to be read well
constexpr int kSliceBlocks = 2 * 132;  // of one picture's sums: few enough to be added up quickly at the end
constexpr int kApplyBlocks = 8 * 132;
static_assert(kMaxNormChannels == kThreads * kVector);

inline void check_launch(const char* what) {
  const cudaError_t status = cudaGetLastError();
  check(status == cudaSuccess, what, " on the GPU: ", cudaGetErrorString(status));
}

struct alignas(16) Words {
  unsigned w[4];
};

// Eight values as they are stored.
template <class T>
struct Packed;
template <>
struct Packed<Bf16> {
  Words words;
  __device__ void load(const Bf16* from) { words = *reinterpret_cast<const Words*>(from); }
  __device__ void unpack(float (&to)[kVector]) const {
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      to[2 * j] = __uint_as_float(words.w[j] << 16);
      to[2 * j + 1] = __uint_as_float(words.w[j] & 0xffff0000u);
    }
  }
};
template <>
struct Packed<float> {
  float4 low, high;
  __device__ void load(const float* from) {
    low = reinterpret_cast<const float4*>(from)[0];
    high = reinterpret_cast<const float4*>(from)[1];
  }
  __device__ void unpack(float (&to)[kVector]) const {
    to[0] = low.x, to[1] = low.y, to[2] = low.z, to[3] = low.w;
    to[4] = high.x, to[5] = high.y, to[6] = high.z, to[7] = high.w;
  }
};

template <class T>
__device__ void load(const T* from, float (&to)[kVector]) {
  Packed<T> packed;
  packed.load(from);
  packed.unpack(to);
}

__device__ inline void store(Bf16* to, const float (&from)[kVector]) {
  Words words;
#pragma unroll
  for (int j = 0; j < 4; ++j) {
    const __nv_bfloat162 pair = __floats2bfloat162_rn(from[2 * j], from[2 * j + 1]);
    words.w[j] = *reinterpret_cast<const unsigned*>(&pair);
  }
  *reinterpret_cast<Words*>(to) = words;
}

__device__ inline void store(float* to, const float (&from)[kVector]) {
#pragma unroll
  for (int j = 0; j < 2; ++j)
    reinterpret_cast<float4*>(to)[j] =
        make_float4(from[4 * j], from[4 * j + 1], from[4 * j + 2], from[4 * j + 3]);
}

__device__ inline float as_float(float x) {
  return x;
}
__device__ inline float as_float(Bf16 x) {
  return __uint_as_float(static_cast<unsigned>(x.bits) << 16);
}

// What a launch knows beside its pointers.
struct Layout {
  int pixels, width, channels, groups, group_channels;
  int unit;        // channels that share a group within every vector: 1, 2, 4 or 8
  unsigned magic;  // group of channel c = umulhi(c, magic)
  float eps;
  bool silu;

  explicit Layout(const NormPass& pass)
      : pixels(static_cast<int>(pass.shape.pixels)),
        width(static_cast<int>(pass.width)),
        channels(static_cast<int>(pass.shape.channels)),
        groups(static_cast<int>(pass.shape.groups)),
        group_channels(channels / groups),
        unit(std::gcd(group_channels, kVector)),
        magic(group_channels == 1 ? 0 : static_cast<unsigned>(0x100000000ull / group_channels) + 1),
        eps(pass.shape.eps),
        silu(pass.shape.silu) {}
  __device__ int group(int channel) const {
    return group_channels == 1 ? channel : static_cast<int>(__umulhi(static_cast<unsigned>(channel), magic));
  }
};

// The channel vector at [image][pixel][channel] is column(pixel).
template <class T>
struct Column {
  T* at;
  int stride;
  __device__ Column(const Joined<T>& x, int image, int pixels, int channels, int channel) {
    const int first = static_cast<int>(x.first_channels);
    const bool second = channel >= first;
    stride = second ? channels - first : first;
    at = (second ? x.second + (channel - first) : x.first + channel) +
         static_cast<std::int64_t>(image) * pixels * stride;
  }
  __device__ T* operator()(int pixel) const { return at + static_cast<std::int64_t>(pixel) * stride; }
};

// What reaches pixel `pixel` of x from a tensor of the result's size, through the transpose of the resizing.
template <Size kSize, class T>
__device__ void load_back(const Column<const T>& column, int pixel, int width, float (&to)[kVector]) {
  if constexpr (kSize == Size::same) {
    load(column(pixel), to);
  } else {
    const int row = pixel / width, across = pixel - row * width;
    if constexpr (kSize == Size::half) {  // one of four that were averaged
      load(column((row >> 1) * (width >> 1) + (across >> 1)), to);
#pragma unroll
      for (int j = 0; j < kVector; ++j) to[j] *= 0.25f;
    } else {  // went to four places
      const int corner = 4 * row * width + 2 * across;
      float v[kVector];
      load(column(corner), to);
#pragma unroll
      for (int k = 1; k < 4; ++k) {
        load(column(corner + (k & 1) + (k >> 1) * 2 * width), v);
#pragma unroll
        for (int j = 0; j < kVector; ++j) to[j] += v[j];
      }
    }
  }
}

// use(held, pixel) for pixels first, first + step, ..., after load(held, pixel): kAhead of them are fetched
// before the first is used, so that memory is not waited for one by one.
template <int kAhead, class Held, class Load, class Use>
__device__ void walk(int first, int step, int pixels, Load load_pixel, Use use) {
  for (int pixel = first; pixel < pixels; pixel += kAhead * step) {
    Held held[kAhead];
#pragma unroll
    for (int i = 0; i < kAhead; ++i)
      if (pixel + i * step < pixels) load_pixel(held[i], pixel + i * step);
#pragma unroll
    for (int i = 0; i < kAhead; ++i)
      if (pixel + i * step < pixels) use(held[i], pixel + i * step);
  }
}

// For one channel: z = slope * x + intercept, xhat = rstd * x + start, gain = dz / dxhat.
struct Channels {
  float slope[kVector], intercept[kVector], rstd[kVector], start[kVector], gain[kVector];
};

// `of_group(g)`: float2 of mean and 1 / sqrt(var + eps).
template <class OfGroup>
__device__ Channels channels_of(const Layout& s, const NormParameters& p, int image, int channel,
                                OfGroup of_group) {
  Channels k;
  float gamma[kVector], beta[kVector], scale[kVector] = {}, shift[kVector] = {}, added[kVector] = {};
  load(p.gamma + channel, gamma);
  load(p.beta + channel, beta);
  if (p.scale) {
    load(p.scale + image * p.scale_row + channel, scale);
    load(p.shift + image * p.scale_row + channel, shift);
  }
  if (p.added) load(p.added + image * p.added_row + channel, added);
#pragma unroll
  for (int j = 0; j < kVector; ++j) {
    const float2 group = of_group(s.group(channel + (s.unit == kVector ? 0 : j)));
    k.rstd[j] = group.y;
    k.start[j] = (added[j] - group.x) * group.y;
    k.gain[j] = gamma[j] * (1.0f + scale[j]);
    k.slope[j] = k.rstd[j] * k.gain[j];
    k.intercept[j] = k.start[j] * k.gain[j] + beta[j] * (1.0f + scale[j]) + shift[j];
  }
  return k;
}

__device__ inline float silu(float z) {
  return __fdividef(z, 1.0f + __expf(-z));
}
__device__ inline float silu_slope(float z) {
  const float sigmoid = __fdividef(1.0f, 1.0f + __expf(-z));
  return sigmoid * (1.0f + z * (1.0f - sigmoid));
}

// Sums over the block: a block is (vectors, rows) threads, thread (v, r) has the sums a, b of each of its
// channels first_channel + 8 v + j. done(group - first_group, sums of the group) is called by one thread for
// each group. `shared` has 2 * 8 / unit floats for each thread.
template <class Done>
__device__ void sum_groups(const Layout& s, const float (&a)[kVector], const float (&b)[kVector],
                           float2* shared, int groups, Done done) {
  const int units = static_cast<int>(blockDim.x) * (kVector / s.unit), rows = static_cast<int>(blockDim.y);
  float2 sum = {0, 0};
  int unit = static_cast<int>(threadIdx.y) * units + static_cast<int>(threadIdx.x) * (kVector / s.unit);
#pragma unroll
  for (int j = 0; j < kVector; ++j) {
    sum.x += a[j];
    sum.y += b[j];
    if (((j + 1) & (s.unit - 1)) == 0) {
      shared[unit++] = sum;
      sum = {0, 0};
    }
  }
  __syncthreads();
  const int thread = static_cast<int>(threadIdx.y * blockDim.x + threadIdx.x);
  const int warps = static_cast<int>(blockDim.x * blockDim.y) / 32, warp = thread / 32, lane = thread % 32;
  const int group_units = s.group_channels / s.unit;
  if (warp < warps)  // a last, unfinished warp has no part in it
    for (int g = warp; g < groups; g += warps) {
      float2 total = {0, 0};
      for (int row = lane; row < rows; row += 32)
        for (int k = 0; k < group_units; ++k) {
          const float2 v = shared[row * units + g * group_units + k];
          total.x += v.x;
          total.y += v.y;
        }
#pragma unroll
      for (int d = 16; d > 0; d /= 2) {
        total.x += __shfl_xor_sync(0xffffffffu, total.x, d);
        total.y += __shfl_xor_sync(0xffffffffu, total.y, d);
      }
      if (lane == 0) done(g, total);
    }
}

// The sums of a slice, and in the picture's last block those of all slices: finish(group, sums) is called
// there once for each group. sums: [images][slices][groups].
template <class Finish>
__device__ void sum_slices(const Layout& s, const float (&a)[kVector], const float (&b)[kVector],
                           float2* shared, float2* sums, unsigned* arrived, Finish finish) {
  const int slices = static_cast<int>(gridDim.x), image = static_cast<int>(blockIdx.y);
  if (slices == 1) {
    sum_groups(s, a, b, shared, s.groups, finish);
    return;
  }
  float2* of_image = sums + static_cast<std::int64_t>(image) * slices * s.groups;
  sum_groups(s, a, b, shared, s.groups, [&](int g, float2 total) {
    __stcg(of_image + static_cast<int>(blockIdx.x) * s.groups + g, total);
    __threadfence();
  });
  __shared__ bool last;
  __syncthreads();
  const int thread = static_cast<int>(threadIdx.y * blockDim.x + threadIdx.x);
  if (thread == 0) {
    last = atomicAdd(arrived + image, 1u) == static_cast<unsigned>(slices) - 1;
    if (last) arrived[image] = 0;  // for the next call
    __threadfence();
  }
  __syncthreads();
  if (!last) return;
  // Eight neighbouring threads share a group.
  const int whole = static_cast<int>(blockDim.x * blockDim.y) / 32 * 32;
  if (thread >= whole) return;
  for (int first = 0; first < s.groups; first += whole / 8) {
    const int g = first + thread / 8;
    float2 total = {0, 0};
    if (g < s.groups) {
#pragma unroll 8
      for (int slice = thread % 8; slice < slices; slice += 8) {
        const float2 v = __ldcg(of_image + slice * s.groups + g);
        total.x += v.x;
        total.y += v.y;
      }
    }
#pragma unroll
    for (int d = 4; d > 0; d /= 2) {
      total.x += __shfl_xor_sync(0xffffffffu, total.x, d);
      total.y += __shfl_xor_sync(0xffffffffu, total.y, d);
    }
    if (g < s.groups && thread % 8 == 0) finish(g, total);
  }
}

// ---- on the host

inline dim3 slice_threads(const NormShape& s) {
  const auto vectors = static_cast<unsigned>(s.channels / kVector);
  return {vectors, kThreads / vectors, 1};
}

inline dim3 slice_grid(const NormShape& s, std::int64_t pixels, int pixels_each, int blocks) {
  const std::int64_t at_once = static_cast<std::int64_t>(slice_threads(s).y) * pixels_each;
  const std::int64_t most = std::max<std::int64_t>(1, blocks / s.images);
  return {static_cast<unsigned>(std::clamp<std::int64_t>((pixels + at_once - 1) / at_once, 1, most)),
          static_cast<unsigned>(s.images), 1};
}

inline dim3 sum_grid(const NormShape& s) {
  return slice_grid(s, s.pixels, 8, kSliceBlocks * static_cast<int>(std::min<std::int64_t>(s.images, 4)));
}

inline std::size_t shared_bytes(const NormShape& s, dim3 threads) {
  const auto unit = static_cast<unsigned>(std::gcd<std::int64_t>(s.channels / s.groups, kVector));
  return sizeof(float2) * threads.x * threads.y * (kVector / unit);
}

// Channels of one block when a slab of them fits a block's registers; 0: it does not, or two kernels are
// faster. Whole groups, whole vectors, and rows of at least 64 bytes of bf16 where that is possible.
inline std::int64_t slab_channels(const NormShape& s) {
  if (s.pixels > kSlabPixels) return 0;
  const std::int64_t least = std::lcm<std::int64_t>(s.channels / s.groups, kVector);
  if (s.channels % least != 0) return 0;
  const auto fits = [&](std::int64_t slab) {
    const std::int64_t vectors = slab / kVector, rows = kSlabThreads / vectors;
    return vectors <= 32 && s.pixels <= rows * kHeld;
  };
  std::int64_t slab = 0;
  for (std::int64_t k = 1; k * least <= s.channels && (slab < 32); ++k)
    if (s.channels % (k * least) == 0 && fits(k * least)) slab = k * least;
  return slab;
}

inline dim3 slab_threads(std::int64_t slab) {
  const auto vectors = static_cast<unsigned>(slab / kVector);
  return {vectors, kSlabThreads / vectors, 1};
}

inline void check_channels(std::int64_t channels) {
  check(channels > 0 && channels % kVector == 0 && channels <= kMaxNormChannels,
        "the GPU's norm takes channels in multiples of ", kVector, " up to ", kMaxNormChannels, ", not ",
        channels);
}

inline void check_pass(const NormPass& pass, std::int64_t first_channels, bool has_second) {
  const NormShape& s = pass.shape;
  check_channels(s.channels);
  check_channels(first_channels);
  check(s.channels % s.groups == 0, s.channels, " channels do not divide into ", s.groups, " groups");
  check(has_second == (first_channels < s.channels), "the GPU's norm: the parts do not make up ", s.channels,
        " channels");
  check(s.images <= 65535, "the GPU's norm takes at most 65535 pictures, not ", s.images);
  check(pass.size == Size::same || (pass.width > 0 && s.pixels % pass.width == 0),
        "the GPU's norm: ", s.pixels, " pixels are not rows of ", pass.width);
}

}  // namespace dpg::cuda
