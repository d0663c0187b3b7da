#include "dpg/prior/step_recording.h"

#include <ATen/cuda/CUDAGraph.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>

#include <atomic>
#include <memory>
#include <optional>

namespace dpg {
namespace {

std::atomic<bool> wanted{true};
thread_local bool inside = false;

// What a thread keeps from step to step.
class WholeStep {
 public:
  ~WholeStep() { drop(); }

  void run(const std::function<void()>& step) {
    const c10::cuda::CUDAStream stream = c10::cuda::getCurrentCUDAStream();
    if (!side_ || side_->device_index() != stream.device_index()) {
      drop();
      last_.reset();
      side_ = c10::cuda::getStreamFromPool(false, stream.device_index());
      pool_ = at::cuda::graph_pool_handle();
    }
    std::unique_ptr<at::cuda::CUDAGraph> graph = capture(step);
    make_ready(graph->raw_cuda_graph());
    // In the caller's stream, so that its order is that of the program.
    C10_CUDA_CHECK(cudaGraphLaunch(ready_, stream.stream()));
    last_ = std::move(graph);  // keeps the memory that both use; until now the one before did
  }

 private:
  std::unique_ptr<at::cuda::CUDAGraph> capture(const std::function<void()>& step) {
    const c10::cuda::CUDAStreamGuard guard(*side_);  // the default stream cannot be captured
    auto graph = std::make_unique<at::cuda::CUDAGraph>(/*keep_graph=*/true);
    graph->capture_begin(pool_, cudaStreamCaptureModeThreadLocal);
    inside = true;
    try {
      step();
    } catch (...) {
      inside = false;
      cudaGraph_t broken = nullptr;
      cudaStreamEndCapture(side_->stream(), &broken);
      if (broken) cudaGraphDestroy(broken);
      cudaGetLastError();
      c10::cuda::CUDACachingAllocator::endAllocateToPool(side_->device_index(), pool_);
      c10::cuda::CUDACachingAllocator::releasePool(side_->device_index(), pool_);
      pool_ = at::cuda::graph_pool_handle();
      (void)graph.release();  // lost: torch keeps lists of captures and pools, where this one did not end
      throw;
    }
    inside = false;
    graph->capture_end();
    return graph;
  }

  // `graph` as what will be launched: by an update where it differs from the last one in numbers and
  // addresses only, as steps of one run do.
  void make_ready(cudaGraph_t graph) {
    if (ready_) {
      cudaGraphExecUpdateResultInfo result;
      if (cudaGraphExecUpdate(ready_, graph, &result) == cudaSuccess) return;
      cudaGetLastError();  // a different graph is no error here
      drop();
    }
    C10_CUDA_CHECK(cudaGraphInstantiate(&ready_, graph, 0));
  }

  void drop() {
    if (ready_) cudaGraphExecDestroy(ready_);
    ready_ = nullptr;
  }

  std::optional<c10::cuda::CUDAStream> side_;
  decltype(at::cuda::graph_pool_handle()) pool_;
  std::unique_ptr<at::cuda::CUDAGraph> last_;
  cudaGraphExec_t ready_ = nullptr;
};

}  // namespace

void run_as_one_launch(torch::Device gpu, const std::function<void()>& step) {
  thread_local WholeStep whole;
  c10::cuda::OptionalCUDAGuard guard;
  if (gpu.has_index()) guard.set_device(gpu);
  const std::lock_guard<std::recursive_mutex> turn(gpu_turn());
  whole.run(step);
}

bool inside_one_launch() {
  return inside;
}

void set_whole_step_launches(bool on) {
  wanted = on;
}

bool whole_step_launches() {
  return wanted;
}

std::recursive_mutex& gpu_turn() {
  static std::recursive_mutex mutex;
  return mutex;
}

}  // namespace dpg
