// Residual blocks with random weights, and how tests compare fast paths with the plain one.
#pragma once

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "dpg/prior/layers.h"

namespace dpg {

// Takes kBlockInput channels, and kEncoderInput beside them when `joined`; embeddings have kEmbedding
// numbers.
inline constexpr std::int64_t kBlockInput = 64, kEncoderInput = 32, kEmbedding = 16;

struct BlockKind {
  Resample how;
  bool scale_shift, joined, skip;  // joined: with an encoder's activation; skip: with a skip convolution
  bool others;                     // whether others take x too; never where it is joined
};

inline std::vector<BlockKind> block_kinds() {
  std::vector<BlockKind> kinds;
  for (const Resample how : {Resample::none, Resample::down, Resample::up})
    for (const bool scale_shift : {true, false})
      for (const bool joined : {true, false})
        for (const bool skip : {true, false})
          for (const bool others : {true, false})
            if (!(others && joined)) kinds.push_back({how, scale_shift, joined, skip, others});
  return kinds;
}

inline ResidualBlock random_block(const BlockKind& kind) {
  const std::int64_t in = kind.joined ? kBlockInput + kEncoderInput : kBlockInput, out = kind.skip ? 32 : in;
  std::map<std::string, Tensor> drawn;
  const WeightSource weights = [&](const std::string& name) {
    const auto has = [&](const char* part) { return name.find(part) != std::string::npos; };
    const auto draw = [&]() -> Tensor {
      const bool bias = has(".bias");
      if (has("emb_layers"))
        return bias ? torch::randn({kind.scale_shift ? 2 * out : out})
                    : torch::randn({kind.scale_shift ? 2 * out : out, kEmbedding}) / 4;
      if (has("in_layers.0")) return torch::randn({in});
      if (has("out_layers.0") || bias) return torch::randn({out});
      if (has("skip")) return torch::randn({out, in, 1, 1}) / 8;
      return torch::randn({out, has("in_layers") ? in : out, 3, 3}) / 20;
    };
    if (drawn.count(name) == 0) drawn[name] = draw();
    return drawn[name];
  };
  return ResidualBlock(weights, "block", kind.scale_shift, kind.how, kind.skip, torch::kFloat);
}

// Runs a block: (block, x, embedding's input, encoder's activation) to its output, and x for others.
using RunBlock = std::function<std::pair<Tensor, Tensor>(const ResidualBlock& block, const Tensor& x,
                                                         const Tensor& e, const Tensor& encoder)>;

// The gradients with respect to x and the encoder's activation, then the output.
inline std::vector<Tensor> gradients_and_value(const ResidualBlock& block, const Tensor& a, const Tensor& e,
                                               const Tensor& b, bool others, const RunBlock& run) {
  const Tensor x = a.clone().requires_grad_(true);
  const Tensor second = b.defined() ? b.clone().requires_grad_(true) : Tensor();
  const auto [y, passed] = run(block, x, e, second);
  torch::manual_seed(9);
  const Tensor v = torch::randn(y.sizes()).to(y.scalar_type()),
               w = torch::randn(a.sizes()).to(a.scalar_type());
  std::vector<Tensor> inputs{x}, outputs{y}, cotangents{v};
  if (b.defined()) inputs.push_back(second);
  if (others) outputs.push_back(2 * passed), cotangents.push_back(w);
  std::vector<Tensor> all = torch::autograd::grad(outputs, inputs, cotangents);
  all.push_back(y.detach());
  return all;
}

// Gradients and value of a block against plain torch under autograd.
inline void expect_plain_block(const BlockKind& kind, const RunBlock& run) {
  torch::manual_seed(4);
  const ResidualBlock block = random_block(kind);
  const Tensor e = torch::randn({2, kEmbedding}), a = torch::randn({2, kBlockInput, 6, 8}),
               b = kind.joined ? torch::randn({2, kEncoderInput, 6, 8}) : Tensor();
  const RunBlock reference = [](const ResidualBlock& of, const Tensor& x, const Tensor& with,
                                const Tensor& encoder) {
    return std::pair(of.reference(x, with, encoder), x);
  };
  const auto fast = gradients_and_value(block, a, e, b, kind.others, run);
  const auto plain = gradients_and_value(block, a, e, b, kind.others, reference);
  ASSERT_EQ(fast.size(), plain.size());
  for (std::size_t i = 0; i < plain.size(); ++i)
    EXPECT_LT(((fast[i] - plain[i]).norm() / plain[i].norm()).item<double>(), 1e-5)
        << "part " << i << ", how " << static_cast<int>(kind.how) << ", scale-shift " << kind.scale_shift
        << ", joined " << kind.joined << ", skip " << kind.skip << ", others " << kind.others;
}

}  // namespace dpg
