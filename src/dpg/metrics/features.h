// What a classifier sees in a picture, as a row of numbers: the means of its last layer's channels. Distances
// between sets of pictures (frechet.h) are taken in these features.
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "dpg/metrics/metric_weights.h"

namespace dpg {

using torch::Tensor;

namespace metrics {
struct FeatureArchitecture;
struct FeatureLayer;
}  // namespace metrics

class FeatureNetwork {
 public:
  // "inception" (2048 features, that of FID) and "googlenet" (1024, where FID's network is not at hand). The
  // distances in their features are different metrics with different names: never compare across networks.
  static const std::vector<std::string>& names();

  // What to look for. inception: fid_inception.safetensors, or the file of pytorch-fid,
  // pt_inception-2015-12-05-*.pth. googlenet: googlenet_bvlc_fp16.safetensors or googlenet_bvlc.safetensors.
  static WantedWeights wanted_weights(const std::string& name);

  // The names of the two distances: "FID" and "KID", "FD-googlenet" and "KD-googlenet". Known without
  // weights.
  static std::string frechet_name(const std::string& name);
  static std::string kernel_name(const std::string& name);

  // Throws with FoundWeights::missing when the weights are in none of the folders.
  static FeatureNetwork load(const std::string& name,
                             const std::vector<std::filesystem::path>& folders = metric_weight_folders());

  // Pictures [N, 3, H, W] in [-1, 1] (values outside are clamped), of any size and wherever they are, to [N,
  // D] in float64 on the CPU. Each is resized to the network's square; see docs/metrics.md. The network runs
  // in float32, on CUDA without TF32, some pictures at a time.
  Tensor features(const Tensor& pictures) const;
  std::int64_t dimension() const;  // D

  const std::string& name() const;
  std::string frechet_name() const;
  std::string kernel_name() const;
  // What the weights were read from.
  const std::filesystem::path& file() const { return file_; }
  FeatureNetwork to(torch::Device device) const;

 private:
  using Layers = std::vector<metrics::FeatureLayer>;
  FeatureNetwork(const metrics::FeatureArchitecture& architecture, std::shared_ptr<const Layers> layers,
                 torch::Device device, std::filesystem::path file);
  const metrics::FeatureArchitecture* architecture_;  // lives as long as the program
  std::shared_ptr<const Layers> layers_;
  torch::Device device_;
  std::filesystem::path file_;
};

}  // namespace dpg
