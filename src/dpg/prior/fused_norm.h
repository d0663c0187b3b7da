// The fused norm kernel (kernels/norm.h) as a differentiable tensor operation.
#pragma once

#include <torch/types.h>

namespace dpg {

using torch::Tensor;

inline constexpr std::int64_t kNormGroups = 32;
inline constexpr float kNormEps = 1e-5f;

// Whether the kernel serves this tensor: on the CPU, float or bf16.
bool fused_norm_available(const Tensor& x);

// Gradient flows to x only: gamma, beta, scale and shift are constants of a step. gamma, beta: [C]; scale, shift:
// [N, C] or undefined; all float.
Tensor fused_norm(const Tensor& x, const Tensor& gamma, const Tensor& beta, const Tensor& scale, const Tensor& shift,
                  bool silu);

}  // namespace dpg
