// The fused kernels against a plain double-precision reference and finite differences, for each instruction
// set.
#include "dpg/kernels/norm.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

namespace dpg::kernels {
namespace {

struct Problem {
  NormShape shape;
  bool scale_shift = false;
  std::vector<float> x, dy, gamma, beta, scale, shift;

  NormParameters parameters() const {
    return {gamma.data(), beta.data(), scale_shift ? scale.data() : nullptr,
            scale_shift ? shift.data() : nullptr};
  }
};

Problem make_problem(std::mt19937& gen, bool silu, bool scale_shift, float offset = 0) {
  const auto pick = [&](int low, int high) { return std::uniform_int_distribution<int>(low, high)(gen); };
  Problem p;
  const int groups = pick(1, 8);
  p.shape = {pick(1, 3), pick(1, 200), groups * pick(1, 9), groups, 1e-5f, silu};
  p.scale_shift = scale_shift;
  std::normal_distribution<float> normal;
  const auto fill = [&](std::vector<float>& v, std::int64_t n, float add) {
    v.resize(n);
    for (float& e : v) e = normal(gen) + add;
  };
  const auto& s = p.shape;
  fill(p.x, s.images * s.pixels * s.channels, offset);
  fill(p.dy, s.images * s.pixels * s.channels, 0);
  fill(p.gamma, s.channels, 1);
  fill(p.beta, s.channels, 0);
  fill(p.scale, s.images * s.channels, 0);
  fill(p.shift, s.images * s.channels, 0);
  return p;
}

// The definition at the top of norm.h, word for word.
std::vector<double> reference_forward(const Problem& p, const std::vector<double>& x) {
  const auto& s = p.shape;
  const std::int64_t width = s.channels / s.groups;
  std::vector<double> y(x.size());
  for (std::int64_t n = 0; n < s.images; ++n)
    for (std::int64_t g = 0; g < s.groups; ++g) {
      const auto each = [&](auto&& visit) {
        for (std::int64_t i = 0; i < s.pixels; ++i)
          for (std::int64_t c = g * width; c < (g + 1) * width; ++c)
            visit((n * s.pixels + i) * s.channels + c, c);
      };
      double mean = 0, variance = 0;
      const double count = static_cast<double>(s.pixels * width);
      each([&](std::int64_t j, std::int64_t) { mean += x[j] / count; });
      each([&](std::int64_t j, std::int64_t) { variance += (x[j] - mean) * (x[j] - mean) / count; });
      each([&](std::int64_t j, std::int64_t c) {
        double z = (x[j] - mean) / std::sqrt(variance + s.eps) * p.gamma[c] + p.beta[c];
        if (p.scale_shift) z = z * (1 + p.scale[n * s.channels + c]) + p.shift[n * s.channels + c];
        y[j] = s.silu ? z / (1 + std::exp(-z)) : z;
      });
    }
  return y;
}

double dot(const std::vector<double>& a, const std::vector<float>& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

std::vector<Isa> supported() {
  std::vector<Isa> all;
  for (Isa isa : {Isa::baseline, Isa::avx2, Isa::avx512})
    if (isa_supported(isa)) all.push_back(isa);
  return all;
}

std::vector<Bf16> to_bf16(
    std::vector<float>& values) {  // rounds `values` too, so that both see the same numbers
  std::vector<Bf16> out;
  for (float& v : values) {
    const auto bits = static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(v) >> 16);
    out.push_back({bits});
    v = std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
  }
  return out;
}
float from_bf16(Bf16 v) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(v.bits) << 16);
}

constexpr const float* no_add = nullptr;
constexpr const Bf16* no_add16 = nullptr;
template <class T>
NormGradient<T> whole(const Problem& p, std::vector<T>& dx) {
  return {dx.data(), p.shape.channels, nullptr};
}

TEST(Norm, ForwardEqualsDefinition) {
  std::mt19937 gen(1);
  for (int round = 0; round < 60; ++round) {
    const Problem p = make_problem(gen, round % 2 == 0, round % 3 == 0, round % 5 == 0 ? 30.0f : 0.0f);
    const auto expected = reference_forward(p, {p.x.begin(), p.x.end()});
    for (Isa isa : supported()) {
      std::vector<float> y(p.x.size(), std::nanf("")), statistics(p.shape.images * p.shape.groups * 2);
      norm_forward(p.shape, p.parameters(), p.x.data(), y.data(), statistics.data(), isa);
      for (std::size_t i = 0; i < y.size(); ++i)
        ASSERT_NEAR(y[i], expected[i], 2e-4 + 2e-4 * std::abs(expected[i]))
            << isa_name(isa) << " round " << round;
    }
  }
}

TEST(Norm, BackwardEqualsFiniteDifferencesOfTheDefinition) {
  std::mt19937 gen(2);
  for (int round = 0; round < 30; ++round) {
    const Problem p = make_problem(gen, round % 2 == 0, round % 3 == 0);
    std::vector<double> x(p.x.begin(), p.x.end());
    for (Isa isa : supported()) {
      std::vector<float> y(p.x.size()), statistics(p.shape.images * p.shape.groups * 2), dx(p.x.size());
      norm_forward(p.shape, p.parameters(), p.x.data(), y.data(), statistics.data(), isa);
      std::vector<float> dy = p.dy;  // used up
      norm_backward(p.shape, p.parameters(), p.x.data(), statistics.data(), dy.data(), no_add, whole(p, dx),
                    isa);
      for (int probe = 0; probe < 6; ++probe) {
        const std::size_t j = std::uniform_int_distribution<std::size_t>(0, x.size() - 1)(gen);
        const double h = 1e-5, kept = x[j];
        x[j] = kept + h;
        const double up = dot(reference_forward(p, x), p.dy);
        x[j] = kept - h;
        const double down = dot(reference_forward(p, x), p.dy);
        x[j] = kept;
        const double slope = (up - down) / (2 * h);
        ASSERT_NEAR(dx[j], slope, 2e-3 + 2e-3 * std::abs(slope)) << isa_name(isa) << " round " << round;
      }
    }
  }
}

TEST(Norm, Bf16DiffersFromFloatByItsRoundingAlone) {
  std::mt19937 gen(3);
  for (int round = 0; round < 20; ++round) {
    Problem p = make_problem(gen, true, round % 2 == 0);
    const auto x16 = to_bf16(p.x);
    auto dy16 = to_bf16(p.dy);
    std::vector<float> dy = p.dy;
    const std::size_t n = p.x.size();
    std::vector<float> y(n), dx(n), statistics(p.shape.images * p.shape.groups * 2),
        statistics16 = statistics;
    std::vector<Bf16> y16(n), dx16(n);
    norm_forward(p.shape, p.parameters(), p.x.data(), y.data(), statistics.data());
    norm_forward(p.shape, p.parameters(), x16.data(), y16.data(), statistics16.data());
    norm_backward(p.shape, p.parameters(), p.x.data(), statistics.data(), dy.data(), no_add, whole(p, dx));
    norm_backward(p.shape, p.parameters(), x16.data(), statistics16.data(), dy16.data(), no_add16,
                  whole(p, dx16));
    EXPECT_EQ(statistics, statistics16);
    for (std::size_t i = 0; i < n; ++i) {
      ASSERT_LE(std::abs(from_bf16(y16[i]) - y[i]), std::abs(y[i]) / 256 + 1e-30f);
      // Rounded twice: dy * silu'(z), of which dx takes a = rstd * gamma * (1 + scale), and dx itself. silu'
      // < 1.1.
      const std::int64_t c = static_cast<std::int64_t>(i) % p.shape.channels;
      const std::int64_t image = static_cast<std::int64_t>(i) / (p.shape.pixels * p.shape.channels);
      const std::int64_t group = c / (p.shape.channels / p.shape.groups);
      const float scale = p.scale_shift ? 1 + p.scale[image * p.shape.channels + c] : 1;
      const float a = statistics[(image * p.shape.groups + group) * 2 + 1] * p.gamma[c] * scale;
      ASSERT_LE(std::abs(from_bf16(dx16[i]) - dx[i]), (std::abs(dx[i]) + 1.1f * std::abs(a * p.dy[i])) / 256);
    }
  }
}

TEST(Norm, AddedGradientAndSplitOutputEqualTheWhole) {
  std::mt19937 gen(4);
  for (int round = 0; round < 20; ++round) {
    const Problem p = make_problem(gen, true, true);
    const std::int64_t C = p.shape.channels, rows = p.shape.images * p.shape.pixels;
    const std::int64_t first = std::uniform_int_distribution<std::int64_t>(1, C)(gen);
    std::vector<float> y(p.x.size()), statistics(p.shape.images * p.shape.groups * 2), dx(p.x.size());
    std::vector<float> head(rows * first), tail(rows * (C - first));
    norm_forward(p.shape, p.parameters(), p.x.data(), y.data(), statistics.data());
    std::vector<float> dy = p.dy;  // used up by each call
    norm_backward(p.shape, p.parameters(), p.x.data(), statistics.data(), dy.data(), no_add, whole(p, dx));
    dy = p.dy;
    norm_backward(p.shape, p.parameters(), p.x.data(), statistics.data(), dy.data(), p.x.data(),
                  {head.data(), first, first < C ? tail.data() : nullptr});
    for (std::int64_t r = 0; r < rows; ++r)
      for (std::int64_t c = 0; c < C; ++c) {
        const float part = c < first ? head[r * first + c] : tail[r * (C - first) + c - first];
        ASSERT_EQ(part, dx[r * C + c] + p.x[r * C + c]);
      }
  }
}

TEST(Norm, LargeActivationsSaturateAndNanStaysNan) {
  Problem p;
  p.shape = {1, 2, 2, 1, 1e-5f, true};
  p.gamma = {1e4f, 1e4f};
  p.beta = {0, 0};
  p.x = {1, -1, 1, -1};
  std::vector<float> y(4), statistics(2);
  norm_forward(p.shape, p.parameters(), p.x.data(), y.data(), statistics.data());
  EXPECT_NEAR(y[0], 1e4f, 1.0f);
  EXPECT_NEAR(y[1], 0.0f, 1e-20f);
  p.x[2] = std::numeric_limits<float>::quiet_NaN();
  norm_forward(p.shape, p.parameters(), p.x.data(), y.data(), statistics.data());
  for (float v : y) EXPECT_TRUE(std::isnan(v));
}

TEST(Norm, RefusesChannelsThatDoNotSplit) {
  Problem p;
  p.shape = {1, 1, 3, 2, 1e-5f, true};
  float one[4] = {}, statistics[4];
  EXPECT_ANY_THROW(norm_forward(p.shape, {one, one, nullptr, nullptr}, one, one, statistics));
}

}  // namespace
}  // namespace dpg::kernels
