// The norm of norm.h on the GPU, and the sum that ends a residual block. Raw pointers and a stream: no torch,
// no CUDA headers here. Layout as in norm.h, channels last; channels are a multiple of 8 and at most 2048;
// pointers are aligned to 16 bytes.
//
// A small picture is one kernel: a block holds a slab of channels in registers, adds it up and finishes it. A
// large one is two: the first adds up slices of the picture, and the block that comes last for a picture adds
// up the slices in their order; the second reads its input from the cache where the first one left it. Either
// way the same bits come out every time.
#pragma once

#include <cstdint>

#include "dpg/kernels/norm.h"

struct CUstream_st;

namespace dpg::cuda {

// A tensor in one or two parts along its channels: the concatenation, without writing it.
template <class T>
struct Joined {
  T* first = nullptr;               // [images][pixels][first_channels]
  std::int64_t first_channels = 0;  // a multiple of 8
  T* second = nullptr;              // [images][pixels][channels - first_channels]; null when there is none
};

struct NormParameters {
  const float* gamma = nullptr;  // [channels]
  const float* beta = nullptr;   // [channels]
  const float* scale = nullptr;  // [images][row], or null for none; scale and shift come together
  const float* shift = nullptr;
  std::int64_t scale_row = 0;    // numbers from one image's scale to the next one's
  const float* added = nullptr;  // added to x before the norm: a convolution's bias; null for none
  std::int64_t added_row = 0;    // 0: the same for every image
};

// The size of a result beside its input's: a block that resamples does so in the kernel that writes or reads.
enum class Size {
  same,
  half,   // each result is the mean of 2x2
  twice,  // each value goes to 2x2 places
};

struct NormPass {
  kernels::NormShape shape;
  std::int64_t width = 0;  // of x; needed where the size changes, and both sides are even for half
  Size size = Size::same;
};

// Memory for one call, kept between calls on one stream.
struct NormWorkspace {
  float* sums = nullptr;        // norm_workspace_floats(shape) of them
  unsigned* arrived = nullptr;  // [images], zero before the first call; each call leaves them zero
};
inline constexpr std::int64_t kMaxNormChannels = 2048;
std::int64_t norm_workspace_floats(const kernels::NormShape& shape);

// y: resized as pass.size says. statistics: [images][groups][2] = mean, 1 / sqrt(var + eps), for
// norm_backward. Types: T of the activations, Y of the result; float or kernels::Bf16.
template <class T, class Y>
void norm_forward(const NormPass& pass, const NormParameters& parameters, const Joined<const T>& x, Y* y,
                  float* statistics, const NormWorkspace& workspace, CUstream_st* stream);

// What else reaches x in the reverse pass.
template <class T>
struct NormAdded {
  Joined<const T> straight;  // along a connection that was resized as the result: of its size; null for none
  const T* other = nullptr;  // from others that took x, which then has one part: of its size; null for none
};

// dx = (dy/dx)^T dy + what is added, in the parts x has. dy has the size of the result.
template <class T, class Y>
void norm_backward(const NormPass& pass, const NormParameters& parameters, const Joined<const T>& x,
                   const float* statistics, const Y* dy, const NormAdded<T>& added, const Joined<T>& dx,
                   const NormWorkspace& workspace, CUstream_st* stream);

// out += other resized + bias. out: [images][height * width of it][channels]; `width` and `size` are of
// other: its width, and what out is beside it. bias: [channels], or null for none.
template <class T>
void add_with_bias(std::int64_t images, std::int64_t out_pixels, std::int64_t channels, T* out,
                   const T* other, std::int64_t width, Size size, const float* bias, CUstream_st* stream);

}  // namespace dpg::cuda
