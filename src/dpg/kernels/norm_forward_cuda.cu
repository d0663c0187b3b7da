#include "dpg/kernels/norm_cuda.cuh"

namespace dpg::cuda {
namespace {

// A value of each group stands in for its mean until that is known: the sum of squares stays small.
template <class T>
__device__ float centre(const Layout& s, const NormParameters& p, const Joined<const T>& x, int image,
                        int group) {
  const int c = group * s.group_channels;
  return as_float(*Column<const T>(x, image, s.pixels, s.channels, c)(0)) +
         (p.added ? p.added[image * p.added_row + c] : 0.0f);
}

template <class T>
__device__ void offsets(const Layout& s, const NormParameters& p, const Joined<const T>& x, int image,
                        int channel, float (&offset)[kVector]) {
  float added[kVector] = {};
  if (p.added) load(p.added + image * p.added_row + channel, added);
#pragma unroll
  for (int j = 0; j < kVector; ++j)
    offset[j] = added[j] - centre(s, p, x, image, s.group(channel + (s.unit == kVector ? 0 : j)));
}

__device__ float2 moments(const Layout& s, float2 sums, float centre_of_group) {
  const float count = static_cast<float>(s.pixels) * static_cast<float>(s.group_channels);
  const float mean = sums.x / count, variance = fmaxf(sums.y / count - mean * mean, 0.0f);
  return {centre_of_group + mean, rsqrtf(variance + s.eps)};
}

__device__ void add_moments(const float (&v)[kVector], const float (&offset)[kVector], float (&sum)[kVector],
                            float (&squares)[kVector]) {
#pragma unroll
  for (int j = 0; j < kVector; ++j) {
    const float d = v[j] + offset[j];
    sum[j] += d;
    squares[j] += d * d;
  }
}

__device__ void normalise(const Layout& s, const Channels& k, float (&v)[kVector]) {
#pragma unroll
  for (int j = 0; j < kVector; ++j) {
    const float z = fmaf(k.slope[j], v[j], k.intercept[j]);
    v[j] = s.silu ? silu(z) : z;
  }
}

template <class T>
__global__ void __launch_bounds__(kThreads)
    forward_sums(Layout s, NormParameters p, Joined<const T> x, float2* sums, unsigned* arrived,
                 float2* statistics) {
  extern __shared__ float2 shared[];
  const int image = static_cast<int>(blockIdx.y), channel = static_cast<int>(threadIdx.x) * kVector;
  float sum[kVector] = {}, squares[kVector] = {}, offset[kVector];
  offsets(s, p, x, image, channel, offset);
  const Column<const T> column(x, image, s.pixels, s.channels, channel);
  walk<4, Packed<T>>(
      static_cast<int>(blockIdx.x * blockDim.y + threadIdx.y), static_cast<int>(blockDim.y * gridDim.x),
      s.pixels, [&](Packed<T>& held, int pixel) { held.load(column(pixel)); },
      [&](const Packed<T>& held, int) {
        float v[kVector];
        held.unpack(v);
        add_moments(v, offset, sum, squares);
      });
  sum_slices(s, sum, squares, shared, sums, arrived, [&](int group, float2 total) {
    statistics[image * s.groups + group] = moments(s, total, centre(s, p, x, image, group));
  });
}

template <class T, class Y, Size kSize>
__global__ void __launch_bounds__(kThreads)
    forward_apply(Layout s, NormParameters p, Joined<const T> x, const float2* statistics, Y* y) {
  const int image = static_cast<int>(blockIdx.y), channel = static_cast<int>(threadIdx.x) * kVector;
  const Channels k =
      channels_of(s, p, image, channel, [&](int g) { return statistics[image * s.groups + g]; });
  const int results = kSize == Size::half ? s.pixels / 4 : kSize == Size::twice ? 4 * s.pixels : s.pixels;
  const Column<const T> from(x, image, s.pixels, s.channels, channel);
  const Column<Y> to({y, s.channels, nullptr}, image, results, s.channels, channel);
  const int first = static_cast<int>(blockIdx.x * blockDim.y + threadIdx.y);
  const int step = static_cast<int>(blockDim.y * gridDim.x), count = kSize == Size::half ? results : s.pixels;
  if constexpr (kSize == Size::same) {
    walk<2, Packed<T>>(
        first, step, count, [&](Packed<T>& held, int pixel) { held.load(from(pixel)); },
        [&](const Packed<T>& held, int pixel) {
          float v[kVector];
          held.unpack(v);
          normalise(s, k, v);
          store(to(pixel), v);
        });
    return;
  }
#pragma unroll 2
  for (int i = first; i < count; i += step) {
    float v[kVector];
    if constexpr (kSize == Size::twice) {
      load(from(i), v);
      normalise(s, k, v);
      const int row = i / s.width, corner = 4 * row * s.width + 2 * (i - row * s.width);
#pragma unroll
      for (int q = 0; q < 4; ++q) store(to(corner + (q & 1) + (q >> 1) * 2 * s.width), v);
    } else {
      const int half = s.width / 2, row = i / half, corner = 2 * row * s.width + 2 * (i - row * half);
      float sum[kVector] = {};
#pragma unroll
      for (int q = 0; q < 4; ++q) {
        load(from(corner + (q & 1) + (q >> 1) * s.width), v);
        normalise(s, k, v);
#pragma unroll
        for (int j = 0; j < kVector; ++j) sum[j] += 0.25f * v[j];
      }
      store(to(i), sum);
    }
  }
}

// A slab of channels of one picture, held in registers between the sums and the result.
template <class T, class Y>
__global__ void __launch_bounds__(kSlabThreads)
    forward_slab(Layout s, NormParameters p, Joined<const T> x, Y* y, float2* statistics) {
  extern __shared__ float2 shared[];
  __shared__ float2 of_group[32 * kVector];
  const int image = static_cast<int>(blockIdx.y);
  const int slab = static_cast<int>(blockDim.x) * kVector, first = static_cast<int>(blockIdx.x) * slab;
  const int channel = first + static_cast<int>(threadIdx.x) * kVector, rows = static_cast<int>(blockDim.y);
  const int row = static_cast<int>(threadIdx.y), first_group = s.group(first);
  const Column<const T> column(x, image, s.pixels, s.channels, channel);
  Packed<T> held[kHeld];
#pragma unroll
  for (int i = 0; i < kHeld; ++i)
    if (row + i * rows < s.pixels) held[i].load(column(row + i * rows));
  float sum[kVector] = {}, squares[kVector] = {}, offset[kVector], v[kVector];
  offsets(s, p, x, image, channel, offset);
#pragma unroll
  for (int i = 0; i < kHeld; ++i)
    if (row + i * rows < s.pixels) {
      held[i].unpack(v);
      add_moments(v, offset, sum, squares);
    }
  sum_groups(s, sum, squares, shared, slab / s.group_channels, [&](int g, float2 total) {
    const float2 m = moments(s, total, centre(s, p, x, image, first_group + g));
    of_group[g] = m;
    statistics[image * s.groups + first_group + g] = m;
  });
  __syncthreads();
  const Channels k = channels_of(s, p, image, channel, [&](int g) { return of_group[g - first_group]; });
  const Column<Y> to({y, s.channels, nullptr}, image, s.pixels, s.channels, channel);
#pragma unroll
  for (int i = 0; i < kHeld; ++i)
    if (row + i * rows < s.pixels) {
      held[i].unpack(v);
      normalise(s, k, v);
      store(to(row + i * rows), v);
    }
}

template <class T, class Y, Size kSize>
void run_apply(const NormPass& pass, const NormParameters& p, const Joined<const T>& x,
               const float2* statistics, Y* y, CUstream_st* stream) {
  const NormShape& s = pass.shape;
  const std::int64_t count = kSize == Size::half ? s.pixels / 4 : s.pixels;
  forward_apply<T, Y, kSize><<<slice_grid(s, count, 4, kApplyBlocks), slice_threads(s), 0, stream>>>(
      Layout(pass), p, x, statistics, y);
}

}  // namespace

std::int64_t norm_workspace_floats(const NormShape& s) {
  check_channels(s.channels);
  return 2 * s.images * s.groups * (sum_grid(s).x + 1);  // sums of slices, then the means of the reverse pass
}

template <class T, class Y>
void norm_forward(const NormPass& pass, const NormParameters& p, const Joined<const T>& x, Y* y,
                  float* statistics, const NormWorkspace& workspace, CUstream_st* stream) {
  check_pass(pass, x.first_channels, x.second != nullptr);
  const NormShape& s = pass.shape;
  auto* moments_of = reinterpret_cast<float2*>(statistics);
  const std::int64_t slab = pass.size == Size::same ? slab_channels(s) : 0;
  if (slab > 0) {
    const dim3 grid(static_cast<unsigned>(s.channels / slab), static_cast<unsigned>(s.images), 1);
    const dim3 threads = slab_threads(slab);
    forward_slab<T, Y>
        <<<grid, threads, shared_bytes(s, threads), stream>>>(Layout(pass), p, x, y, moments_of);
  } else {
    const dim3 threads = slice_threads(s);
    forward_sums<T><<<sum_grid(s), threads, shared_bytes(s, threads), stream>>>(
        Layout(pass), p, x, reinterpret_cast<float2*>(workspace.sums), workspace.arrived, moments_of);
    const auto apply = pass.size == Size::same   ? run_apply<T, Y, Size::same>
                       : pass.size == Size::half ? run_apply<T, Y, Size::half>
                                                 : run_apply<T, Y, Size::twice>;
    apply(pass, p, x, moments_of, y, stream);
  }
  check_launch("the norm");
}

#define DPG_NORM(T, Y)                                                                                   \
  template void norm_forward(const NormPass&, const NormParameters&, const Joined<const T>&, Y*, float*, \
                             const NormWorkspace&, CUstream_st*);
DPG_NORM(float, float)
DPG_NORM(Bf16, Bf16)
DPG_NORM(Bf16, float)
#undef DPG_NORM

}  // namespace dpg::cuda
