#include "dpg/image/transform.h"

#include <gtest/gtest.h>

#include <cmath>

#include "dpg/core/error.h"
#include "dpg/image/test_files.h"

namespace dpg {
namespace {

using test::noise_image;
using test::smooth_image;

// The definition, in double and in two dimensions at once: a normalised sum over every input pixel.
double cubic(double x) {
  x = std::abs(x);
  if (x < 1) return 1.5 * x * x * x - 2.5 * x * x + 1;
  if (x < 2) return -0.5 * x * x * x + 2.5 * x * x - 4 * x + 2;
  return 0;
}

double reference(const Image& image, int c, int y, int x, int height, int width) {
  const auto weight = [](int input, int output, int from, int to) {
    const double ratio = static_cast<double>(from) / to;
    return cubic((input + 0.5 - (output + 0.5) * ratio) / std::max(ratio, 1.0));
  };
  double sum = 0, total = 0;
  for (int i = 0; i < image.height; ++i) {
    for (int j = 0; j < image.width; ++j) {
      const double w = weight(i, y, image.height, height) * weight(j, x, image.width, width);
      sum += w * image.at(c, i, j);
      total += w;
    }
  }
  return std::clamp(sum / total, -1.0, 1.0);
}

TEST(Resize, EqualsTheDefinition) {
  const Image image = noise_image(2, 13, 17, 256);
  for (const auto& [height, width] :
       {std::pair{13, 8}, {5, 17}, {4, 3}, {1, 1}, {29, 31}, {26, 6}, {13, 17}}) {
    const Image out = resize(image, height, width);
    ASSERT_EQ(out.height, height);
    ASSERT_EQ(out.width, width);
    for (int c = 0; c < 2; ++c) {
      for (int y = 0; y < height; ++y) {
        for (int x = 0; x < width; ++x) {
          ASSERT_NEAR(out.at(c, y, x), reference(image, c, y, x, height, width), 1e-6)
              << height << " x " << width;
        }
      }
    }
  }
}

TEST(Resize, HandCases) {
  // Doubling a step: the kernel at distances 0.25, 0.75, 1.25 and 1.75, cut and normalised at the border.
  Image step = blank_image(1, 1, 4);
  step.data = {0, 0, 0.5f, 0.5f};
  const Image doubled = resize(step, 1, 8);
  const double k25 = 0.8671875, k75 = 0.2265625, k125 = -0.0703125, k175 = -0.0234375;  // they sum to 1
  EXPECT_NEAR(doubled.at(0, 0, 3), 0.5 * (k75 + k175), 1e-7);
  EXPECT_NEAR(doubled.at(0, 0, 4), 0.5 * (k25 + k125), 1e-7);
  EXPECT_NEAR(doubled.at(0, 0, 2), 0.5 * k125 / (1 - k175), 1e-7);  // the input at 1.75 is outside
  EXPECT_NEAR(doubled.at(0, 0, 7), 0.5, 1e-7);
  // Halving two pixels to one is their mean, by symmetry.
  Image pair = blank_image(1, 2, 1);
  pair.data = {-0.5f, 0.75f};
  EXPECT_FLOAT_EQ(resize(pair, 1, 1).data[0], 0.125f);
}

TEST(Resize, ConstantPicturesStayConstantToTheBit) {
  for (const float value : {-1.0f, -0.3f, 0.1f, 1.0f}) {
    const Image image = blank_image(3, 11, 23, value);
    for (const auto& [height, width] : {std::pair{3, 7}, {64, 50}, {11, 5}, {1, 1}}) {
      for (const float v : resize(image, height, width).data) ASSERT_EQ(v, value);
    }
  }
}

TEST(Resize, CommutesWithFlipsAndTransposition) {
  const Image image = noise_image(3, 19, 12, 256);
  for (const auto& [height, width] : {std::pair{7, 30}, {40, 5}}) {
    const Image plain = resize(image, height, width);
    const Image flipped =
        flip_horizontal(flip_vertical(resize(flip_horizontal(flip_vertical(image)), height, width)));
    const Image turned = transpose(resize(transpose(image), width, height));
    for (std::size_t i = 0; i < plain.data.size(); ++i) {
      ASSERT_NEAR(flipped.data[i], plain.data[i], 1e-6);
      ASSERT_NEAR(turned.data[i], plain.data[i], 1e-6);
    }
  }
}

TEST(Resize, KeepsARampAwayFromTheBorder) {
  // Keys' kernel reproduces straight lines: up and down again.
  Image ramp = blank_image(1, 1, 64);
  for (int x = 0; x < 64; ++x) ramp.data[x] = static_cast<float>((x + 0.5) / 64.0 - 0.5);
  const Image larger = resize(ramp, 1, 160);
  for (int x = 20; x < 140; ++x) ASSERT_NEAR(larger.data[x], (x + 0.5) / 160.0 - 0.5, 1e-6);
}

TEST(Resize, StaysInRangeAndRefusesNonsense) {
  for (const float v : resize(noise_image(1, 9, 9, 2), 40, 40).data) ASSERT_LE(std::abs(v), 1.0f);
  EXPECT_THROW(resize(smooth_image(1, 4, 4), 0, 4), Error);
  EXPECT_THROW(resize(Image{}, 4, 4), Error);
}

TEST(CentreCrop, TakesTheMiddle) {
  const Image image = smooth_image(2, 7, 8);
  const Image crop = centre_crop(image, 4, 3);
  for (int c = 0; c < 2; ++c) {
    for (int y = 0; y < 4; ++y) {
      for (int x = 0; x < 3; ++x) ASSERT_EQ(crop.at(c, y, x), image.at(c, y + 1, x + 2));
    }
  }
  EXPECT_THROW(centre_crop(image, 8, 3), Error);
  EXPECT_THROW(centre_crop(image, 0, 3), Error);
}

TEST(Fit, EqualsResizeThenCrop) {
  for (const auto& [height, width] : {std::pair{20, 33}, {50, 20}, {16, 16}, {5, 9}, {33, 16}}) {
    const Image image = noise_image(3, height, width, 256);
    const int shorter = std::min(height, width);
    const auto side = [&](int length) { return static_cast<int>(std::lround(length * 16.0 / shorter)); };
    const Image expected = centre_crop(resize(image, side(height), side(width)), 16, 16);
    EXPECT_EQ(fit(image, 16).data, expected.data) << height << " x " << width;
  }
}

TEST(Fit, DoesNotComputeWhatItDoesNotKeep) {
  const Image strip =
      blank_image(1, 1, 1'000'000, 0.5f);  // resized whole, it would have 256 x 256 million pixels
  const Image square = fit(strip, 256);
  EXPECT_EQ(square.data, blank_image(1, 256, 256, 0.5f).data);
}

TEST(Channels, RgbRepeatsGreyAndCompositesOverWhite) {
  Image grey_alpha = blank_image(2, 1, 3);
  grey_alpha.data = {-1.0f, -1.0f, -1.0f, -1.0f, 0.0f, 1.0f};  // black: transparent, half, opaque
  const Image rgb = to_rgb(grey_alpha);
  EXPECT_EQ(rgb.data, (std::vector<float>{1, 0, -1, 1, 0, -1, 1, 0, -1}));
  Image rgba = blank_image(4, 1, 1);
  rgba.data = {-1.0f, 0.0f, 0.5f, 0.0f};
  EXPECT_EQ(to_rgb(rgba).data, (std::vector<float>{0.0f, 0.5f, 0.75f}));
  const Image rgb3 = smooth_image(3, 4, 4);
  EXPECT_EQ(to_rgb(rgb3).data, rgb3.data);
}

TEST(Channels, GreyIsRec601Luma) {
  Image rgb = blank_image(3, 1, 4, -1.0f);
  for (int c = 0; c < 3; ++c) rgb.at(c, 0, c) = rgb.at(c, 0, 3) = 1.0f;
  const Image grey = to_grey(rgb);
  const float expected[] = {0.299f, 0.587f, 0.114f, 1.0f};
  for (int x = 0; x < 4; ++x) EXPECT_NEAR(grey.at(0, 0, x), 2 * expected[x] - 1, 1e-6);
  const Image one = smooth_image(1, 3, 3);
  const Image same = to_grey(to_rgb(one));
  for (std::size_t i = 0; i < one.data.size(); ++i) EXPECT_NEAR(same.data[i], one.data[i], 1e-6);
}

}  // namespace
}  // namespace dpg
