#include "dpg/metrics/feature_layers.h"

#include <torch/torch.h>

#include "dpg/core/error.h"

namespace dpg::metrics {

using Kind = FeatureLayer::Kind;
using Size = FeatureLayer::Size;

FeatureLayer convolution(std::string name, std::int64_t channels, Size kernel, std::int64_t stride,
                         Size padding) {
  FeatureLayer layer{Kind::convolution};
  layer.name = std::move(name);
  layer.channels = channels;
  layer.kernel = kernel;
  layer.stride = stride;
  layer.padding = padding;
  return layer;
}

FeatureLayer same_convolution(std::string name, std::int64_t channels, Size kernel) {
  return convolution(std::move(name), channels, kernel, 1, {kernel.height / 2, kernel.width / 2});
}

FeatureLayer max_pool(std::int64_t kernel, std::int64_t stride, std::int64_t padding, bool ceil) {
  FeatureLayer layer{Kind::max_pool};
  layer.kernel = {kernel, kernel};
  layer.stride = stride;
  layer.padding = {padding, padding};
  layer.ceil = ceil;
  return layer;
}

FeatureLayer average_pool(std::int64_t kernel, std::int64_t stride, std::int64_t padding) {
  FeatureLayer layer = max_pool(kernel, stride, padding);
  layer.kind = Kind::average_pool;
  return layer;
}

FeatureLayer response_normalise() {
  return {Kind::response_normalise};
}

FeatureLayer side_by_side(std::vector<FeatureChain> branches) {
  FeatureLayer layer{Kind::branches};
  layer.branches = std::move(branches);
  return layer;
}

std::int64_t visit_convolutions(FeatureChain& chain, std::int64_t in, const ConvolutionVisitor& visit) {
  std::int64_t channels = in;
  for (FeatureLayer& layer : chain) {
    if (layer.kind == Kind::convolution) {
      visit(layer, channels);
      channels = layer.channels;
    } else if (layer.kind == Kind::branches) {
      std::int64_t sum = 0;
      for (FeatureChain& branch : layer.branches) sum += visit_convolutions(branch, channels, visit);
      channels = sum;
    }
  }
  return channels;
}

Tensor response_normalised(const Tensor& x) {
  constexpr std::int64_t size = 5, reach = size / 2;
  constexpr double alpha = 1e-4, beta = 0.75;
  // Zero channels before the first and after the last.
  const Tensor squares = torch::constant_pad_nd(x.square(), {0, 0, 0, 0, reach, reach});
  Tensor sum = squares.narrow(1, 0, x.size(1)).clone();
  for (std::int64_t i = 1; i < size; ++i) sum.add_(squares.narrow(1, i, x.size(1)));
  return x / (1 + alpha / size * sum).pow(beta);
}

namespace {

Tensor run_layer(const FeatureLayer& layer, const Tensor& x) {
  const std::vector<std::int64_t> kernel = {layer.kernel.height, layer.kernel.width},
                                  stride = {layer.stride, layer.stride},
                                  padding = {layer.padding.height, layer.padding.width};
  switch (layer.kind) {
    case Kind::convolution:
      return torch::conv2d(x, layer.weight, layer.bias, stride, padding).relu_();
    case Kind::max_pool:
      return torch::max_pool2d(x, kernel, stride, padding, {1, 1}, layer.ceil);
    case Kind::average_pool:
      return torch::avg_pool2d(x, kernel, stride, padding, layer.ceil, false);
    case Kind::response_normalise:
      return response_normalised(x);
    case Kind::branches: {
      std::vector<Tensor> results;
      for (const FeatureChain& branch : layer.branches) results.push_back(run(branch, x));
      return torch::cat(results, 1);
    }
  }
  fail("a layer of no kind");
}

}  // namespace

Tensor run(const FeatureChain& chain, Tensor x) {
  for (const FeatureLayer& layer : chain) x = run_layer(layer, x);
  return x;
}

}  // namespace dpg::metrics
