#include <torch/torch.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "dpg/core/jackknife.h"
#include "dpg/core/rng.h"
#include "dpg/metrics/feature_sets.h"
#include "dpg/metrics/frechet.h"

namespace dpg {
namespace {

constexpr std::int64_t kLargestSubset = 1000;
constexpr int kSubsets = 100;

Tensor kernel(const Tensor& a, const Tensor& b) {
  return (a.mm(b.t()) / static_cast<double>(a.size(1)) + 1).pow(3);
}

struct Estimate {
  double value;
  double variance_a, variance_b;  // of `value`, over the choice of the first and of the second set's pictures
};

// From the estimates that leave out one picture each.
double jackknife_variance(const Tensor& leaving_one_out) {
  const Tensor values = leaving_one_out.contiguous();
  const double error = jackknife_error({values.data_ptr<double>(), static_cast<std::size_t>(values.numel())});
  return error * error;
}

// What the estimate becomes without each picture of the set x, up to terms that do not change: `within` and
// `across` are its pictures' kernel sums with the others of their set and with the other set, of m pictures.
Tensor without_each(const Tensor& within, const Tensor& across, double m) {
  const auto n = static_cast<double>(within.size(0));
  return (within.sum() - 2 * within) / ((n - 1) * (n - 2)) - 2 * (across.sum() - across) / ((n - 1) * m);
}

// The mean over pairs of different pictures of each set, less twice the mean over pairs of one from each.
Estimate estimate(const Tensor& a, const Tensor& b) {
  const auto sums_within = [](const Tensor& x) {
    const Tensor k = kernel(x, x);
    return k.sum(1) - k.diagonal();
  };
  const auto n = static_cast<double>(a.size(0)), m = static_cast<double>(b.size(0));
  const Tensor within_a = sums_within(a), within_b = sums_within(b), across = kernel(a, b);
  const double value =
      (within_a.sum() / (n * (n - 1)) + within_b.sum() / (m * (m - 1)) - 2 * across.mean()).item<double>();
  if (n < 3 || m < 3) {
    constexpr double unknown = std::numeric_limits<double>::quiet_NaN();
    return {value, unknown, unknown};
  }
  return {value, jackknife_variance(without_each(within_a, across.sum(1), m)),
          jackknife_variance(without_each(within_b, across.sum(0), n))};
}

// `count` different rows of x, by the first steps of a Fisher-Yates shuffle.
Tensor random_rows(const Tensor& x, std::int64_t count, const Rng& rng, NoiseKey key) {
  if (count == x.size(0)) return x;
  std::vector<std::uint32_t> words(static_cast<std::size_t>(count));
  rng.words(key, words);
  std::vector<std::int64_t> rows(static_cast<std::size_t>(x.size(0)));
  std::iota(rows.begin(), rows.end(), 0);
  for (std::size_t i = 0; i < words.size(); ++i)
    std::swap(rows[i], rows[i + ((words[i] * std::uint64_t{rows.size() - i}) >> 32)]);
  rows.resize(words.size());
  return x.index_select(0, torch::tensor(rows, torch::kLong));
}

}  // namespace

KernelDistance kernel_distance(const Tensor& a, const Tensor& b, std::uint64_t seed) {
  const torch::NoGradGuard no_gradient;
  const auto [rows_a, rows_b] = metrics::checked_feature_sets("the kernel distance", a, b);
  const std::int64_t n = a.size(0), m = b.size(0), subset = std::min({kLargestSubset, n, m});
  const int subsets = subset == n && subset == m ? 1 : kSubsets;
  const Rng rng(seed);
  double value = 0, variance_a = 0, variance_b = 0;
  for (int i = 0; i < subsets; ++i) {
    const NoiseKey key{static_cast<std::uint32_t>(i), 0, 0}, other{static_cast<std::uint32_t>(i), 0, 1};
    const Estimate one =
        estimate(random_rows(rows_a, subset, rng, key), random_rows(rows_b, subset, rng, other));
    value += one.value / subsets;
    variance_a += one.variance_a / subsets;
    variance_b += one.variance_b / subsets;
  }
  // The mean over many subsets knows of all the pictures: the variance falls with their number.
  const auto share = [&](std::int64_t pictures) {
    return static_cast<double>(subset) / static_cast<double>(pictures);
  };
  return {value, std::sqrt(variance_a * share(n) + variance_b * share(m))};
}

}  // namespace dpg
