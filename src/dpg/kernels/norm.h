// GroupNorm, then scale and shift per image, then SiLU, as one pass: the part of the U-Net that is not
// convolution.
//
//   h = (x - mean_g) / sqrt(var_g + eps) * gamma + beta        per image and group of channels
//   z = h * (1 + scale) + shift                                 optional, per image and channel
//   y = z * sigmoid(z)                                          optional
//
// Layout: channels last, x[image][pixel][channel]; statistics and arithmetic in float whatever the storage
// is. No torch here: raw pointers. Each function exists once per instruction set (core/cpu.h picks) and is
// tested against the plain reference.
#pragma once

#include <cstdint>

#include "dpg/core/cpu.h"

namespace dpg::kernels {

// A 16-bit brain float as it is stored; arithmetic is done in float.
struct Bf16 {
  std::uint16_t bits;
};

struct NormShape {
  std::int64_t images = 0;
  std::int64_t pixels = 0;    // height * width
  std::int64_t channels = 0;  // a multiple of groups
  std::int64_t groups = 0;
  float eps = 1e-5f;
  bool silu = true;
};

struct NormParameters {
  const float* gamma = nullptr;  // [channels]
  const float* beta = nullptr;   // [channels]
  const float* scale = nullptr;  // [images][channels], or null for none; scale and shift come together
  const float* shift = nullptr;
};

// statistics: [images][groups][2] = mean, 1 / sqrt(var + eps), written here and read by the backward pass.
template <class T>
void norm_forward(const NormShape& shape, const NormParameters& parameters, const T* x, T* y,
                  float* statistics, Isa isa = best_isa());

// Where the gradient goes: channels [0, first_channels) to `first`, the rest to `second`, each a tensor of
// its own. That is the gradient of a concatenation, without writing it whole and cutting it afterwards.
template <class T>
struct NormGradient {
  T* first = nullptr;               // [images][pixels][first_channels]
  std::int64_t first_channels = 0;  // all channels: no second part
  T* second = nullptr;              // [images][pixels][channels - first_channels]
};

// dx = (dy/dx)^T dy, with everything else held constant, plus `add` where it is given: what reaches x along a
// skip connection. x, dy, add: [images][pixels][channels].
// dy is used up: the first pass leaves dy * silu'(z) in it, so that the second computes no exponential.
template <class T>
void norm_backward(const NormShape& shape, const NormParameters& parameters, const T* x,
                   const float* statistics, T* dy, const T* add, const NormGradient<T>& dx,
                   Isa isa = best_isa());

}  // namespace dpg::kernels
