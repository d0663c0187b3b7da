// The network's first and last convolution on the GPU, for 16-bit networks: float pictures outside, bf16
// inside, and no precision lost between. Only in builds with DPG_CUDA.
#pragma once

#include "dpg/prior/layers.h"

namespace dpg {

// A picture goes in as two bf16 parts of each value (kernels/split_cuda.h), the bias as the weight of a one.
class GpuFirst {
 public:
  explicit GpuFirst(const Convolution& first);
  Tensor operator()(const Tensor& x) const;  // [N, C, H, W] float to bf16, channels last

 private:
  Tensor weight_, flipped_;
};

// Norm, SiLU and the convolution: forward in tf32, so that the noise estimate is not rounded to 8 bits; its
// reverse in bf16 with the cotangent in two parts.
class GpuLast {
 public:
  GpuLast(const Normalisation& norm, const Convolution& last);
  Tensor operator()(const Tensor& h) const;  // [N, C, H, W] bf16 to float

 private:
  Normalisation norm_;
  Convolution last_;
  Tensor flipped_;
};

}  // namespace dpg
