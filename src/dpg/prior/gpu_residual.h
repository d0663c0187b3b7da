// A residual block as the GPU runs it: the norms are one kernel pair each, a concatenation is never written,
// biases ride along in kernels that read the tensor anyway, and the reverse pass is written by hand with
// transposed weights prepared once. Only in builds with DPG_CUDA.
#pragma once

#include "dpg/prior/layers.h"

namespace dpg {

// Weights as this path wants them, beside the block's own.
struct GpuResidualWeights {
  Tensor in_flipped, out_flipped;  // of the transposed convolutions
  Tensor in_bias, out_bias;        // float; out_bias includes the skip convolution's
  Tensor skip;                     // [C_out, C_in]; undefined for the identity
  Tensor skip_bias;                // out_bias in the activations' type; undefined for the identity

  explicit GpuResidualWeights(const ResidualBlock& block);
};

// block(cat(x, encoder)), and x for others (ResidualBlock::passing_on); encoder may be undefined.
// Differentiable with respect to x and encoder.
std::pair<Tensor, Tensor> gpu_residual(const ResidualBlock& block, const GpuResidualWeights& weights,
                                       const Tensor& x, const Tensor& encoder, const Tensor& embedding);

}  // namespace dpg
