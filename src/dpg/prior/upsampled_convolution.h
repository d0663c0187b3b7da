// A 3x3 convolution of an image whose pixels were doubled, without doubling them. Output pixel 2i+a sees only
// two distinct input pixels per axis, so its three taps fold into two:
//
//   a = 0:  i-1 with w0,       i   with w1 + w2
//   a = 1:  i   with w0 + w1,  i+1 with w2
//
// Four 2x2 convolutions of the small image, one per parity, need 4/9 of the multiplications. The transpose is
// one 4x4 convolution of stride 2.
#pragma once

#include <torch/types.h>

#include <array>

namespace dpg {

using torch::Tensor;

struct UpsampledConvolution {
  std::array<Tensor, 4> parity;  // [C_out, C_in, 2, 2] for output parities (0,0), (0,1), (1,0), (1,1)
  Tensor strided;                // [C_in, C_out, 4, 4], the transpose's weight

  UpsampledConvolution() = default;
  UpsampledConvolution(const Tensor& weight, torch::ScalarType type);  // weight: [C_out, C_in, 3, 3]

  Tensor forward(const Tensor& x, const Tensor& bias) const;              // [N, C_out, 2H, 2W]
  static Tensor backward(const Tensor& gradient, const Tensor& strided);  // [N, C_in, H, W]
};

}  // namespace dpg
