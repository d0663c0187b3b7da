// The U-Net's layers. Weights are tensors that never change and need no gradient; a layer is a plain value
// that holds them. Activations are channels last, in the precision of the network; inputs [N, C, H, W].
#pragma once

#include <torch/types.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "dpg/prior/upsampled_convolution.h"

namespace dpg {

using torch::Tensor;

// Gives a layer its tensor by the checkpoint's name.
using WeightSource = std::function<Tensor(const std::string& name)>;

// Where a virtual machine leaves out the list of AMX's tile sizes, oneDNN sets up tiles of no size and ends
// in an illegal instruction. There it is kept from AMX, unless DNNL_MAX_CPU_ISA says otherwise. Whether this
// is such a machine.
bool kept_from_amx();

struct Convolution {
  Tensor weight, bias;
  int stride = 1;
  Convolution(const WeightSource& weights, const std::string& name, torch::ScalarType type, int stride = 1);
  Tensor operator()(const Tensor& x) const;
};

// A fully connected layer; kept in float, because its inputs are embeddings of time and class.
struct Linear {
  Tensor weight, bias;
  Linear(const WeightSource& weights, const std::string& name);
  Linear(Tensor weight_, Tensor bias_) : weight(std::move(weight_)), bias(std::move(bias_)) {}
  Tensor operator()(const Tensor& x) const;
};

// GroupNorm of 32 groups in float, optionally scaled and shifted, optionally through SiLU.
struct Normalisation {
  Tensor gamma, beta;
  Normalisation(const WeightSource& weights, const std::string& name);
  // scale, shift: [N, C] float, both or neither.
  Tensor operator()(const Tensor& x, bool silu, const Tensor& scale = {}, const Tensor& shift = {}) const;
  // Without these, and x beside it for others (fused_norm_and_input).
  std::pair<Tensor, Tensor> passing_on(const Tensor& x) const;

  // The same by plain torch operations: the reference for tests, and the path for devices without a fused
  // kernel.
  Tensor reference(const Tensor& x, bool silu, const Tensor& scale = {}, const Tensor& shift = {}) const;
};

enum class Resample { none, down, up };
Tensor resample(const Tensor& x, Resample how);                  // average of 2x2, or each pixel doubled
Tensor resample_backward(const Tensor& gradient, Resample how);  // its transpose

struct GpuResidualWeights;

// h = conv(silu(norm(x))), then conv(silu(norm(h) * (1 + scale) + shift)), plus x; scale and shift come from
// the time embedding. Without scale-shift the embedding is added to h before the second norm.
struct ResidualBlock {
  Normalisation in_norm, out_norm;
  Convolution in_conv, out_conv;
  Linear embedding;
  std::optional<Convolution> skip;
  bool scale_shift;
  Resample how;
  UpsampledConvolution upsampled;                 // in_conv for `how` = up on the CPU; empty otherwise
  std::shared_ptr<const GpuResidualWeights> gpu;  // on the GPU; null elsewhere
  // Where the block's embedding begins in those of all blocks, when one product makes them all; -1: the block
  // makes its own from silu_of_embedding.
  std::int64_t embedding_offset = -1, embedding_width = 0;

  ResidualBlock(const WeightSource& weights, const std::string& name, bool scale_shift, Resample how,
                bool has_skip_convolution, torch::ScalarType type);
  // `encoder`, when defined, is concatenated to x. embeddings: silu_of_embedding, or those of all blocks (see
  // embedding_offset). By fused_residual.h on the CPU, by gpu_residual.h on the GPU.
  Tensor operator()(const Tensor& x, const Tensor& embeddings, const Tensor& encoder = {}) const;
  // And x beside it, for others that take it too: the gradient that comes back from them is added in a pass
  // that the block makes anyway, where autograd would make one of its own. Not with an `encoder`: there
  // nobody else takes x.
  std::pair<Tensor, Tensor> passing_on(const Tensor& x, const Tensor& embeddings,
                                       const Tensor& encoder = {}) const;
  // Plain torch operations under autograd.
  Tensor reference(const Tensor& x, const Tensor& embeddings, const Tensor& encoder = {}) const;
  // Gives the block's embedding layer away, to be made with others at `offset`.
  Linear give_embedding(std::int64_t offset);

 private:
  Tensor embedding_of(const Tensor& embeddings) const;
};

class AttentionBlock {
 public:
  AttentionBlock(const WeightSource& weights, const std::string& name, int heads, bool new_order,
                 torch::ScalarType type);
  Tensor operator()(const Tensor& x) const;

 private:
  Normalisation norm_;
  Tensor qkv_weight_, qkv_bias_, projection_weight_, projection_bias_;
  int heads_;
  bool new_order_;
};

}  // namespace dpg
