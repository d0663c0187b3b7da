// A residual block with a hand-written reverse pass, for the CPU. Against the same block under autograd it
// keeps two activations instead of five, never writes the gradient of the concatenation whole, and adds the
// skip connection's gradient in the pass that the norm makes anyway.
#pragma once

#include "dpg/prior/layers.h"

namespace dpg {

// block(cat(x, encoder)), and x for others (ResidualBlock::passing_on); encoder may be undefined; embedding:
// the block's own, [N, C or 2C]. Differentiable with respect to x and encoder.
std::pair<Tensor, Tensor> fused_residual(const ResidualBlock& block, const Tensor& x, const Tensor& encoder,
                                         const Tensor& embedding);

}  // namespace dpg
