#include "dpg/prior/network_runner.h"

#include <torch/torch.h>

#include <algorithm>

#ifdef DPG_CUDA
#include "dpg/prior/gpu_recording.h"
#include "dpg/prior/step_recording.h"
#endif

namespace dpg {
namespace {

// A recording keeps the memory of its activations: only so many shapes are kept.
constexpr std::size_t kMostShapes = 3;

Tensor per_image(const Tensor& x, int value) {
  return torch::full({x.size(0)}, value, torch::TensorOptions().dtype(torch::kLong).device(x.device()));
}

}  // namespace

NetworkRunner::NetworkRunner(std::shared_ptr<const UNet> network, int label)
    : network_(std::move(network)), label_(label) {}
NetworkRunner::~NetworkRunner() = default;

NetworkCall NetworkRunner::run(const Tensor& x, int t, bool with_reverse) {
#ifdef DPG_CUDA
  if (const auto recording = recording_for(x, with_reverse)) return recording->run(recording, x, t);
#endif
  return run_directly(x, t, with_reverse);
}

NetworkCall NetworkRunner::run_directly(const Tensor& x, int t, bool with_reverse) const {
  const torch::AutoGradMode grad_mode(with_reverse);
  const GpuArithmetic arithmetic(network_->precision());
  const Tensor leaf = x.detach().requires_grad_(with_reverse);
  const Tensor labels = label_ == kNoLabel ? Tensor() : per_image(x, label_);
  const Tensor output = network_->forward(leaf, per_image(x, t), labels);
  NetworkCall call{output.detach(), {}};
  if (with_reverse)
    call.reverse = [leaf, output, precision = network_->precision()](const Tensor& cotangent) {
      const GpuArithmetic same(precision);
      return torch::autograd::grad({output}, {leaf}, {cotangent}, /*retain_graph=*/true)[0];
    };
  return call;
}

#ifdef DPG_CUDA
// The first call of a shape is run directly, the second is recorded: a shape used once costs nothing more.
std::shared_ptr<GpuRecording> NetworkRunner::recording_for(const Tensor& x, bool with_reverse) {
  if (!x.is_cuda()) return nullptr;
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto same = [&](const Entry& e) { return x.sizes() == e.shape && e.with_reverse == with_reverse; };
  const auto found = std::find_if(entries_.begin(), entries_.end(), same);
  if (found == entries_.end()) {
    entries_.insert(entries_.begin(), {x.sizes().vec(), with_reverse, 1, nullptr});
    if (entries_.size() > kMostShapes) entries_.pop_back();
    return nullptr;
  }
  std::rotate(entries_.begin(), found, found + 1);
  Entry& entry = entries_.front();
  // A recording cannot be made inside of another.
  if (!entry.recording && !inside_one_launch())
    entry.recording = std::make_shared<GpuRecording>(network_, x, label_, with_reverse);
  return entry.recording;
}
#endif

}  // namespace dpg
