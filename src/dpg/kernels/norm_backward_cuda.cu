#include "dpg/kernels/norm_cuda.cuh"

namespace dpg::cuda {
namespace {

// dz = dy * silu'(z). Adds dz and dz * x to the sums.
__device__ void add_products(const Layout& s, const Channels& k, const float (&v)[kVector],
                             const float (&g)[kVector], float (&sum)[kVector], float (&product)[kVector]) {
#pragma unroll
  for (int j = 0; j < kVector; ++j) {
    const float dz = s.silu ? g[j] * silu_slope(fmaf(k.slope[j], v[j], k.intercept[j])) : g[j];
    sum[j] += dz;
    product[j] += dz * v[j];
  }
}

// From those sums to the sums of dxhat = dz * gain and of dxhat * xhat.
__device__ void finish_products(const Channels& k, float (&sum)[kVector], float (&product)[kVector]) {
#pragma unroll
  for (int j = 0; j < kVector; ++j) {
    product[j] = k.gain[j] * fmaf(k.rstd[j], product[j], k.start[j] * sum[j]);
    sum[j] *= k.gain[j];
  }
}

__device__ float2 means_of(const Layout& s, float2 sums) {
  const float count = static_cast<float>(s.pixels) * static_cast<float>(s.group_channels);
  return {sums.x / count, sums.y / count};
}

// dx = rstd * (dz * gain - mean - xhat * along) = slope * dz + tilt * x + level.
struct Slopes {
  float slope[kVector], intercept[kVector], tilt[kVector], level[kVector];
};

template <class OfGroup>
__device__ Slopes slopes_of(const Layout& s, const Channels& k, int channel, OfGroup means) {
  Slopes r;
#pragma unroll
  for (int j = 0; j < kVector; ++j) {
    const float2 mean = means(s.group(channel + (s.unit == kVector ? 0 : j)));
    r.slope[j] = k.slope[j], r.intercept[j] = k.intercept[j];
    r.tilt[j] = -k.rstd[j] * k.rstd[j] * mean.y;
    r.level[j] = -k.rstd[j] * (mean.x + k.start[j] * mean.y);
  }
  return r;
}

__device__ void gradient(const Layout& s, const Slopes& k, float (&v)[kVector], const float (&g)[kVector],
                         const float (&e)[kVector]) {
#pragma unroll
  for (int j = 0; j < kVector; ++j) {
    const float dz = s.silu ? g[j] * silu_slope(fmaf(k.slope[j], v[j], k.intercept[j])) : g[j];
    v[j] = fmaf(k.slope[j], dz, fmaf(k.tilt[j], v[j], k.level[j])) + e[j];
  }
}

__device__ int results_of(const Layout& s, Size size) {
  return size == Size::half ? s.pixels / 4 : size == Size::twice ? 4 * s.pixels : s.pixels;
}

template <class T, class Y, Size kSize>
__global__ void __launch_bounds__(kThreads, 3)
    backward_sums(Layout s, NormParameters p, Joined<const T> x, const float2* statistics, const Y* dy,
                  float2* sums, unsigned* arrived, float2* means) {
  extern __shared__ float2 shared[];
  const int image = static_cast<int>(blockIdx.y), channel = static_cast<int>(threadIdx.x) * kVector;
  // Fetched again behind the loop, which needs two fifths of them: registers decide how many blocks share a
  // processor, and with it how much is on its way from memory.
  const auto constants = [&] {
    asm volatile("" ::: "memory");
    return channels_of(s, p, image, channel, [&](int g) { return statistics[image * s.groups + g]; });
  };
  const Channels k = constants();
  float sum[kVector] = {}, product[kVector] = {};
  const Column<const T> column(x, image, s.pixels, s.channels, channel);
  const Column<const Y> from({dy, s.channels, nullptr}, image, results_of(s, kSize), s.channels, channel);
  struct Held {
    Packed<T> x;
    Packed<Y> dy;  // where the size stays; elsewhere it is put together when it is used
  };
  walk<2, Held>(
      static_cast<int>(blockIdx.x * blockDim.y + threadIdx.y), static_cast<int>(blockDim.y * gridDim.x),
      s.pixels,
      [&](Held& held, int pixel) {
        held.x.load(column(pixel));
        if constexpr (kSize == Size::same) held.dy.load(from(pixel));
      },
      [&](const Held& held, int pixel) {
        float v[kVector], g[kVector];
        held.x.unpack(v);
        if constexpr (kSize == Size::same)
          held.dy.unpack(g);
        else
          load_back<kSize>(from, pixel, s.width, g);
        add_products(s, k, v, g, sum, product);
      });
  finish_products(constants(), sum, product);
  sum_slices(s, sum, product, shared, sums, arrived,
             [&](int group, float2 total) { means[image * s.groups + group] = means_of(s, total); });
}

// What is added to the gradient, one pixel after the other.
template <class T, Size kSize>
struct Extra {
  bool adds_straight, adds_other;
  int width;
  Column<const T> straight, other;

  __device__ Extra(const Layout& s, const NormAdded<T>& added, int image, int channel)
      : adds_straight(added.straight.first != nullptr),
        adds_other(added.other != nullptr),
        width(s.width),
        straight(added.straight, image, results_of(s, kSize), s.channels, channel),
        other({added.other, s.channels, nullptr}, image, s.pixels, s.channels, channel) {}
  __device__ void at(int pixel, float (&e)[kVector]) const {
    if (adds_straight) load_back<kSize>(straight, pixel, width, e);
    if (!adds_other) return;
    float o[kVector];
    load(other(pixel), o);
#pragma unroll
    for (int j = 0; j < kVector; ++j) e[j] += o[j];
  }
};

template <class T, class Y, Size kSize>
__global__ void __launch_bounds__(kThreads)
    backward_apply(Layout s, NormParameters p, Joined<const T> x, const float2* statistics, const Y* dy,
                   const float2* means, NormAdded<T> added, Joined<T> dx) {
  const int image = static_cast<int>(blockIdx.y), channel = static_cast<int>(threadIdx.x) * kVector;
  const auto of_group = [&](int g) { return statistics[image * s.groups + g]; };
  const Slopes k = slopes_of(s, channels_of(s, p, image, channel, of_group), channel,
                             [&](int g) { return means[image * s.groups + g]; });
  const Column<const T> column(x, image, s.pixels, s.channels, channel);
  const Column<const Y> from({dy, s.channels, nullptr}, image, results_of(s, kSize), s.channels, channel);
  const Column<T> to(dx, image, s.pixels, s.channels, channel);
  const Extra<T, kSize> extra(s, added, image, channel);
  const int step = static_cast<int>(blockDim.y * gridDim.x);
  for (int pixel = static_cast<int>(blockIdx.x * blockDim.y + threadIdx.y); pixel < s.pixels; pixel += step) {
    float v[kVector], g[kVector], e[kVector] = {};
    load(column(pixel), v);
    load_back<kSize>(from, pixel, s.width, g);
    extra.at(pixel, e);
    gradient(s, k, v, g, e);
    store(to(pixel), v);
  }
}

// A slab of channels of one picture, held in registers between the sums and the result.
template <class T, class Y>
__global__ void __launch_bounds__(kSlabThreads)
    backward_slab(Layout s, NormParameters p, Joined<const T> x, const float2* statistics, const Y* dy,
                  NormAdded<T> added, Joined<T> dx) {
  extern __shared__ float2 shared[];
  __shared__ float2 means[32 * kVector];
  const int image = static_cast<int>(blockIdx.y);
  const int slab = static_cast<int>(blockDim.x) * kVector, first = static_cast<int>(blockIdx.x) * slab;
  const int channel = first + static_cast<int>(threadIdx.x) * kVector, rows = static_cast<int>(blockDim.y);
  const int row = static_cast<int>(threadIdx.y), first_group = s.group(first);
  const Column<const T> column(x, image, s.pixels, s.channels, channel);
  const Column<const Y> from({dy, s.channels, nullptr}, image, s.pixels, s.channels, channel);
  Packed<T> held[kHeld];
  Packed<Y> held_gradient[kHeld];
#pragma unroll
  for (int i = 0; i < kHeld; ++i)
    if (row + i * rows < s.pixels) {
      held[i].load(column(row + i * rows));
      held_gradient[i].load(from(row + i * rows));
    }
  // The channels' constants are fetched again where they are needed: registers are what is short here.
  const auto constants = [&] {
    asm volatile("" ::: "memory");
    return channels_of(s, p, image, channel, [&](int g) { return statistics[image * s.groups + g]; });
  };
  float sum[kVector] = {}, product[kVector] = {}, v[kVector], g[kVector];
  {
    const Channels k = constants();
#pragma unroll
    for (int i = 0; i < kHeld; ++i)
      if (row + i * rows < s.pixels) {
        held[i].unpack(v);
        held_gradient[i].unpack(g);
        add_products(s, k, v, g, sum, product);
      }
  }
  finish_products(constants(), sum, product);
  sum_groups(s, sum, product, shared, slab / s.group_channels,
             [&](int group, float2 total) { means[group] = means_of(s, total); });
  __syncthreads();
  const Slopes r = slopes_of(s, constants(), channel, [&](int group) { return means[group - first_group]; });
  const Column<T> to(dx, image, s.pixels, s.channels, channel);
  const Extra<T, Size::same> extra(s, added, image, channel);
#pragma unroll
  for (int i = 0; i < kHeld; ++i)
    if (row + i * rows < s.pixels) {
      float e[kVector] = {};
      extra.at(row + i * rows, e);
      held[i].unpack(v);
      held_gradient[i].unpack(g);
      gradient(s, r, v, g, e);
      store(to(row + i * rows), v);
    }
}

template <class T, class Y, Size kSize>
void run_slices(const NormPass& pass, const NormParameters& p, const Joined<const T>& x,
                const float2* statistics, const Y* dy, const NormAdded<T>& added, const Joined<T>& dx,
                const NormWorkspace& workspace, CUstream_st* stream) {
  const NormShape& s = pass.shape;
  const dim3 grid = sum_grid(s), threads = slice_threads(s);
  auto* sums = reinterpret_cast<float2*>(workspace.sums);
  float2* means = sums + s.images * s.groups * grid.x;
  backward_sums<T, Y, kSize><<<grid, threads, shared_bytes(s, threads), stream>>>(
      Layout(pass), p, x, statistics, dy, sums, workspace.arrived, means);
  backward_apply<T, Y, kSize><<<slice_grid(s, s.pixels, 4, kApplyBlocks), threads, 0, stream>>>(
      Layout(pass), p, x, statistics, dy, means, added, dx);
}

}  // namespace

template <class T, class Y>
void norm_backward(const NormPass& pass, const NormParameters& p, const Joined<const T>& x,
                   const float* statistics, const Y* dy, const NormAdded<T>& added, const Joined<T>& dx,
                   const NormWorkspace& workspace, CUstream_st* stream) {
  check_pass(pass, x.first_channels, x.second != nullptr);
  check(!added.other || !x.second, "the GPU's norm: what others add is for an input of one part");
  const NormShape& s = pass.shape;
  const auto* moments_of = reinterpret_cast<const float2*>(statistics);
  const std::int64_t slab = pass.size == Size::same ? slab_channels(s) : 0;
  if (slab > 0) {
    const dim3 grid(static_cast<unsigned>(s.channels / slab), static_cast<unsigned>(s.images), 1);
    const dim3 threads = slab_threads(slab);
    backward_slab<T, Y>
        <<<grid, threads, shared_bytes(s, threads), stream>>>(Layout(pass), p, x, moments_of, dy, added, dx);
  } else {
    const auto run = pass.size == Size::same   ? run_slices<T, Y, Size::same>
                     : pass.size == Size::half ? run_slices<T, Y, Size::half>
                                               : run_slices<T, Y, Size::twice>;
    run(pass, p, x, moments_of, dy, added, dx, workspace, stream);
  }
  check_launch("the norm's reverse pass");
}

#define DPG_NORM(T, Y)                                                                                      \
  template void norm_backward(const NormPass&, const NormParameters&, const Joined<const T>&, const float*, \
                              const Y*, const NormAdded<T>&, const Joined<T>&, const NormWorkspace&,        \
                              CUstream_st*);
DPG_NORM(float, float)
DPG_NORM(Bf16, Bf16)
DPG_NORM(Bf16, float)
#undef DPG_NORM

}  // namespace dpg::cuda
