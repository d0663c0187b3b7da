// The three compiled versions of the norm kernels; only norm.cpp and the tests include this.
#pragma once

#include "dpg/kernels/norm.h"

#define DPG_DECLARE_NORM(isa)                                                                              \
  namespace isa {                                                                                          \
  void forward(const NormShape&, const NormParameters&, const float*, float*, float*);                     \
  void forward(const NormShape&, const NormParameters&, const Bf16*, Bf16*, float*);                       \
  void backward(const NormShape&, const NormParameters&, const float*, const float*, float*, const float*, \
                const NormGradient<float>&);                                                               \
  void backward(const NormShape&, const NormParameters&, const Bf16*, const float*, Bf16*, const Bf16*,    \
                const NormGradient<Bf16>&);                                                                \
  }

namespace dpg::kernels::simd {
DPG_DECLARE_NORM(baseline)
DPG_DECLARE_NORM(avx2)
DPG_DECLARE_NORM(avx512)
}  // namespace dpg::kernels::simd
