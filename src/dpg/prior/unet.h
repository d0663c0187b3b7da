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

// tf32: stored as fp32, but the GPU's convolutions and products round their inputs to 19 bits.
enum class Precision { fp32, tf32, bf16 };
const char* precision_name(Precision precision);
// "fp32", "tf32", "bf16", or "auto": bf16 where the device computes with it natively, otherwise fp32. Throws
// for tf32 on a CPU.
Precision choose_precision(const std::string& name, torch::Device device);

// While it lives, the GPU's convolutions and products of floats round as this precision says: forward and
// autograd need it alike. The tensor library keeps this for the whole process, so it is put back at the end.
// It also asks for algorithms that give the same bits every time.
class GpuArithmetic {
 public:
  explicit GpuArithmetic(Precision precision);
  ~GpuArithmetic();
  GpuArithmetic(const GpuArithmetic&) = delete;
  GpuArithmetic& operator=(const GpuArithmetic&) = delete;

 private:
  bool convolutions_, products_;
#ifdef DPG_CUDA
  bool deterministic_, only_warn_, fill_;
#endif
};

class GpuFirst;
class GpuLast;

class UNet {
 public:
  // Takes each tensor of expected_tensors(config) from `weights`. In bf16 everything between the first and
  // the last convolution is stored in 16 bits; norms and softmax compute in float, embeddings stay float. (On
  // the GPU those two convolutions then round their inputs to tf32, see GpuArithmetic.)
  UNet(const UNetConfig& config, const WeightSource& weights, Precision precision, torch::Device device);

  // x: [N, in_channels, H, W] float, H and W multiples of config().downsampling(); t: [N]; labels: [N] or
  // undefined. Returns [N, out_channels, H, W] float. Differentiable with respect to x when grad mode is on.
  Tensor forward(const Tensor& x, const Tensor& t, const Tensor& labels = {}) const;

  const UNetConfig& config() const { return config_; }
  Precision precision() const { return precision_; }
  torch::Device device() const { return device_; }

 private:
  using Layer = std::function<Tensor(const Tensor& x, const Tensor& embeddings)>;
  // A layer's output, and its input for the decoder (ResidualBlock::passing_on).
  using PassingLayer = std::function<std::pair<Tensor, Tensor>(const Tensor& x, const Tensor& embeddings)>;
  using Stage = std::vector<Layer>;
  struct EncoderStage {
    PassingLayer first;
    Stage rest;
  };
  struct DecoderStage {
    ResidualBlock first;  // takes the running activation and the encoder's
    Stage rest;
  };
  struct Builder;

  // What layers take: silu of the embedding of t and labels, or on the GPU every block's own, side by side.
  Tensor embed(const Tensor& t, const Tensor& labels) const;
  Tensor first(const Tensor& x) const;
  Tensor last(const Tensor& h) const;
  void check_input(const Tensor& x, const Tensor& t, const Tensor& labels) const;

  UNetConfig config_;
  Precision precision_;
  torch::Device device_;
  Linear time_in_, time_out_;
  std::optional<Linear> block_embeddings_;  // of all blocks in one; on the GPU, where each alone is too small
  Tensor label_embedding_;
  Convolution first_, last_;
  Normalisation last_norm_;
  // In their places on the GPU in bf16; null elsewhere.
  std::shared_ptr<const GpuFirst> gpu_first_;
  std::shared_ptr<const GpuLast> gpu_last_;
  std::vector<EncoderStage> encoder_;  // after the first convolution; the last is the network's middle
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
