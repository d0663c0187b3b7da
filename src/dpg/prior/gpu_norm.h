// The GPU's norm and sum (kernels/norm_cuda.h) on tensors. Only in builds with DPG_CUDA.
#pragma once

#include <utility>

#include "dpg/prior/fused_norm.h"
#include "dpg/prior/layers.h"

namespace dpg {

// What a norm reads: x in one or two parts along its channels, channels last, plus a constant.
struct GpuNormInput {
  Tensor first, second;           // second: undefined when there is one part
  Tensor added;                   // [C] or [N, C] float, added to x first; may be undefined
  Resample how = Resample::none;  // how the result is resized; so are the gradients and what is added to them

  std::int64_t channels() const { return first.size(1) + (second.defined() ? second.size(1) : 0); }
};

// `type`: of the result. `statistics` is filled, for the reverse pass. Here constants.scale and shift may be
// parts of the same wider row.
Tensor gpu_norm_forward(const GpuNormInput& x, const NormConstants& constants, torch::ScalarType type,
                        Tensor& statistics);

// What else reaches x in the reverse pass; any of these may be undefined.
struct GpuNormAdded {
  Tensor first, second;  // along a connection that was resized as the result: of its size
  Tensor other;          // from others that took x, which then has one part: of its size
};

// The gradient of each part, with what is added.
std::pair<Tensor, Tensor> gpu_norm_backward(const GpuNormInput& x, const NormConstants& constants,
                                            const Tensor& statistics, const Tensor& dy,
                                            const GpuNormAdded& added = {});

// out += resample(other) + bias. bias: [C] float, or undefined.
void gpu_add(const Tensor& out, const Tensor& other, Resample how, const Tensor& bias);

}  // namespace dpg
