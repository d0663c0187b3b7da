// How sure a mean over pictures is: 95 % intervals by the bootstrap. Torch-free; the same numbers on every
// machine.
#pragma once

#include <cstdint>
#include <span>

namespace dpg::evaluate {

// A 95 % interval reaches so many standard errors to each side, where it is made of one.
inline constexpr double kOf95Percent = 1.96;

struct Interval {
  double mean = 0;
  double low = 0, high = 0;  // 95 %
};

// The percentile bootstrap: the 2.5 % and 97.5 % quantiles of the means of `resamples` draws of as many
// values, with replacement. It says how much the mean depends on which pictures were taken, and assumes no
// shape of their distribution; below some ten values it is too narrow. A single value says nothing of that:
// its interval is the value itself. A NaN among the values makes all three NaN. No values are an error.
Interval bootstrap_mean(std::span<const double> values, std::uint64_t seed, int resamples = 2000);

struct PairedDifference {
  double mean = 0;           // of b - a
  double low = 0, high = 0;  // 95 %
  int pairs = 0;
  bool beyond_noise = false;  // there are two pairs or more, and the interval leaves out 0
};

// a[i] and b[i] belong to the same picture. What pictures differ in by themselves cancels, so that far
// smaller differences are seen than with two separate intervals.
PairedDifference paired_difference(std::span<const double> a, std::span<const double> b, std::uint64_t seed,
                                   int resamples = 2000);

}  // namespace dpg::evaluate
