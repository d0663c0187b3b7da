#include "dpg/evaluate/statistics.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>
#include <vector>

#include "dpg/core/error.h"
#include "dpg/core/rng.h"

namespace dpg::evaluate {
namespace {

double mean_of(std::span<const double> values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

// Between neighbours of the sorted values, linearly.
double quantile(const std::vector<double>& sorted, double fraction) {
  const double place = fraction * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(place);
  const double low = sorted[below], high = sorted[std::min(below + 1, sorted.size() - 1)];
  if (low == high) return low;  // also where both are infinite
  return low + (place - static_cast<double>(below)) * (high - low);
}

// Resample i takes the values at the places that stream i names.
std::vector<double> resampled_means(std::span<const double> values, std::uint64_t seed, int resamples) {
  const Rng rng(seed);
  std::vector<std::uint32_t> words(values.size());
  std::vector<double> means(static_cast<std::size_t>(resamples));
  for (std::size_t i = 0; i < means.size(); ++i) {
    rng.words({static_cast<std::uint32_t>(i), 0, 0}, words);
    double sum = 0;
    for (const std::uint32_t word : words) sum += values[(word * std::uint64_t{values.size()}) >> 32];
    means[i] = sum / static_cast<double>(values.size());
  }
  return means;
}

}  // namespace

Interval bootstrap_mean(std::span<const double> values, std::uint64_t seed, int resamples) {
  check(!values.empty(), "there are no values to take the mean of; restore at least one picture");
  check(resamples > 0, "a bootstrap of ", resamples, " resamples says nothing; take 1000 or more");
  if (std::any_of(values.begin(), values.end(), [](double value) { return std::isnan(value); })) {
    constexpr double unknown = std::numeric_limits<double>::quiet_NaN();
    return {unknown, unknown, unknown};
  }
  // Equal values: their mean need not be rounded to one of them.
  if (std::all_of(values.begin(), values.end(), [&](double value) { return value == values[0]; }))
    return {values[0], values[0], values[0]};
  std::vector<double> means = resampled_means(values, seed, resamples);
  std::sort(means.begin(), means.end());
  return {mean_of(values), quantile(means, 0.025), quantile(means, 0.975)};
}

PairedDifference paired_difference(std::span<const double> a, std::span<const double> b, std::uint64_t seed,
                                   int resamples) {
  check(a.size() == b.size(), "pairs need as many values on both sides, not ", a.size(), " and ", b.size());
  std::vector<double> differences(a.size());
  std::transform(b.begin(), b.end(), a.begin(), differences.begin(), std::minus<>());
  const Interval interval = bootstrap_mean(differences, seed, resamples);
  return {interval.mean, interval.low, interval.high, static_cast<int>(a.size()),
          a.size() >= 2 && (interval.low > 0 || interval.high < 0)};
}

}  // namespace dpg::evaluate
