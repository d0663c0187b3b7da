// The parts that feature networks are made of. A network is a value: a chain of layers, some of which are
// branches side by side. The tables in googlenet.cpp and inception.cpp are such chains without weights.
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace dpg::metrics {

using torch::Tensor;

struct FeatureLayer;
using FeatureChain = std::vector<FeatureLayer>;

struct FeatureLayer {
  enum class Kind {
    convolution,         // then a ReLU
    max_pool,            // windows that reach over the edge count where `ceil` says so
    average_pool,        // of the pixels inside the picture: padding does not count
    response_normalise,  // see response_normalised
    branches,            // each on the same input; their channels one after the other
  };
  struct Size {
    std::int64_t height, width;
  };
  Kind kind;
  std::string name = {};                   // convolution: in the file of weights
  std::int64_t channels = 0;               // convolution: that come out
  Size kernel = {1, 1}, padding = {0, 0};  // in steps of `stride`
  std::int64_t stride = 1;
  bool ceil = false;
  std::vector<FeatureChain> branches = {};
  Tensor weight = {}, bias = {};  // convolution: once read
};

FeatureLayer convolution(std::string name, std::int64_t channels, FeatureLayer::Size kernel = {1, 1},
                         std::int64_t stride = 1, FeatureLayer::Size padding = {0, 0});
// Padded so that stride 1 keeps the size.
FeatureLayer same_convolution(std::string name, std::int64_t channels, FeatureLayer::Size kernel);
FeatureLayer max_pool(std::int64_t kernel, std::int64_t stride, std::int64_t padding = 0, bool ceil = false);
FeatureLayer average_pool(std::int64_t kernel, std::int64_t stride, std::int64_t padding = 0);
FeatureLayer response_normalise();
FeatureLayer side_by_side(std::vector<FeatureChain> branches);

// Visits every convolution with the number of channels that go in, and returns how many come out at the end.
using ConvolutionVisitor = std::function<void(FeatureLayer& convolution, std::int64_t in)>;
std::int64_t visit_convolutions(FeatureChain& chain, std::int64_t in, const ConvolutionVisitor& visit);

// x: [N, C, H, W].
Tensor run(const FeatureChain& chain, Tensor x);

// Local response normalisation over channels, as Caffe has it:
//   x_c / (1 + alpha / 5 * sum of x_k^2 over |k - c| <= 2)^0.75,  alpha = 1e-4; no channel beyond the ends
Tensor response_normalised(const Tensor& x);

}  // namespace dpg::metrics
