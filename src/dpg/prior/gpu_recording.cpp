#include "dpg/prior/gpu_recording.h"

#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAGuard.h>
#include <torch/torch.h>

#include "dpg/prior/step_recording.h"

namespace dpg {
namespace {

// Launches the graph, or makes it a part of the step that is being captured.
void put_in_stream(at::cuda::CUDAGraph& graph) {
  if (!inside_one_launch()) return graph.replay();
  const cudaStream_t stream = c10::cuda::getCurrentCUDAStream().stream();
  cudaStreamCaptureStatus status;
  cudaGraph_t step = nullptr;
  const cudaGraphNode_t* before = nullptr;
  std::size_t count = 0;
  cudaGraphNode_t part;
#if CUDART_VERSION >= 13000
  const cudaGraphEdgeData* edges = nullptr;
  C10_CUDA_CHECK(cudaStreamGetCaptureInfo(stream, &status, nullptr, &step, &before, &edges, &count));
  C10_CUDA_CHECK(cudaGraphAddChildGraphNode(&part, step, before, count, graph.raw_cuda_graph()));
  C10_CUDA_CHECK(
      cudaStreamUpdateCaptureDependencies(stream, &part, nullptr, 1, cudaStreamSetCaptureDependencies));
#else
  C10_CUDA_CHECK(cudaStreamGetCaptureInfo_v2(stream, &status, nullptr, &step, &before, &count));
  C10_CUDA_CHECK(cudaGraphAddChildGraphNode(&part, step, before, count, graph.raw_cuda_graph()));
  C10_CUDA_CHECK(cudaStreamUpdateCaptureDependencies(stream, &part, 1, cudaStreamSetCaptureDependencies));
#endif
}

}  // namespace

GpuRecording::GpuRecording(std::shared_ptr<const UNet> network, const Tensor& x, int label, bool with_reverse)
    : network_(std::move(network)), with_reverse_(with_reverse) {
  const torch::AutoGradMode grad_mode(with_reverse);
  const GpuArithmetic arithmetic(network_->precision());
  const c10::cuda::CUDAGuard device(x.device());
  torch::cuda::synchronize(x.device().index());
  // Recording needs a stream of its own.
  const c10::cuda::CUDAStreamGuard stream(c10::cuda::getStreamFromPool(false, x.device().index()));
  const auto numbers = x.options().dtype(torch::kLong);
  x_ = torch::zeros_like(x, torch::MemoryFormat::Contiguous).requires_grad_(with_reverse);
  t_ = torch::zeros({x.size(0)}, numbers);
  if (label != NetworkRunner::kNoLabel) labels_ = torch::full({x.size(0)}, label, numbers);

  const auto forward = [&] { return network_->forward(x_, t_, labels_); };
  const auto reverse = [&](const Tensor& output) {
    return torch::autograd::grad({output}, {x_}, {cotangent_}, /*retain_graph=*/true)[0];
  };
  for (int i = 0; i < 2; ++i) {
    const Tensor output = forward();
    cotangent_ = torch::zeros_like(output);
    if (with_reverse) reverse(output);
  }
  torch::cuda::synchronize(x.device().index());
  c10::cuda::CUDACachingAllocator::emptyCache();

  forward_.capture_begin();
  output_ = forward();  // keeps the activations, if there is a reverse pass
  forward_.capture_end();
  forward_.instantiate();
  if (!with_reverse) return;
  reverse_.capture_begin(forward_.pool());
  gradient_ = reverse(output_);
  reverse_.capture_end();
  reverse_.instantiate();
}

Tensor GpuRecording::replay_forward(const Tensor& x, int t) {
  x_.detach().copy_(x);
  t_.fill_(t);
  put_in_stream(forward_);
  return output_.detach().clone();
}

NetworkCall GpuRecording::run(const std::shared_ptr<GpuRecording>& self, const Tensor& x, int t) {
  const torch::NoGradGuard no_grad;
  const c10::cuda::CUDAGuard device(x.device());
  const std::lock_guard<std::recursive_mutex> turn(gpu_turn());
  NetworkCall call{replay_forward(x, t), {}};
  if (!with_reverse_) return call;
  call.reverse = [self, x, t, number = ++number_](const Tensor& cotangent) {
    const torch::NoGradGuard constant;
    const c10::cuda::CUDAGuard same_device(x.device());
    const std::lock_guard<std::recursive_mutex> same_turn(gpu_turn());
    if (number != self->number_) {
      self->replay_forward(x, t);
      ++self->number_;  // whoever came between repeats in turn
    }
    self->cotangent_.copy_(cotangent);
    put_in_stream(self->reverse_);
    return self->gradient_.clone();
  };
  return call;
}

}  // namespace dpg
