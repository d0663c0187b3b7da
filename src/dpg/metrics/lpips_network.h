// The three classifiers under LPIPS up to their last compared layer, with the heads.
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace dpg::metrics {

using torch::Tensor;

struct LpipsConvolution {  // followed by a ReLU
  Tensor weight, bias;
  int stride = 1, padding = 0;

  Tensor operator()(const Tensor& x) const;
};

struct LpipsLayer {
  // None: pooling. One: a convolution. Three: SqueezeNet's "fire", one that narrows, then a 1x1 and a 3x3 on
  // its result, side by side.
  std::vector<LpipsConvolution> convolutions;
  int pool_kernel = 0;     // pooling: maxima of this side, in steps of 2
  bool pool_ceil = false;  // windows that reach over the edge count too
  Tensor head;             // [1, C, 1, 1]: the result is compared; undefined: it is not

  Tensor operator()(const Tensor& x) const;
};

struct LpipsNetwork {
  std::string net;
  std::int64_t smallest_side = 0;  // of a picture from which every layer has something left
  Tensor shift, scale;             // [1, 3, 1, 1]: the classifier sees (x - shift) / scale
  std::vector<LpipsLayer> layers;
};

// torchvision's name of the classifier under a net; fails for a net that is none.
std::string classifier_name(const std::string& net);

// From one file with everything, or heads and classifier, in any order. Every shape is checked.
LpipsNetwork read_lpips_network(const std::string& net, const std::vector<std::filesystem::path>& files);

// The same on another device.
LpipsNetwork moved_to(const LpipsNetwork& network, torch::Device device);

}  // namespace dpg::metrics
