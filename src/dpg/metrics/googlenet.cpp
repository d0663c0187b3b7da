// GoogLeNet (Szegedy et al.: "Going deeper with convolutions", 2014, table 1) as the BVLC trained it with
// Caffe, up to its last average pool: 1024 features.
#include <torch/torch.h>

#include "dpg/metrics/feature_weights.h"

namespace dpg::metrics {
namespace {

// Caffe counts pooling windows that reach over the edge.
FeatureLayer halving_pool() {
  return max_pool(3, 2, 0, true);
}

FeatureLayer inception(const std::string& name, std::int64_t one, std::int64_t reduce3, std::int64_t three,
                       std::int64_t reduce5, std::int64_t five, std::int64_t pooled) {
  const std::string in = "inception_" + name + "/";
  return side_by_side({
      {convolution(in + "1x1", one)},
      {convolution(in + "3x3_reduce", reduce3), same_convolution(in + "3x3", three, {3, 3})},
      {convolution(in + "5x5_reduce", reduce5), same_convolution(in + "5x5", five, {5, 5})},
      {max_pool(3, 1, 1, true), convolution(in + "pool_proj", pooled)},
  });
}

FeatureChain googlenet() {
  return {
      convolution("conv1/7x7_s2", 64, {7, 7}, 2, {3, 3}),
      halving_pool(),
      response_normalise(),
      convolution("conv2/3x3_reduce", 64),
      same_convolution("conv2/3x3", 192, {3, 3}),
      response_normalise(),
      halving_pool(),
      inception("3a", 64, 96, 128, 16, 32, 32),
      inception("3b", 128, 128, 192, 32, 96, 64),
      halving_pool(),
      inception("4a", 192, 96, 208, 16, 48, 64),
      inception("4b", 160, 112, 224, 24, 64, 64),
      inception("4c", 128, 128, 256, 24, 64, 64),
      inception("4d", 112, 144, 288, 32, 64, 64),
      inception("4e", 256, 160, 320, 32, 128, 128),
      halving_pool(),
      inception("5a", 256, 160, 320, 32, 128, 128),
      inception("5b", 384, 192, 384, 48, 128, 128),
  };
}

// 224x224, blue first, in 0 to 255 less the mean colour. Bilinear with antialiasing, in float: it makes no
// values beyond those of the picture, as bicubic would, and shrinking makes no patterns that were not there.
Tensor prepare(const Tensor& pictures) {
  constexpr std::int64_t side = 224;
  const Tensor sized = torch::_upsample_bilinear2d_aa(pictures, {side, side}, false);
  const Tensor mean = torch::tensor({104.f, 117.f, 123.f}, pictures.device()).view({1, 3, 1, 1});
  return (sized.flip(1) + 1) * 127.5 - mean;
}

}  // namespace

const FeatureArchitecture& googlenet_architecture() {
  static const FeatureArchitecture architecture = {
      "googlenet",
      "FD-googlenet",
      "KD-googlenet",
      {"the feature network googlenet (FD-googlenet, KD-googlenet)",
       "googlenet_bvlc_fp16.safetensors",
       {{"googlenet_bvlc.safetensors"}}},
      1024,
      prepare,
      googlenet(),
      false,
      "loss",  // the three classifiers
  };
  return architecture;
}

}  // namespace dpg::metrics
