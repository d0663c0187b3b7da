// Runs a U-Net and its reverse pass. On the GPU, what is run again and again for pictures of one shape is
// recorded once and replayed: some thousand launches become one.
#pragma once

#include <torch/types.h>

#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "dpg/prior/unet.h"

namespace dpg {

struct NetworkCall {
  Tensor output;  // detached
  // From a cotangent of the output to the gradient with respect to x; may be called more than once. Empty
  // unless asked for.
  std::function<Tensor(const Tensor& cotangent)> reverse;
};

class GpuRecording;

class NetworkRunner {
 public:
  static constexpr int kNoLabel = -1;
  explicit NetworkRunner(std::shared_ptr<const UNet> network, int label = kNoLabel);
  ~NetworkRunner();

  // x: [N, C, H, W] float on the network's device; t: the same for all of them.
  NetworkCall run(const Tensor& x, int t, bool with_reverse);

 private:
  NetworkCall run_directly(const Tensor& x, int t, bool with_reverse) const;
  std::shared_ptr<GpuRecording> recording_for(const Tensor& x, bool with_reverse);

  struct Entry {
    std::vector<std::int64_t> shape;
    bool with_reverse;
    int calls;
    std::shared_ptr<GpuRecording> recording;  // null: not yet
  };
  std::shared_ptr<const UNet> network_;
  int label_;
  std::mutex mutex_;
  std::vector<Entry> entries_;  // the shape used last comes first
};

}  // namespace dpg
