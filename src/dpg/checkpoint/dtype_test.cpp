#include "dpg/checkpoint/dtype.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>

namespace dpg {
namespace {

// A 16-bit floating value from the definition of its format, in double precision, which holds all of them.
double reference(std::uint16_t bits, int exponent_bits) {
  const int mantissa_bits = 15 - exponent_bits, bias = (1 << (exponent_bits - 1)) - 1;
  const int exponent = (bits >> mantissa_bits) & ((1 << exponent_bits) - 1);
  const int mantissa = bits & ((1 << mantissa_bits) - 1);
  const double sign = (bits & 0x8000) != 0 ? -1 : 1;
  if (exponent == (1 << exponent_bits) - 1)
    return mantissa != 0 ? std::numeric_limits<double>::quiet_NaN()
                         : sign * std::numeric_limits<double>::infinity();
  if (exponent == 0) return sign * std::ldexp(mantissa, 1 - bias - mantissa_bits);
  return sign * std::ldexp((1 << mantissa_bits) + mantissa, exponent - bias - mantissa_bits);
}

struct Format {
  const char* name;
  int exponent_bits;
  float (*widen)(std::uint16_t);
  std::uint16_t (*narrow)(float);
};

class SixteenBits : public testing::TestWithParam<Format> {};
INSTANTIATE_TEST_SUITE_P(Formats, SixteenBits,
                         testing::Values(Format{"f16", 5, half_to_float, float_to_half},
                                         Format{"bf16", 8, bfloat16_to_float, float_to_bfloat16}),
                         [](const auto& tested) { return std::string(tested.param.name); });

TEST_P(SixteenBits, EveryValueWidensExactlyAndComesBack) {
  for (std::uint32_t code = 0; code < 0x10000; ++code) {
    const auto bits = static_cast<std::uint16_t>(code);
    const double expected = reference(bits, GetParam().exponent_bits);
    const float widened = GetParam().widen(bits);
    if (std::isnan(expected)) {
      ASSERT_TRUE(std::isnan(widened)) << code;
      ASSERT_TRUE(std::isnan(GetParam().widen(GetParam().narrow(widened)))) << code;
    } else {
      ASSERT_EQ(static_cast<double>(widened), expected) << code;
      ASSERT_EQ(std::signbit(widened), std::signbit(expected)) << code;
      ASSERT_EQ(GetParam().narrow(widened), bits) << code;
    }
  }
}

// Between each two neighbours: below the middle goes down, above goes up, the middle goes to the even one.
TEST_P(SixteenBits, NarrowingRoundsToNearestEven) {
  const auto infinity =
      static_cast<std::uint16_t>(((1 << GetParam().exponent_bits) - 1) << (15 - GetParam().exponent_bits));
  for (std::uint32_t code = 0; code + 1 < infinity; ++code) {
    const auto lower = static_cast<std::uint16_t>(code), upper = static_cast<std::uint16_t>(code + 1);
    const auto middle = static_cast<float>(
        (static_cast<double>(GetParam().widen(lower)) + static_cast<double>(GetParam().widen(upper))) / 2);
    const float below = std::nextafter(middle, -1.0f),
                above = std::nextafter(middle, std::numeric_limits<float>::infinity());
    ASSERT_EQ(GetParam().narrow(middle), code % 2 == 0 ? lower : upper) << code;
    ASSERT_EQ(GetParam().narrow(below), lower) << code;
    ASSERT_EQ(GetParam().narrow(above), upper) << code;
    ASSERT_EQ(GetParam().narrow(-above), upper | 0x8000) << code;
  }
  EXPECT_EQ(GetParam().narrow(std::numeric_limits<float>::max()), infinity);
  EXPECT_EQ(GetParam().narrow(std::numeric_limits<float>::infinity()), infinity);
}

TEST(Half, LargestFiniteEndsAt65520) {
  EXPECT_EQ(float_to_half(std::nextafter(65520.0f, 0.0f)), 0x7bff);
  EXPECT_EQ(float_to_half(65520.0f), 0x7c00);
}

}  // namespace
}  // namespace dpg
