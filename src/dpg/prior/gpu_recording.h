// The network's forward and reverse pass for pictures of one shape, recorded as two CUDA graphs. Only in
// builds with DPG_CUDA.
#pragma once

#include <ATen/cuda/CUDAGraph.h>
#include <torch/types.h>

#include <memory>

#include "dpg/prior/network_runner.h"

namespace dpg {

class GpuRecording {
 public:
  // Records for pictures like x. Runs the network a few times before, for what libraries set up at first use.
  GpuRecording(std::shared_ptr<const UNet> network, const Tensor& x, int label, bool with_reverse);

  // `self` owns this recording and is kept by the reverse pass.
  NetworkCall run(const std::shared_ptr<GpuRecording>& self, const Tensor& x, int t);

 private:
  Tensor replay_forward(const Tensor& x, int t);

  std::shared_ptr<const UNet> network_;
  Tensor x_, t_, labels_, output_, cotangent_, gradient_;  // the graphs read and write these
  // They are kept as graphs too, to become parts of a whole step's.
  at::cuda::CUDAGraph forward_{/*keep_graph=*/true}, reverse_{/*keep_graph=*/true};
  bool with_reverse_;
  // Counts forward passes: a reverse pass whose activations have been overwritten since repeats its own.
  std::uint64_t number_ = 0;
};

}  // namespace dpg
