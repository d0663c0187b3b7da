#include "dpg/tensor/convert.h"

#include <gtest/gtest.h>
#include <torch/cuda.h>
#include <torch/torch.h>

#include <cmath>
#include <filesystem>
#include <limits>

#include "dpg/core/error.h"

namespace dpg {
namespace {

TEST(Convert, ImageToTensorAndBackKeepsEveryPixelInPlace) {
  Image image{3, 2, 5, {}};
  for (int i = 0; i < 30; ++i) image.data.push_back(static_cast<float>(i) / 30);
  const Tensor tensor = to_tensor(image);
  EXPECT_EQ(tensor.sizes(), (std::vector<std::int64_t>{1, 3, 2, 5}));
  EXPECT_EQ(tensor[0][1][0][3].item<float>(), image.at(1, 0, 3));
  EXPECT_EQ(to_image(tensor.to(torch::MemoryFormat::ChannelsLast)).data, image.data);
}

TEST(Convert, ABatchOfDifferentSizesIsRefused) {
  EXPECT_THROW(to_tensor({Image{1, 1, 1, {0}}, Image{1, 1, 2, {0, 0}}}), Error);
}

TEST(Convert, TensorsSurviveAFileInEveryType) {
  const auto path = std::filesystem::path(testing::TempDir()) / "convert_test.safetensors";
  std::vector<std::pair<std::string, Tensor>> tensors;
  for (auto type : {torch::kDouble, torch::kFloat, torch::kHalf, torch::kBFloat16, torch::kLong, torch::kInt,
                    torch::kShort, torch::kChar, torch::kByte})
    tensors.emplace_back(torch::toString(type), (torch::randn({3, 4}) * 10).abs().to(type).t());
  save_tensors(path, tensors);
  const auto loaded = load_tensors(path);
  ASSERT_EQ(loaded.size(), tensors.size());
  for (const auto& [name, tensor] : tensors) {
    EXPECT_EQ(loaded.at(name).scalar_type(), tensor.scalar_type());
    EXPECT_TRUE(torch::equal(loaded.at(name), tensor)) << name;
  }
  std::filesystem::remove(path);
}

TEST(Convert, NoiseOfAnImageDoesNotDependOnItsBatch) {
  const Rng rng(7);
  const std::uint32_t together[] = {4, 9, 2}, alone[] = {9};
  const Tensor batch = normal_noise(rng, together, 3, 0, {3, 5, 7});
  const Tensor single = normal_noise(rng, alone, 3, 0, {3, 5, 7});
  EXPECT_TRUE(torch::equal(batch[1], single[0]));
  EXPECT_FALSE(torch::equal(batch[0], single[0]));
}

TEST(Convert, CheckFiniteNamesTheTensor) {
  Tensor t = torch::ones({2, 2});
  EXPECT_NO_THROW(check_finite(t, "eps"));
  t[1][1] = std::numeric_limits<float>::infinity();
  try {
    check_finite(t, "eps at step 3");
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("eps at step 3"), std::string::npos);
  }
  EXPECT_NO_THROW(check_finite(torch::full({1 << 16}, 3e38f), "large but finite"));
}

// Row k * images + i is stream (images[i], step, first + k), here and on a GPU.
TEST(NormalSamples, RowsAreTheGeneratorsStreams) {
  const Rng rng(7);
  const std::vector<std::uint32_t> images = {4, 1, 9};
  const Tensor rows =
      normal_samples(rng, images, 3, 5, 2, {3, 5, 7});  // 105 values: not whole blocks of four
  ASSERT_EQ(rows.sizes(), torch::IntArrayRef({6, 3, 5, 7}));
  std::vector<float> expected(105);
  for (std::uint32_t k = 0; k < 2; ++k)
    for (std::size_t i = 0; i < 3; ++i) {
      rng.normal({images[i], 3, 5 + k}, expected);
      EXPECT_TRUE(
          torch::equal(rows[static_cast<std::int64_t>(3 * k + i)].flatten(), torch::tensor(expected)));
    }
}

TEST(NormalSamples, AreTheSameBitsOnTheGpu) {
  if (!torch::cuda::is_available()) GTEST_SKIP() << "no GPU here";
  const Rng rng(7);
  const std::vector<std::uint32_t> images = {4, 1, 9};
  for (const std::int64_t side : {1, 5, 128}) {
    const Tensor here = normal_samples(rng, images, 3, 5, 20, {3, side, side});
    const Tensor there = normal_samples(rng, images, 3, 5, 20, {3, side, side}, torch::kCUDA);
    EXPECT_TRUE(torch::equal(here, there.cpu())) << side;
  }
}

}  // namespace
}  // namespace dpg
