// The fused norm kernel (kernels/norm.h) on tensors, and as a differentiable operation.
#pragma once

#include <torch/types.h>

#include <utility>

namespace dpg {

using torch::Tensor;

inline constexpr std::int64_t kNormGroups = 32;
inline constexpr float kNormEps = 1e-5f;

// What one norm holds constant: no gradient flows to these. gamma, beta: [C]; scale, shift: [N, C] or
// undefined; all float and contiguous.
struct NormConstants {
  Tensor gamma, beta, scale, shift;
  bool silu = true;
};

// Whether a kernel serves this tensor: on the CPU, or on the GPU where this build has its kernels.
bool fused_norm_available(const Tensor& x);

// The bare passes on the CPU. x and dy: channels last. `statistics` is filled by the forward pass.
Tensor norm_forward(const Tensor& x, const NormConstants& constants, Tensor& statistics);
// dy is used up (see kernels/norm.h): pass one that nobody else holds. The gradient with respect to x, plus
// `add` when defined, cut after `first_channels` channels; the second part is undefined when there is none.
std::pair<Tensor, Tensor> norm_backward(const Tensor& x, const NormConstants& constants,
                                        const Tensor& statistics, const Tensor& dy, const Tensor& add,
                                        std::int64_t first_channels);

// Differentiable with respect to x.
Tensor fused_norm(const Tensor& x, const NormConstants& constants);
// And x beside it, for others: the gradient that comes back from them is added in the pass that the norm's
// makes anyway, where autograd would make one of its own.
std::pair<Tensor, Tensor> fused_norm_and_input(const Tensor& x, const NormConstants& constants);

}  // namespace dpg
