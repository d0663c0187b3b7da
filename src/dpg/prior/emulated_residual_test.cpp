// The GPU's residual block, first and last convolution (gpu_residual.h, gpu_ends.h) on tensors of the CPU,
// their kernels emulated: against plain torch. gpu_test compares whole networks on a card; this one needs
// none.
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "dpg/prior/gpu_ends.h"
#include "dpg/prior/gpu_norm.h"
#include "dpg/prior/gpu_residual.h"
#include "dpg/prior/test_block.h"

namespace dpg {
namespace {

double relative_error(const Tensor& a, const Tensor& b) {
  const Tensor x = a.to(torch::kDouble), y = b.to(torch::kDouble);
  return ((x - y).norm() / y.norm()).item<double>();
}

// Every kind of block that the GPU's path takes, alone and where others take x too.
TEST(EmulatedGpu, ResidualBlocksEqualPlainTorch) {
  for (const BlockKind& kind : block_kinds()) {
    if (kind.joined && (kind.how != Resample::none || !kind.skip)) continue;  // never so in a network
    expect_plain_block(
        kind, [](const ResidualBlock& block, const Tensor& x, const Tensor& e, const Tensor& encoder) {
          return gpu_residual(block, GpuResidualWeights(block), x, encoder, block.embedding(e));
        });
  }
}

WeightSource weights_of(std::int64_t out, std::int64_t in) {
  return [=](const std::string& name) -> Tensor {
    if (name == "norm.weight" || name == "norm.bias") return torch::randn({in});
    return name == "conv.bias" ? torch::randn({out}) : torch::randn({out, in, 3, 3}) / 6;
  };
}

// The picture keeps 16 bits on its way in: only weights and the result are rounded to 8.
TEST(EmulatedGpu, TheFirstConvolutionRoundsItsResultAlone) {
  torch::manual_seed(5);
  Convolution plain(weights_of(32, 3), "conv", torch::kFloat);
  plain.weight = plain.weight.to(torch::kBFloat16).to(torch::kFloat);  // as the other one has it
  const GpuFirst gpu(plain);
  const Tensor x = torch::randn({2, 3, 6, 8}).requires_grad_(true);
  const Tensor y = gpu(x), expected = plain(x), v = torch::randn(y.sizes()).to(torch::kBFloat16);
  EXPECT_EQ(y.scalar_type(), torch::kBFloat16);
  EXPECT_LT(relative_error(y, expected.to(torch::kBFloat16)), 1e-3);
  EXPECT_LT(relative_error(torch::autograd::grad({y}, {x}, {v})[0],
                           torch::autograd::grad({expected}, {x}, {v.to(torch::kFloat)})[0]),
            4e-3);
}

TEST(EmulatedGpu, TheLastNormAndConvolutionEqualPlainTorch) {
  torch::manual_seed(6);
  const WeightSource weights = weights_of(6, 64);
  const Normalisation norm(weights, "norm");
  const Convolution last(weights, "conv", torch::kFloat);
  const GpuLast gpu(norm, last);
  const Tensor h = torch::randn({2, 64, 6, 8}).to(torch::kBFloat16).requires_grad_(true);
  const Tensor y = gpu(h), expected = last(norm.reference(h.to(torch::kFloat), /*silu=*/true));
  const Tensor v = torch::randn(y.sizes());
  EXPECT_EQ(y.scalar_type(), torch::kFloat);
  EXPECT_LT(relative_error(y, expected), 1e-5);
  EXPECT_LT(
      relative_error(torch::autograd::grad({y}, {h}, {v})[0], torch::autograd::grad({expected}, {h}, {v})[0]),
      6e-3);  // weights and the gradient are rounded to 8 bits
}

}  // namespace
}  // namespace dpg
