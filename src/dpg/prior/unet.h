// The guided-diffusion (ADM) U-Net. Immutable after construction: share one among threads and runs.
#pragma once

#include <torch/types.h>

#include <functional>
#include <string>
#include <vector>

#include "dpg/checkpoint/state_dict.h"
#include "dpg/prior/layers.h"
#include "dpg/prior/unet_config.h"

namespace dpg {

enum class Precision { fp32, bf16 };
const char* precision_name(Precision precision);
// "fp32", "bf16", or "auto": bf16 where the device computes with it natively, otherwise fp32.
Precision choose_precision(const std::string& name, torch::Device device);

class UNet {
 public:
  // Takes each tensor of expected_tensors(config) from `weights`. In bf16 everything between the first and
  // the last convolution is stored in 16 bits; norms and softmax compute in float, embeddings stay float.
  UNet(const UNetConfig& config, const WeightSource& weights, Precision precision, torch::Device device);

  // x: [N, in_channels, H, W] float, H and W multiples of config().downsampling(); t: [N]; labels: [N] or
  // undefined. Returns [N, out_channels, H, W] float. Differentiable with respect to x when grad mode is on.
  Tensor forward(const Tensor& x, const Tensor& t, const Tensor& labels = {}) const;

  const UNetConfig& config() const { return config_; }
  Precision precision() const { return precision_; }
  torch::Device device() const { return device_; }

 private:
  using Layer = std::function<Tensor(const Tensor& x, const Tensor& silu_of_embedding)>;
  using Stage = std::vector<Layer>;
  struct DecoderStage {
    ResidualBlock first;  // takes the running activation and the encoder's
    Stage rest;
  };
  struct Builder;

  Tensor embed(const Tensor& t, const Tensor& labels) const;
  void check_input(const Tensor& x, const Tensor& t, const Tensor& labels) const;

  UNetConfig config_;
  Precision precision_;
  torch::Device device_;
  Linear time_in_, time_out_;
  Tensor label_embedding_;
  Convolution first_, last_;
  Normalisation last_norm_;
  std::vector<Stage> encoder_;  // after the first convolution
  Stage middle_;
  std::vector<DecoderStage> decoder_;
};

// The weights of a checkpoint for this architecture; throws when a tensor is missing, surplus or of another
// shape.
WeightSource checkpoint_weights(const StateDict& checkpoint, const UNetConfig& config, torch::Device device);
// Reproducible random weights of sensible scale, for tests and benchmarks.
WeightSource random_weights(const UNetConfig& config, std::uint64_t seed, torch::Device device);

// [N, channels]: cosines then sines of t times geometric frequencies down to 1/10000.
Tensor timestep_embedding(const Tensor& t, int channels);

}  // namespace dpg
