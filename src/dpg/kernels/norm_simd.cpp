// The norm kernels, written as plain loops over channels that the compiler vectorises for each instruction
// set. Threads split the pixels of one image: at batch 1 that is the only parallelism there is.
#include "dpg/kernels/norm_simd.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <vector>

namespace dpg::kernels::simd::DPG_SIMD {
namespace {

inline float load(float v) {
  return v;
}
inline float load(Bf16 v) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(v.bits) << 16);
}
inline void store(float* p, float v) {
  *p = v;
}
inline void store(Bf16* p, float v) {
  // Round to nearest even. A NaN must stay a NaN: rounding could carry it into infinity or zero.
  const auto bits = std::bit_cast<std::uint32_t>(v);
  const std::uint32_t rounded = (bits + 0x7FFFu + ((bits >> 16) & 1u)) >> 16;
  const bool nan = (bits & 0x7FFFFFFFu) > 0x7F800000u;
  p->bits = static_cast<std::uint16_t>(nan ? 0x7FC0u : rounded);
}

// a * b + c, fused where the instruction set has it: these loops are bound by arithmetic.
inline float mul_add(float a, float b, float c) {
#ifdef __FMA__
  return __builtin_fmaf(a, b, c);
#else
  return a * b + c;
#endif
}

// e^x to about 2 ulp: 2^n * e^r with a polynomial for |r| <= ln(2) / 2. libm's call would stop vectorisation.
inline float exp_fast(float x) {
  x = std::min(std::max(x, -87.0f), 88.0f);
  const float n = mul_add(x, 1.44269504088896341f, 12582912.0f) - 12582912.0f;  // rounds to an integer
  // The remainder x - n ln 2, with ln 2 in two parts to keep its low bits.
  const float r = mul_add(n, -1.42860682030941723e-6f, mul_add(n, -0.693145751953125f, x));
  float p = 1.9875691500e-4f;
  p = mul_add(p, r, 1.3981999507e-3f);
  p = mul_add(p, r, 8.3334519073e-3f);
  p = mul_add(p, r, 4.1665795894e-2f);
  p = mul_add(p, r, 1.6666665459e-1f);
  p = mul_add(p, r, 5.0000001201e-1f);
  p = mul_add(p, r * r, r) + 1.0f;
  const auto exponent = static_cast<std::uint32_t>(static_cast<std::int32_t>(n) + 127) << 23;
  return p * std::bit_cast<float>(exponent);
}

// A NaN has to come out as a NaN: min and max above would hide it, but z * sigmoid brings it back.
inline float sigmoid(float z) {
  return 1.0f / (1.0f + exp_fast(-z));
}

// Pixels are cut into this many chunks, whatever the number of threads, and partial sums are added in chunk
// order: the result does not depend on the thread count.
constexpr std::int64_t kChunks = 64;

struct Chunk {
  std::int64_t begin, end;
};
inline Chunk chunk_of(std::int64_t pixels, std::int64_t chunk) {
  return {pixels * chunk / kChunks, pixels * (chunk + 1) / kChunks};
}

// Per-channel sums over the chunks, [2][channels] in double, from partial[chunk][2][channels].
std::vector<double> add_chunks(const std::vector<float>& partial, std::int64_t channels) {
  std::vector<double> total(static_cast<std::size_t>(2 * channels), 0.0);
  for (std::int64_t k = 0; k < kChunks; ++k)
    for (std::int64_t c = 0; c < 2 * channels; ++c) total[c] += partial[k * 2 * channels + c];
  return total;
}

// z = a[c] * x + b[c] folds normalisation, affine, scale and shift into two numbers per channel.
struct Affine {
  std::vector<float> a, b;
};

Affine fold(const NormShape& s, const NormParameters& p, std::int64_t image, const float* statistics) {
  Affine f{std::vector<float>(s.channels), std::vector<float>(s.channels)};
  const std::int64_t width = s.channels / s.groups;
  for (std::int64_t c = 0; c < s.channels; ++c) {
    const float mean = statistics[(c / width) * 2], rstd = statistics[(c / width) * 2 + 1];
    const float one_plus_scale = p.scale != nullptr ? 1.0f + p.scale[image * s.channels + c] : 1.0f;
    const float shift = p.shift != nullptr ? p.shift[image * s.channels + c] : 0.0f;
    f.a[c] = rstd * p.gamma[c] * one_plus_scale;
    f.b[c] = (p.beta[c] - mean * rstd * p.gamma[c]) * one_plus_scale + shift;
  }
  return f;
}

// Mean and 1/sqrt(var) of each group. Sums are taken about the first pixel's values: a plain sum of squares
// loses the variance when the mean is large.
template <class T>
void compute_statistics(const NormShape& s, const T* x, float* statistics) {
  const std::int64_t C = s.channels, width = C / s.groups;
  std::vector<float> origin(C);
  for (std::int64_t g = 0; g < s.groups; ++g) {
    float sum = 0;
    for (std::int64_t j = 0; j < width; ++j) sum += load(x[g * width + j]);
    std::fill_n(origin.begin() + g * width, width, sum / static_cast<float>(width));
  }
  std::vector<float> partial(static_cast<std::size_t>(kChunks * 2 * C));
#pragma omp parallel for schedule(static)
  for (std::int64_t k = 0; k < kChunks; ++k) {
    float* __restrict sum = &partial[k * 2 * C];
    float* __restrict square = sum + C;
    const float* __restrict base = origin.data();
    std::fill_n(sum, 2 * C, 0.0f);
    const Chunk chunk = chunk_of(s.pixels, k);
    for (std::int64_t i = chunk.begin; i < chunk.end; ++i) {
      const T* __restrict row = x + i * C;
#pragma omp simd
      for (std::int64_t c = 0; c < C; ++c) {
        const float v = load(row[c]) - base[c];
        sum[c] += v;
        square[c] = mul_add(v, v, square[c]);
      }
    }
  }
  const std::vector<double> total = add_chunks(partial, C);
  const double count = static_cast<double>(s.pixels) * static_cast<double>(width);
  for (std::int64_t g = 0; g < s.groups; ++g) {
    double sum = 0, square = 0;
    for (std::int64_t c = g * width; c < (g + 1) * width; ++c) sum += total[c], square += total[C + c];
    const double mean = sum / count;
    const double variance = std::max(square / count - mean * mean, 0.0);
    statistics[2 * g] = static_cast<float>(mean + origin[g * width]);
    statistics[2 * g + 1] = static_cast<float>(1.0 / std::sqrt(variance + s.eps));
    // max() above drops a NaN; put it back so that the caller's check sees it.
    if (std::isnan(square)) statistics[2 * g + 1] = std::nanf("");
  }
}

template <bool Silu, class T>
void apply(const NormShape& s, const Affine& f, const T* x, T* y) {
  const std::int64_t C = s.channels;
#pragma omp parallel for schedule(static)
  for (std::int64_t k = 0; k < kChunks; ++k) {
    const float* __restrict a = f.a.data();
    const float* __restrict b = f.b.data();
    const Chunk chunk = chunk_of(s.pixels, k);
    for (std::int64_t i = chunk.begin; i < chunk.end; ++i) {
      const T* __restrict in = x + i * C;
      T* __restrict out = y + i * C;
#pragma omp simd
      for (std::int64_t c = 0; c < C; ++c) {
        const float z = mul_add(a[c], load(in[c]), b[c]);
        store(&out[c], Silu ? z * sigmoid(z) : z);
      }
    }
  }
}

// d silu(z) / dz, or 1.
template <bool Silu>
inline float slope(float z) {
  if constexpr (!Silu) return 1.0f;
  const float g = sigmoid(z);
  return mul_add(g * z, 1.0f - g, g);
}

// dx = a*dz + (k1 + k2*x) with, per group of n elements and w = dz * gamma * (1 + scale), xhat = (x - mean) *
// rstd:
//   dx = rstd * (w - sum(w)/n - xhat * sum(w*xhat)/n).
struct GradientTerms {
  Affine f;
  std::vector<float> k1, k2;
};

template <bool Silu, class T>
GradientTerms gradient_terms(const NormShape& s, const NormParameters& p, std::int64_t image, const T* x,
                             const float* statistics, T* dy) {
  const std::int64_t C = s.channels, width = C / s.groups;
  Affine f = fold(s, p, image, statistics);
  std::vector<float> mean_of(C);
  for (std::int64_t c = 0; c < C; ++c) mean_of[c] = statistics[(c / width) * 2];

  std::vector<float> partial(static_cast<std::size_t>(kChunks * 2 * C));
#pragma omp parallel for schedule(static)
  for (std::int64_t k = 0; k < kChunks; ++k) {
    float* __restrict sum = &partial[k * 2 * C];
    float* __restrict moment = sum + C;
    const float* __restrict a = f.a.data();
    const float* __restrict b = f.b.data();
    const float* __restrict mean = mean_of.data();
    std::fill_n(sum, 2 * C, 0.0f);
    const Chunk chunk = chunk_of(s.pixels, k);
    for (std::int64_t i = chunk.begin; i < chunk.end; ++i) {
      const T* __restrict in = x + i * C;
      T* __restrict grad = dy + i * C;
#pragma omp simd
      for (std::int64_t c = 0; c < C; ++c) {
        const float v = load(in[c]);
        const float dz = load(grad[c]) * slope<Silu>(mul_add(a[c], v, b[c]));
        if constexpr (Silu) store(&grad[c], dz);
        sum[c] += dz;
        moment[c] = mul_add(dz, v - mean[c], moment[c]);
      }
    }
  }
  const std::vector<double> total = add_chunks(partial, C);
  std::vector<float> k1_of(C), k2_of(C);
  const double count = static_cast<double>(s.pixels) * static_cast<double>(width);
  for (std::int64_t g = 0; g < s.groups; ++g) {
    const double mean = statistics[2 * g], rstd = statistics[2 * g + 1];
    // a = rstd * gamma * (1 + scale), so a * sums are rstd * sum(w) and rstd * sum(w * (x - mean)).
    double sum = 0, moment = 0;
    for (std::int64_t c = g * width; c < (g + 1) * width; ++c)
      sum += f.a[c] * total[c], moment += f.a[c] * total[C + c];
    const double k2 = -moment * rstd * rstd / count;
    for (std::int64_t c = g * width; c < (g + 1) * width; ++c) {
      k2_of[c] = static_cast<float>(k2);
      k1_of[c] = static_cast<float>(-sum / count - k2 * mean);
    }
  }
  return {std::move(f), std::move(k1_of), std::move(k2_of)};
}

// One pixel's channels [begin, end); `out` belongs to channel `begin`.
template <bool Add, class T>
inline void write_gradient(const GradientTerms& g, const T* __restrict x, const T* __restrict dz,
                           const T* __restrict add, std::int64_t begin, std::int64_t end, T* __restrict out) {
  const float* __restrict a = g.f.a.data();
  const float* __restrict k1 = g.k1.data();
  const float* __restrict k2 = g.k2.data();
#pragma omp simd
  for (std::int64_t c = begin; c < end; ++c) {
    const float v = load(x[c]);
    const float gradient = mul_add(a[c], load(dz[c]), mul_add(k2[c], v, k1[c]));
    store(&out[c - begin], Add ? gradient + load(add[c]) : gradient);
  }
}

template <bool Silu, bool Add, class T>
void backward_image(const NormShape& s, const NormParameters& p, std::int64_t image, const T* x,
                    const float* statistics, T* dy, const T* add, const NormGradient<T>& dx) {
  const GradientTerms terms = gradient_terms<Silu>(s, p, image, x, statistics, dy);
  const std::int64_t C = s.channels, first = dx.first_channels, second = C - first;
#pragma omp parallel for schedule(static)
  for (std::int64_t k = 0; k < kChunks; ++k) {
    const Chunk chunk = chunk_of(s.pixels, k);
    for (std::int64_t i = chunk.begin; i < chunk.end; ++i) {
      const T* along = Add ? add + i * C : nullptr;
      write_gradient<Add>(terms, x + i * C, dy + i * C, along, 0, first, dx.first + i * first);
      if (second > 0)
        write_gradient<Add>(terms, x + i * C, dy + i * C, along, first, C, dx.second + i * second);
    }
  }
}

template <class T>
void forward_all(const NormShape& s, const NormParameters& p, const T* x, T* y, float* statistics) {
  for (std::int64_t image = 0; image < s.images; ++image) {
    const std::int64_t offset = image * s.pixels * s.channels;
    float* own = statistics + image * s.groups * 2;
    compute_statistics(s, x + offset, own);
    const Affine f = fold(s, p, image, own);
    s.silu ? apply<true>(s, f, x + offset, y + offset) : apply<false>(s, f, x + offset, y + offset);
  }
}

template <bool Silu, class T>
void backward_all(const NormShape& s, const NormParameters& p, const T* x, const float* statistics, T* dy,
                  const T* add, const NormGradient<T>& dx) {
  for (std::int64_t image = 0; image < s.images; ++image) {
    const std::int64_t o = image * s.pixels * s.channels;
    const float* own = statistics + image * s.groups * 2;
    const std::int64_t second = s.channels - dx.first_channels;
    const NormGradient<T> part{dx.first + image * s.pixels * dx.first_channels, dx.first_channels,
                               second > 0 ? dx.second + image * s.pixels * second : nullptr};
    if (add != nullptr)
      backward_image<Silu, true>(s, p, image, x + o, own, dy + o, add + o, part);
    else
      backward_image<Silu, false>(s, p, image, x + o, own, dy + o, add, part);
  }
}

template <class T>
void backward_any(const NormShape& s, const NormParameters& p, const T* x, const float* statistics, T* dy,
                  const T* add, const NormGradient<T>& dx) {
  s.silu ? backward_all<true>(s, p, x, statistics, dy, add, dx)
         : backward_all<false>(s, p, x, statistics, dy, add, dx);
}

}  // namespace

void forward(const NormShape& s, const NormParameters& p, const float* x, float* y, float* statistics) {
  forward_all(s, p, x, y, statistics);
}
void forward(const NormShape& s, const NormParameters& p, const Bf16* x, Bf16* y, float* statistics) {
  forward_all(s, p, x, y, statistics);
}
void backward(const NormShape& s, const NormParameters& p, const float* x, const float* statistics, float* dy,
              const float* add, const NormGradient<float>& dx) {
  backward_any(s, p, x, statistics, dy, add, dx);
}
void backward(const NormShape& s, const NormParameters& p, const Bf16* x, const float* statistics, Bf16* dy,
              const Bf16* add, const NormGradient<Bf16>& dx) {
  backward_any(s, p, x, statistics, dy, add, dx);
}

}  // namespace dpg::kernels::simd::DPG_SIMD
