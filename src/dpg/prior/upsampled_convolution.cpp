#include "dpg/prior/upsampled_convolution.h"

#include <torch/torch.h>

namespace dpg {
namespace {

constexpr auto kChannelsLast = torch::MemoryFormat::ChannelsLast;

// Rows: what each of the two taps of output parity a takes of w0, w1, w2.
Tensor fold_matrix(int a) {
  return a == 0 ? torch::tensor({{1.0, 0.0, 0.0}, {0.0, 1.0, 1.0}}, torch::kDouble)
                : torch::tensor({{1.0, 1.0, 0.0}, {0.0, 0.0, 1.0}}, torch::kDouble);
}

}  // namespace

UpsampledConvolution::UpsampledConvolution(const Tensor& weight, torch::ScalarType type) {
  const Tensor w = weight.to(torch::kDouble);  // sums are rounded once, when stored
  strided = torch::zeros({weight.size(1), weight.size(0), 4, 4}, w.options());
  for (int a = 0; a < 2; ++a)
    for (int b = 0; b < 2; ++b) {
      const Tensor folded =
          torch::matmul(torch::matmul(fold_matrix(a).to(w.device()), w), fold_matrix(b).to(w.device()).t());
      parity[static_cast<std::size_t>(2 * a + b)] = folded.to(type).contiguous(kChannelsLast);
      // Row r of the strided kernel looks at output 2i - 1 + r, of parity (r + 1) % 2. That output sees input
      // i through its second tap for r = 0, 1 and through its first for r = 2, 3. Columns alike.
      for (int r = 0; r < 4; ++r)
        for (int c = 0; c < 4; ++c)
          if ((r + 1) % 2 == a && (c + 1) % 2 == b)
            strided.select(2, r).select(2, c).copy_(
                folded.select(2, r < 2 ? 1 : 0).select(2, c < 2 ? 1 : 0).t());
    }
  strided = strided.to(type).contiguous(kChannelsLast);
}

Tensor UpsampledConvolution::forward(const Tensor& x, const Tensor& bias) const {
  const auto height = x.size(2), width = x.size(3);
  Tensor out =
      torch::empty({x.size(0), parity[0].size(0), 2 * height, 2 * width}, x.options(), kChannelsLast);
  for (int a = 0; a < 2; ++a)
    for (int b = 0; b < 2; ++b) {
      // Padded by one all around; parity 0 starts a pixel earlier than parity 1.
      const Tensor y = torch::conv2d(x, parity[static_cast<std::size_t>(2 * a + b)], bias, 1, 1);
      out.slice(2, a, 2 * height, 2)
          .slice(3, b, 2 * width, 2)
          .copy_(y.narrow(2, a, height).narrow(3, b, width));
    }
  return out;
}

Tensor UpsampledConvolution::backward(const Tensor& gradient, const Tensor& strided) {
  return torch::conv2d(gradient, strided, {}, 2, 1);
}

}  // namespace dpg
