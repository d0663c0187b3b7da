#include "dpg/measure/poisson.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <optional>
#include <vector>

#include "dpg/core/error.h"

namespace dpg {
namespace {

constexpr int kWords = 4;            // per attempt: two uniforms of 53 bits
constexpr double kSmallMean = 30.0;  // below: inversion; above: rejection, valid from a mean of 10 on

// Uniform in the open interval (0, 1), from two words.
double uniform(std::uint32_t high, std::uint32_t low) {
  const std::uint64_t bits =
      (static_cast<std::uint64_t>(high) << 32 | low) >> 12;  // 52 bits, so that + 0.5 is exact
  return (static_cast<double>(bits) + 0.5) * 0x1p-52;
}

double log_factorial(double k) {
  static const auto small = [] {
    std::array<double, 16> table{};
    for (std::size_t i = 1; i < table.size(); ++i) table[i] = table[i - 1] + std::log(static_cast<double>(i));
    return table;
  }();
  if (k < static_cast<double>(small.size())) return small[static_cast<std::size_t>(k)];
  const double n = k + 1, square = n * n;  // Stirling's series for log Gamma(n)
  return (n - 0.5) * std::log(n) - n + 0.91893853320467274178 +
         (1.0 / 12 - (1.0 / 360 - 1.0 / 1260 / square) / square) / n;
}

// The smallest k whose cumulative probability exceeds u.
double by_inversion(double mean, double u) {
  double k = 0, probability = std::exp(-mean), cumulative = probability;
  while (u > cumulative && probability > 0) {
    ++k;
    probability *= mean / k;
    cumulative += probability;
  }
  return k;
}

// One attempt of Hörmann's transformed rejection with squeeze ("PTRS", The transformed rejection method for
// generating Poisson random variables, 1993); empty when the attempt is rejected.
std::optional<double> by_rejection(double mean, double u, double v) {
  const double b = 0.931 + 2.53 * std::sqrt(mean);
  const double a = -0.059 + 0.02483 * b;
  const double inverse_alpha = 1.1239 + 1.1328 / (b - 3.4);
  const double v_r = 0.9277 - 3.6224 / (b - 2);
  const double centred = u - 0.5;
  const double us = 0.5 - std::abs(centred);
  const double k = std::floor((2 * a / us + b) * centred + mean + 0.43);
  if (us >= 0.07 && v <= v_r) return k;
  if (k < 0 || (us < 0.013 && v > us)) return std::nullopt;
  const double target = k * std::log(mean) - mean - log_factorial(k);
  if (std::log(v * inverse_alpha / (a / (us * us) + b)) <= target) return k;
  return std::nullopt;
}

std::optional<double> attempt(double mean, const std::uint32_t* words) {
  const double u = uniform(words[0], words[1]);
  if (mean < kSmallMean) return mean > 0 ? by_inversion(mean, u) : 0.0;
  return by_rejection(mean, u, uniform(words[2], words[3]));
}

}  // namespace

void poisson(const Rng& rng, NoiseKey key, std::span<const double> mean, std::span<double> out) {
  const std::uint64_t entries = mean.size();
  std::vector<std::uint32_t> words(entries * kWords);
  rng.words(key, words);
  for (std::uint64_t e = 0; e < entries; ++e) {
    check(mean[e] >= 0 && mean[e] <= 1e12, "a Poisson mean of ", mean[e],
          " is outside 0 to 1e12; lower the rate");
    std::optional<double> sample = attempt(mean[e], &words[e * kWords]);
    // Attempt r of entry e reads block r * entries + e, so no two ever share numbers.
    for (std::uint64_t round = 1; !sample; ++round) {
      std::array<std::uint32_t, kWords> more;
      rng.words(key, more, (round * entries + e) * kWords);
      sample = attempt(mean[e], more.data());
    }
    out[e] = *sample;
  }
}

}  // namespace dpg
