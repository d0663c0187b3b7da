#include "dpg/report/heat.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>

#include "dpg/core/error.h"
#include "dpg/image/font.h"

namespace dpg {
namespace {

constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

// Rec. 709 luminance of an sRGB colour in [-1, 1].
double luminance(const Image& image, int x) {
  double sum = 0.0;
  const double weights[] = {0.2126, 0.7152, 0.0722};
  for (int c = 0; c < 3; ++c) {
    const double v = (image.at(c, 0, x) + 1.0) / 2.0;
    sum += weights[c] * (v <= 0.04045 ? v / 12.92 : std::pow((v + 0.055) / 1.055, 2.4));
  }
  return sum;
}

TEST(HeatMap, GetsEvenlyLighterFromVioletToYellow) {
  constexpr int kSteps = 257;
  Image values = blank_image(1, 1, kSteps);
  for (int x = 0; x < kSteps; ++x) values.at(0, 0, x) = 0.25f * static_cast<float>(x) / (kSteps - 1);
  const Image map = heat_map(values, 0.25);
  ASSERT_EQ(map.channels, 3);
  const auto lightness = [&](int x) { return std::cbrt(luminance(map, x)); };  // about what the eye sees
  const double even = (lightness(kSteps - 1) - lightness(0)) / (kSteps - 1);
  for (int x = 1; x < kSteps; ++x) {
    ASSERT_GT(luminance(map, x), luminance(map, x - 1)) << x;
    ASSERT_NEAR(lightness(x) - lightness(x - 1), even, 0.4 * even) << x;
    for (int c = 0; c < 3; ++c) ASSERT_LT(std::abs(map.at(c, 0, x) - map.at(c, 0, x - 1)), 0.04f) << x;
  }
  EXPECT_LT(luminance(map, 0), 0.03);
  EXPECT_GT(map.at(2, 0, 0), map.at(1, 0, 0));  // violet: little green
  EXPECT_GT(map.at(0, 0, 0), map.at(1, 0, 0));
  EXPECT_GT(luminance(map, kSteps - 1), 0.7);
  EXPECT_GT(map.at(0, 0, kSteps - 1), map.at(2, 0, kSteps - 1));  // yellow: little blue
  EXPECT_GT(map.at(1, 0, kSteps - 1), map.at(2, 0, kSteps - 1));
  for (const float value : map.data)
    ASSERT_TRUE(value > -1.0f && value < 1.0f) << value;  // no colour was cut
}

TEST(HeatMap, IsFullAboveTheTopAndGreyForNaN) {
  Image values = blank_image(1, 1, 3);
  values.data = {2.0f, 5.0f, kNaN};
  const Image map = heat_map(values, 2.0);
  for (int c = 0; c < 3; ++c) {
    EXPECT_EQ(map.at(c, 0, 0), map.at(c, 0, 1));
    EXPECT_EQ(map.at(c, 0, 2), 0.0f);
  }
  EXPECT_THROW(heat_map(blank_image(1, 1, 1, -0.1f), 1.0), Error);
  EXPECT_THROW(heat_map(blank_image(3, 1, 1), 1.0), Error);
  EXPECT_THROW(heat_map(values, 0.0), Error);
  EXPECT_THROW(heat_map(values, kNaN), Error);
}

TEST(HeatMap, ScaleKeepsTheMapAndShowsBothEnds) {
  Image values = blank_image(1, 20, 128);
  for (int x = 0; x < 128; ++x) values.at(0, 0, x) = static_cast<float>(x) / 127.0f;
  const Image map = heat_map(values, 1.0);
  const Image scaled = with_scale(map, 0.25);
  ASSERT_EQ(scaled.width, 128);
  ASSERT_GT(scaled.height, 20 + 8 + font::kHeight);
  int bar = 0, zero = 0, top = 0;
  for (int y = 0; y < scaled.height; ++y) {
    bool same = true;
    for (int x = 0; x < 128; ++x) {
      for (int c = 0; c < 3; ++c) {
        ASSERT_TRUE(y >= 20 || scaled.at(c, y, x) == map.at(c, y, x)) << y << ", " << x;
        same = same &&
               std::abs(scaled.at(c, y, x) - map.at(c, 0, x)) < 1e-5f;  // as the ramp in the map's first row
      }
      if (y >= 30) (x < 64 ? zero : top) += scaled.at(0, y, x) == 1.0f;
    }
    bar += y >= 20 && same;
  }
  EXPECT_EQ(bar, 8);
  const auto dots = [](const std::string& text) {
    int n = 0;
    for (const char c : text) {
      for (int i = 0; i < font::kHeight * font::kWidth; ++i)
        n += font::dot(c, i / font::kWidth, i % font::kWidth);
    }
    return n;
  };
  EXPECT_EQ(zero, dots("0"));
  EXPECT_EQ(top, dots("0.25"));
  const Image narrow = with_scale(heat_map(blank_image(1, 4, 4), 1.0), 0.125);
  EXPECT_EQ(narrow.width, font::text_width("0  0.125") + 4);  // wide enough to be read
}

}  // namespace
}  // namespace dpg
