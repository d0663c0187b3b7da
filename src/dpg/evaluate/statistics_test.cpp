// Intervals on data whose mean is known.
#include "dpg/evaluate/statistics.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "dpg/core/error.h"
#include "dpg/core/rng.h"

namespace dpg::evaluate {
namespace {

std::vector<double> normals(std::size_t count, std::uint64_t seed, double mean = 0, double deviation = 1) {
  std::vector<float> draws(count);
  Rng(seed).normal({}, draws);
  std::vector<double> values;
  for (const float draw : draws) values.push_back(mean + deviation * draw);
  return values;
}

TEST(BootstrapMean, HoldsTheTrueMeanNineteenTimesOfTwenty) {
  constexpr int trials = 400;
  int held = 0;
  double width = 0;
  for (int i = 0; i < trials; ++i) {
    const Interval interval = bootstrap_mean(normals(50, 100 + i, 3, 2), 7, 1000);
    held += interval.low <= 3 && 3 <= interval.high;
    width += (interval.high - interval.low) / trials;
    ASSERT_LT(interval.low, interval.mean);
    ASSERT_LT(interval.mean, interval.high);
  }
  // 95 % are 380; the binomial's standard deviation is 4.4.
  EXPECT_GE(held, 360);
  EXPECT_LE(held, 395);
  EXPECT_NEAR(width, 2 * 1.96 * 2 / std::sqrt(50.0), 0.06);  // of the normal distribution's interval, 1.11
}

TEST(BootstrapMean, TwoValuesHaveAClosedForm) {
  // Of two values the resamples' means are a, (a + b) / 2 and b with probabilities 1/4, 1/2, 1/4.
  const std::vector<double> values = {1, 5};
  const Interval interval = bootstrap_mean(values, 1);
  EXPECT_EQ(interval.mean, 3);
  EXPECT_EQ(interval.low, 1);
  EXPECT_EQ(interval.high, 5);
}

TEST(BootstrapMean, EqualValuesHaveAnIntervalOfNoWidth) {
  const std::vector<double> values(17, 0.1);  // 17 times 0.1, summed and divided, is not 0.1
  const Interval interval = bootstrap_mean(values, 1);
  EXPECT_EQ(interval.mean, 0.1);
  EXPECT_EQ(interval.low, 0.1);
  EXPECT_EQ(interval.high, 0.1);
}

TEST(BootstrapMean, OfOneValueIsThatValue) {
  const std::vector<double> value = {2.5};
  const Interval interval = bootstrap_mean(value, 1);
  EXPECT_EQ(interval.mean, 2.5);
  EXPECT_EQ(interval.low, 2.5);
  EXPECT_EQ(interval.high, 2.5);
  EXPECT_THROW(bootstrap_mean({}, 1), Error);
  EXPECT_THROW(bootstrap_mean(value, 1, 0), Error);
}

TEST(BootstrapMean, DependsOnTheSeedAlone) {
  const auto values = normals(20, 1);
  const Interval one = bootstrap_mean(values, 5), again = bootstrap_mean(values, 5),
                 other = bootstrap_mean(values, 6);
  EXPECT_EQ(one.low, again.low);
  EXPECT_EQ(one.high, again.high);
  EXPECT_NE(one.low, other.low);
  EXPECT_EQ(one.mean, other.mean);
}

TEST(BootstrapMean, ValuesThatAreNotFiniteAreNotHidden) {
  constexpr double infinite = std::numeric_limits<double>::infinity();
  const Interval perfect = bootstrap_mean(std::vector<double>{30, infinite, infinite, infinite}, 1);
  EXPECT_EQ(perfect.mean, infinite);
  EXPECT_EQ(perfect.high, infinite);
  const Interval unknown = bootstrap_mean(std::vector<double>{30, std::nan("")}, 1);
  EXPECT_TRUE(std::isnan(unknown.mean) && std::isnan(unknown.low) && std::isnan(unknown.high));
}

TEST(PairedDifference, SeesASmallDifferenceOfVeryDifferentPictures) {
  const auto a = normals(30, 1, 25, 5), change = normals(30, 2, 0.2, 0.1);
  std::vector<double> b(30);
  for (std::size_t i = 0; i < b.size(); ++i) b[i] = a[i] + change[i];
  const PairedDifference difference = paired_difference(a, b, 3), back = paired_difference(b, a, 3);
  EXPECT_EQ(difference.pairs, 30);
  EXPECT_TRUE(difference.beyond_noise);
  EXPECT_NEAR(difference.mean, 0.2, 0.06);
  EXPECT_GT(difference.low, 0.1);
  EXPECT_LT(difference.high, 0.3);
  EXPECT_NEAR(back.mean, -difference.mean, 1e-12);
  EXPECT_TRUE(back.beyond_noise);
  // Each by itself is not known to a tenth of that.
  const Interval alone = bootstrap_mean(a, 3);
  EXPECT_GT(alone.high - alone.low, 2);
}

TEST(PairedDifference, NoiseIsCalledNoise) {
  int beyond = 0;
  for (int i = 0; i < 100; ++i)
    beyond += paired_difference(normals(40, 200 + i), normals(40, 300 + i), 1, 500).beyond_noise;
  EXPECT_LE(beyond, 14);  // about 5 or 6 of 100
}

TEST(PairedDifference, ASinglePairDecidesNothing) {
  const std::vector<double> a = {1}, b = {4};
  const PairedDifference difference = paired_difference(a, b, 1);
  EXPECT_EQ(difference.mean, 3);
  EXPECT_EQ(difference.pairs, 1);
  EXPECT_FALSE(difference.beyond_noise);
  EXPECT_THROW(paired_difference(a, std::vector<double>{1, 2}, 1), Error);
}

}  // namespace
}  // namespace dpg::evaluate
