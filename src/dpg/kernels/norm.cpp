#include "dpg/kernels/norm.h"

#include "dpg/core/error.h"
#include "dpg/kernels/norm_simd.h"

namespace dpg::kernels {
namespace {

void check_shape(const NormShape& s, const NormParameters& p) {
  check(s.groups > 0 && s.channels % s.groups == 0, "group norm: ", s.channels,
        " channels do not split into ", s.groups, " groups");
  check((p.scale == nullptr) == (p.shift == nullptr), "group norm: scale and shift come together");
}

}  // namespace

template <class T>
void norm_forward(const NormShape& s, const NormParameters& p, const T* x, T* y, float* statistics, Isa isa) {
  check_shape(s, p);
  switch (isa) {
    case Isa::avx512:
      return simd::avx512::forward(s, p, x, y, statistics);
    case Isa::avx2:
      return simd::avx2::forward(s, p, x, y, statistics);
    case Isa::baseline:
      return simd::baseline::forward(s, p, x, y, statistics);
  }
}

template <class T>
void norm_backward(const NormShape& s, const NormParameters& p, const T* x, const float* statistics, T* dy,
                   const T* add, const NormGradient<T>& dx, Isa isa) {
  check_shape(s, p);
  check(dx.first != nullptr && dx.first_channels > 0 && dx.first_channels <= s.channels &&
            (dx.second != nullptr) == (dx.first_channels < s.channels),
        "group norm: the gradient's parts do not add up to ", s.channels, " channels");
  switch (isa) {
    case Isa::avx512:
      return simd::avx512::backward(s, p, x, statistics, dy, add, dx);
    case Isa::avx2:
      return simd::avx2::backward(s, p, x, statistics, dy, add, dx);
    case Isa::baseline:
      return simd::baseline::backward(s, p, x, statistics, dy, add, dx);
  }
}

template void norm_forward(const NormShape&, const NormParameters&, const float*, float*, float*, Isa);
template void norm_forward(const NormShape&, const NormParameters&, const Bf16*, Bf16*, float*, Isa);
template void norm_backward(const NormShape&, const NormParameters&, const float*, const float*, float*,
                            const float*, const NormGradient<float>&, Isa);
template void norm_backward(const NormShape&, const NormParameters&, const Bf16*, const float*, Bf16*,
                            const Bf16*, const NormGradient<Bf16>&, Isa);

}  // namespace dpg::kernels
