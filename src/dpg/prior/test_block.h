// A residual block with random weights, for tests.
#pragma once

#include <torch/torch.h>

#include <map>
#include <string>

#include "dpg/prior/layers.h"

namespace dpg {

// Takes kBlockInput channels, and kEncoderInput beside them when `joined`; embeddings have kEmbedding
// numbers.
inline constexpr std::int64_t kBlockInput = 64, kEncoderInput = 32, kEmbedding = 16;

inline ResidualBlock random_block(Resample how, bool scale_shift, bool joined, bool skip) {
  const std::int64_t in = joined ? kBlockInput + kEncoderInput : kBlockInput, out = skip ? 32 : in;
  std::map<std::string, Tensor> drawn;
  const WeightSource weights = [&](const std::string& name) {
    const auto has = [&](const char* part) { return name.find(part) != std::string::npos; };
    const auto draw = [&]() -> Tensor {
      const bool bias = has(".bias");
      if (has("emb_layers"))
        return bias ? torch::randn({scale_shift ? 2 * out : out})
                    : torch::randn({scale_shift ? 2 * out : out, kEmbedding}) / 4;
      if (has("in_layers.0")) return torch::randn({in});
      if (has("out_layers.0") || bias) return torch::randn({out});
      if (has("skip")) return torch::randn({out, in, 1, 1}) / 8;
      return torch::randn({out, has("in_layers") ? in : out, 3, 3}) / 20;
    };
    if (drawn.count(name) == 0) drawn[name] = draw();
    return drawn[name];
  };
  return ResidualBlock(weights, "block", scale_shift, how, skip, torch::kFloat);
}

// What a block makes of x and the encoder's activation, and the gradients when others took x too.
// `run(x, encoder)` gives the block's output and x for others.
template <class Run>
std::vector<Tensor> value_and_gradients(const Tensor& a, const Tensor& b, bool others, Run run) {
  const Tensor x = a.clone().requires_grad_(true);
  const Tensor second = b.defined() ? b.clone().requires_grad_(true) : Tensor();
  const auto [y, passed] = run(x, second);
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

}  // namespace dpg
