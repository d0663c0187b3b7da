// LPIPS v0.1 (Zhang, Isola, Efros, Shechtman, Wang: "The unreasonable effectiveness of deep features as a
// perceptual metric", 2018): the distance of two pictures in the features of a classifier.
//
//   d(a, b) = sum over layers l of  mean over pixels of  w_l . (f_l(a) / |f_l(a)| - f_l(b) / |f_l(b)|)^2
//
// f_l: the features of one layer, each pixel's made unit length over channels; w_l: the learned head.
#pragma once

#include <torch/types.h>

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "dpg/metrics/metric_weights.h"

namespace dpg {

using torch::Tensor;

namespace metrics {
struct LpipsNetwork;
}

class Lpips {
 public:
  // "squeeze", "alex", "vgg". Their distances are three different metrics: never compare across nets.
  static const std::vector<std::string>& nets();

  // What to look for: lpips_<net>_v0.1.safetensors, or the heads of the LPIPS repository (<net>.pth) with
  // torchvision's file of the classifier. Either way gives the same numbers.
  static WantedWeights wanted_weights(const std::string& net);

  // Throws with FoundWeights::missing when the weights are in none of the folders.
  static Lpips load(const std::string& net,
                    const std::vector<std::filesystem::path>& folders = metric_weight_folders());

  // One distance for each of the N pictures [N, 3, H, W] in [-1, 1] (values outside are clamped), wherever
  // they are; they are brought to the device of the weights. Features are computed in float32, on CUDA
  // without TF32, and averaged over pixels in float64.
  std::vector<double> distance(const Tensor& a, const Tensor& b) const;

  Lpips to(torch::Device device) const;
  const std::string& net() const;
  std::string name() const;  // for reports: "LPIPS squeeze"
  // What the weights were read from.
  const std::vector<std::filesystem::path>& files() const { return files_; }

 private:
  Lpips(std::shared_ptr<const metrics::LpipsNetwork> network, std::vector<std::filesystem::path> files);
  std::shared_ptr<const metrics::LpipsNetwork> network_;
  std::vector<std::filesystem::path> files_;
};

}  // namespace dpg
