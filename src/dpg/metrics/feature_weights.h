// The architectures of the feature networks, and their weights from files.
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "dpg/checkpoint/state_dict.h"
#include "dpg/metrics/feature_layers.h"
#include "dpg/metrics/metric_weights.h"

namespace dpg::metrics {

struct FeatureArchitecture {
  std::string name, frechet, kernel;  // the network's name, and those of the two distances in its features
  WantedWeights weights;
  std::int64_t features = 0;
  // [N, 3, H, W] in [-1, 1], any size, to what the first layer takes.
  Tensor (*prepare)(const Tensor& pictures) = nullptr;
  FeatureChain chain;
  // The file has a batch normalisation for each convolution, <name>.bn.*; otherwise a bias, <name>/bias.
  bool batch_norm = false;
  // Parts of the file that come after the features: tensors whose names begin so are passed over.
  std::string unused_prefix;
};

const FeatureArchitecture& googlenet_architecture();
const FeatureArchitecture& inception_architecture();

// Every tensor that a file of weights must hold.
std::vector<std::pair<std::string, Shape>> expected_tensors(const FeatureArchitecture& architecture);

// The chain with its weights in float32. A tensor that is missing, of another shape or one too many is named.
FeatureChain read_feature_weights(const FeatureArchitecture& architecture, const std::filesystem::path& file);

struct FoldedConvolution {
  Tensor weight, bias;
};

// A convolution without bias and the batch normalisation after it, gamma (x - mean) / sqrt(variance + 1e-3) +
// beta, as one convolution. Computed in float64.
FoldedConvolution fold_batch_norm(const Tensor& weight, const Tensor& gamma, const Tensor& beta,
                                  const Tensor& mean, const Tensor& variance);

}  // namespace dpg::metrics
