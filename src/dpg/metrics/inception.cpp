// The Inception network of the Frechet Inception distance, up to its last average pool: 2048 features.
// It is Inception v3 (Szegedy et al.: "Rethinking the Inception architecture for computer vision", 2015) as
// TensorFlow's graph of 2015-12-05 has it, with the names that PyTorch ports of it use. It differs from the
// published architecture in two ways that FID keeps: average pools leave out the padding, and the last block
// pools by maxima.
#include <torch/torch.h>

#include "dpg/metrics/feature_weights.h"

namespace dpg::metrics {
namespace {

constexpr FeatureLayer::Size kRow3 = {1, 3}, kColumn3 = {3, 1}, kRow7 = {1, 7}, kColumn7 = {7, 1};

FeatureLayer block_a(const std::string& name, std::int64_t pooled) {
  const std::string in = name + ".branch";
  return side_by_side({
      {convolution(in + "1x1", 64)},
      {convolution(in + "5x5_1", 48), same_convolution(in + "5x5_2", 64, {5, 5})},
      {convolution(in + "3x3dbl_1", 64), same_convolution(in + "3x3dbl_2", 96, {3, 3}),
       same_convolution(in + "3x3dbl_3", 96, {3, 3})},
      {average_pool(3, 1, 1), convolution(in + "_pool", pooled)},
  });
}

FeatureLayer shrinking_block_b(const std::string& name) {
  const std::string in = name + ".branch";
  return side_by_side({
      {convolution(in + "3x3", 384, {3, 3}, 2)},
      {convolution(in + "3x3dbl_1", 64), same_convolution(in + "3x3dbl_2", 96, {3, 3}),
       convolution(in + "3x3dbl_3", 96, {3, 3}, 2)},
      {max_pool(3, 2)},
  });
}

FeatureLayer block_c(const std::string& name, std::int64_t between) {
  const std::string in = name + ".branch";
  return side_by_side({
      {convolution(in + "1x1", 192)},
      {convolution(in + "7x7_1", between), same_convolution(in + "7x7_2", between, kRow7),
       same_convolution(in + "7x7_3", 192, kColumn7)},
      {convolution(in + "7x7dbl_1", between), same_convolution(in + "7x7dbl_2", between, kColumn7),
       same_convolution(in + "7x7dbl_3", between, kRow7),
       same_convolution(in + "7x7dbl_4", between, kColumn7), same_convolution(in + "7x7dbl_5", 192, kRow7)},
      {average_pool(3, 1, 1), convolution(in + "_pool", 192)},
  });
}

FeatureLayer shrinking_block_d(const std::string& name) {
  const std::string in = name + ".branch";
  return side_by_side({
      {convolution(in + "3x3_1", 192), convolution(in + "3x3_2", 320, {3, 3}, 2)},
      {convolution(in + "7x7x3_1", 192), same_convolution(in + "7x7x3_2", 192, kRow7),
       same_convolution(in + "7x7x3_3", 192, kColumn7), convolution(in + "7x7x3_4", 192, {3, 3}, 2)},
      {max_pool(3, 2)},
  });
}

FeatureLayer block_e(const std::string& name, FeatureLayer pool) {
  const std::string in = name + ".branch";
  const auto row_and_column = [&](const std::string& branch) {
    return side_by_side({{same_convolution(in + branch + "a", 384, kRow3)},
                         {same_convolution(in + branch + "b", 384, kColumn3)}});
  };
  return side_by_side({
      {convolution(in + "1x1", 320)},
      {convolution(in + "3x3_1", 384), row_and_column("3x3_2")},
      {convolution(in + "3x3dbl_1", 448), same_convolution(in + "3x3dbl_2", 384, {3, 3}),
       row_and_column("3x3dbl_3")},
      {std::move(pool), convolution(in + "_pool", 192)},
  });
}

FeatureChain inception() {
  return {
      convolution("Conv2d_1a_3x3", 32, {3, 3}, 2),
      convolution("Conv2d_2a_3x3", 32, {3, 3}),
      same_convolution("Conv2d_2b_3x3", 64, {3, 3}),
      max_pool(3, 2),
      convolution("Conv2d_3b_1x1", 80),
      convolution("Conv2d_4a_3x3", 192, {3, 3}),
      max_pool(3, 2),
      block_a("Mixed_5b", 32),
      block_a("Mixed_5c", 64),
      block_a("Mixed_5d", 64),
      shrinking_block_b("Mixed_6a"),
      block_c("Mixed_6b", 128),
      block_c("Mixed_6c", 160),
      block_c("Mixed_6d", 160),
      block_c("Mixed_6e", 192),
      shrinking_block_d("Mixed_7a"),
      block_e("Mixed_7b", average_pool(3, 1, 1)),
      block_e("Mixed_7c", max_pool(3, 1, 1)),
  };
}

// 299x299 by plain bilinear interpolation (no antialiasing when a picture shrinks), in float: part of what
// "FID" means, whatever one would choose today.
Tensor prepare(const Tensor& pictures) {
  constexpr std::int64_t side = 299;
  return torch::upsample_bilinear2d(pictures, {side, side}, false);
}

}  // namespace

const FeatureArchitecture& inception_architecture() {
  static const FeatureArchitecture architecture = {
      "inception",
      "FID",
      "KID",
      {"the feature network inception (FID, KID)",
       "fid_inception.safetensors",
       {{"pt_inception-2015-12-05-*.pth"}}},
      2048,
      prepare,
      inception(),
      true,
      "fc.",  // the classifier
  };
  return architecture;
}

}  // namespace dpg::metrics
