// PSNR and SSIM against closed forms and a literal reading of their definitions.
#include "dpg/metrics/fidelity.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cmath>
#include <limits>

#include "dpg/core/error.h"

namespace dpg {
namespace {

Tensor random_pictures(std::vector<std::int64_t> shape, std::uint64_t seed) {
  torch::manual_seed(seed);
  return torch::rand(shape) * 2 - 1;
}

TEST(Psnr, HandComputed) {
  const Tensor truth = torch::zeros({2, 3, 4, 4}), pictures = truth.clone();
  pictures[0].fill_(0.2);     // squared error 0.04 everywhere: 10 log10(4 / 0.04) = 20
  pictures[1][2][0][0] = -1;  // 1 in one of 48 values: 10 log10(4 * 48)
  const auto values = psnr(pictures, truth);
  ASSERT_EQ(values.size(), 2u);
  EXPECT_NEAR(values[0], 20, 1e-6);
  EXPECT_NEAR(values[1], 10 * std::log10(192.0), 1e-9);
}

TEST(Psnr, EqualPicturesGiveInfinityAndOnlyThey) {
  const Tensor truth = random_pictures({2, 3, 8, 8}, 1), pictures = truth.clone();
  pictures[1][0][0][0] += 1e-3;
  const auto values = psnr(pictures, truth);
  EXPECT_EQ(values[0], std::numeric_limits<double>::infinity());
  EXPECT_TRUE(std::isfinite(values[1]));
}

TEST(Psnr, ClampsButDoesNotRound) {
  const Tensor truth = torch::ones({1, 3, 4, 4}).to(torch::kDouble);
  EXPECT_EQ(psnr(truth * 3, truth)[0], std::numeric_limits<double>::infinity());
  // A thousandth: less than half a step of 8 bits, which rounding would hide.
  EXPECT_NEAR(psnr(truth - 1e-3, truth)[0], 10 * std::log10(4e6), 1e-6);
}

TEST(Psnr, DoesNotLoseSmallErrorsInLargePictures) {
  // Summed in float, a million squares of 1e-3 would be off in the third digit.
  const Tensor truth = torch::zeros({1, 3, 600, 600});
  EXPECT_NEAR(psnr(truth + 1e-3, truth)[0], 10 * std::log10(4e6), 1e-5);
}

// Every window by itself: weighted means, then variances and the covariance around them.
double literal_ssim(const Tensor& a, const Tensor& b) {
  const double c1 = 0.02 * 0.02, c2 = 0.06 * 0.06;
  double weights[11][11], weight_sum = 0;
  for (int i = 0; i < 11; ++i)
    for (int j = 0; j < 11; ++j)
      weight_sum += weights[i][j] = std::exp(-((i - 5) * (i - 5) + (j - 5) * (j - 5)) / 4.5);
  const auto at_a = a.accessor<float, 3>(), at_b = b.accessor<float, 3>();
  double sum = 0;
  int windows = 0;
  for (int c = 0; c < a.size(0); ++c)
    for (int y = 0; y + 11 <= a.size(1); ++y)
      for (int x = 0; x + 11 <= a.size(2); ++x, ++windows) {
        double mean_a = 0, mean_b = 0, variance_a = 0, variance_b = 0, covariance = 0;
        for (int i = 0; i < 11; ++i)
          for (int j = 0; j < 11; ++j) {
            mean_a += weights[i][j] / weight_sum * at_a[c][y + i][x + j];
            mean_b += weights[i][j] / weight_sum * at_b[c][y + i][x + j];
          }
        for (int i = 0; i < 11; ++i)
          for (int j = 0; j < 11; ++j) {
            const double w = weights[i][j] / weight_sum;
            const double da = at_a[c][y + i][x + j] - mean_a, db = at_b[c][y + i][x + j] - mean_b;
            variance_a += w * da * da, variance_b += w * db * db, covariance += w * da * db;
          }
        sum += (2 * mean_a * mean_b + c1) * (2 * covariance + c2) /
               ((mean_a * mean_a + mean_b * mean_b + c1) * (variance_a + variance_b + c2));
      }
  return sum / windows;
}

TEST(Ssim, EqualPicturesGiveOne) {
  const Tensor x = random_pictures({2, 3, 16, 20}, 2);
  for (const double value : ssim(x, x)) EXPECT_NEAR(value, 1, 1e-12);
}

TEST(Ssim, ConstantPicturesHaveAClosedForm) {
  const double a = 0.3, b = -0.5, c1 = 0.02 * 0.02;
  const Tensor one = torch::full({1, 3, 12, 13}, a, torch::kDouble);
  const Tensor other = torch::full({1, 3, 12, 13}, b, torch::kDouble);
  EXPECT_NEAR(ssim(one, other)[0], (2 * a * b + c1) / (a * a + b * b + c1), 1e-9);
}

TEST(Ssim, EqualsTheLiteralDefinition) {
  const Tensor truth = random_pictures({2, 3, 17, 23}, 3);
  const Tensor pictures = (0.7 * truth + 0.3 * random_pictures({2, 3, 17, 23}, 4)).contiguous();
  const auto values = ssim(pictures, truth);
  for (int n = 0; n < 2; ++n) {
    EXPECT_GT(values[n], 0.3);
    EXPECT_LT(values[n], 0.99);
    EXPECT_NEAR(values[n], literal_ssim(pictures[n], truth[n]), 1e-9);
  }
}

TEST(Ssim, ClampsFirst) {
  const Tensor truth = random_pictures({1, 3, 16, 16}, 5), pictures = 1.5 * truth;
  EXPECT_EQ(ssim(pictures, truth), ssim(pictures.clamp(-1, 1), truth));
}

TEST(Ssim, TheWindowIsTheSmallestPicture) {
  const Tensor x = random_pictures({1, 3, 11, 11}, 6);
  EXPECT_NEAR(ssim(x, x)[0], 1, 1e-12);
  try {
    ssim(x.narrow(3, 0, 10), x.narrow(3, 0, 10));
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("11x11 pixels, not 10x11"), std::string::npos) << error.what();
  }
}

TEST(Fidelity, ABatchEqualsItsPictures) {
  const Tensor truth = random_pictures({3, 3, 20, 16}, 7);
  const Tensor pictures = truth + 0.2 * random_pictures({3, 3, 20, 16}, 8);
  const auto psnrs = psnr(pictures, truth), ssims = ssim(pictures, truth);
  ASSERT_EQ(psnrs.size(), 3u);
  for (int n = 0; n < 3; ++n) {
    EXPECT_NEAR(psnr(pictures.narrow(0, n, 1), truth.narrow(0, n, 1))[0], psnrs[n], 1e-10);
    EXPECT_EQ(ssim(pictures.narrow(0, n, 1), truth.narrow(0, n, 1))[0], ssims[n]);
  }
  EXPECT_NE(psnrs[0], psnrs[1]);
}

TEST(Fidelity, RefusesWhatCannotBeCompared) {
  const Tensor x = torch::zeros({2, 3, 16, 16});
  EXPECT_THROW(psnr(x, x.narrow(0, 0, 1)), Error);
  EXPECT_THROW(psnr(x[0], x[0]), Error);
  EXPECT_THROW(ssim(x, x.to(torch::kByte)), Error);
  EXPECT_TRUE(psnr(x.narrow(0, 0, 0), x.narrow(0, 0, 0)).empty());
  EXPECT_TRUE(ssim(x.narrow(0, 0, 0), x.narrow(0, 0, 0)).empty());
}

TEST(Fidelity, TheSameOnTheGpu) {
  if (!torch::cuda::is_available()) GTEST_SKIP() << "no CUDA device";
  const Tensor truth = random_pictures({2, 3, 20, 16}, 9);
  const Tensor pictures = truth + 0.2 * random_pictures({2, 3, 20, 16}, 10);
  const auto psnrs = psnr(pictures, truth), ssims = ssim(pictures, truth);
  const auto gpu_psnrs = psnr(pictures.to(torch::kCUDA), truth);
  const auto gpu_ssims = ssim(pictures.to(torch::kCUDA), truth);
  for (int n = 0; n < 2; ++n) {
    EXPECT_NEAR(gpu_psnrs[n], psnrs[n], 1e-9);
    EXPECT_NEAR(gpu_ssims[n], ssims[n], 1e-9);
  }
}

}  // namespace
}  // namespace dpg
