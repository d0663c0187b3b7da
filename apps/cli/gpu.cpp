#include "gpu.h"

#include "dpg/core/error.h"

#ifdef DPG_CUDA
#include <ATen/cuda/CUDAContext.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <cuda_runtime_api.h>
#include <torch/torch.h>

#include "dpg/prior/step_recording.h"
#endif

namespace dpg::cli {

#ifdef DPG_CUDA
namespace {
constexpr double kGibibyte = 1024.0 * 1024.0 * 1024.0;
}

std::string gpu_name() {
  return at::cuda::getCurrentDeviceProperties()->name;
}

void reset_gpu_peak() {
  c10::cuda::CUDACachingAllocator::emptyCache();
  c10::cuda::CUDACachingAllocator::resetPeakStats(c10::cuda::current_device());
}

double gpu_peak_gibibytes() {
  const auto stats = c10::cuda::CUDACachingAllocator::getDeviceStats(c10::cuda::current_device());
  return static_cast<double>(stats.allocated_bytes[0].peak) / kGibibyte;  // 0: all kinds together
}

void launch_steps_in_parts(bool on) {
  set_whole_step_launches(!on);
}

int batch_that_fits(const Prior& prior, std::int64_t height, std::int64_t width) {
  namespace memory = c10::cuda::CUDACachingAllocator;
  const auto allocated = [&] {
    return memory::getDeviceStats(c10::cuda::current_device()).allocated_bytes[0];
  };
  reset_gpu_peak();
  std::size_t available = 0, total = 0;
  if (cudaMemGetInfo(&available, &total) != cudaSuccess) return 0;
  const auto before = allocated().current;
  try {
    const Tensor x = torch::zeros({1, prior.channels(), height, width}, torch::kCUDA);
    prior.denoise(x, 0, Track::gradient).pull_back(x);
  } catch (const c10::OutOfMemoryError&) {
    return 0;
  }
  // A recording keeps its activations while the reverse pass runs, and blocks of memory do not fit exactly.
  const double one = 1.25 * static_cast<double>(allocated().peak - before);
  return static_cast<int>(static_cast<double>(available) / one);
}
#else
namespace {
[[noreturn]] void no_kernels() {
  fail("this build has no GPU kernels; configure with the preset cuda");
}
}  // namespace

std::string gpu_name() {
  no_kernels();
}
void launch_steps_in_parts(bool) {
  no_kernels();
}
void reset_gpu_peak() {
  no_kernels();
}
double gpu_peak_gibibytes() {
  no_kernels();
}
int batch_that_fits(const Prior&, std::int64_t, std::int64_t) {
  no_kernels();
}
#endif

}  // namespace dpg::cli
