#include "dpg/core/rng.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <vector>

#if defined(_OPENMP)
#include <omp.h>
#endif

#include "dpg/core/cpu.h"
#include "dpg/core/error.h"
#include "dpg/core/normal_math.h"
#include "dpg/core/rng_simd.h"

namespace dpg {
namespace {

constexpr std::size_t kMany = std::size_t{1} << 24;

std::vector<float> normals(std::uint64_t seed, NoiseKey key, std::size_t count, std::uint64_t first = 0) {
  std::vector<float> out(count);
  Rng(seed).normal(key, out, first);
  return out;
}

// The same stream that most of the tests of the distribution look at.
const std::vector<float>& many_normals() {
  static const std::vector<float> numbers = normals(20240229, {3, 41, 5}, kMany);
  return numbers;
}

double normal_cdf(double x) {
  return 0.5 * std::erfc(-x / std::numbers::sqrt2);
}

TEST(Philox, KnownAnswersOfRandom123) {
  struct Case {
    PhiloxWords counter;
    PhiloxKey key;
    std::array<std::uint32_t, 4> expected;
  };
  const Case cases[] = {
      {{0, 0, 0, 0}, {0, 0}, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
      {{~0u, ~0u, ~0u, ~0u}, {~0u, ~0u}, {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
      {{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
       {0xa4093822, 0x299f31d0},
       {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
  };
  for (const Case& c : cases) {
    const PhiloxWords w = philox4x32_10(c.counter, c.key);
    EXPECT_EQ((std::array{w.w0, w.w1, w.w2, w.w3}), c.expected);
  }
}

TEST(Rng, PlacesSeedAndKeyInKeyAndCounter) {
  std::array<std::uint32_t, 4> words{};
  Rng(0x299f31d0a4093822u).words({0x85a308d3, 0x13198a2e, 0x03707344}, words, std::uint64_t{4} * 0x243f6a88);
  EXPECT_EQ(words, (std::array<std::uint32_t, 4>{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

template <class T, class Fill>
std::vector<T> fill_with(Fill fill, const simd::BlockRange& range) {
  std::vector<T> out(4 * static_cast<std::size_t>(range.blocks));
  fill(range, out.data());
  return out;
}

TEST(Rng, EveryInstructionSetGivesTheSameBits) {
  // An odd count, so that vector loops and their scalar remainders are both compared.
  const simd::BlockRange range{{7, 9}, {1, 2, 3}, 0xFFFFu, 250'003};
  const auto bits = [](const std::vector<float>& v) {
    std::vector<std::uint32_t> b(v.size());
    std::transform(v.begin(), v.end(), b.begin(), bits_of);
    return b;
  };
  const auto normal = bits(fill_with<float>(simd::baseline::normal_blocks, range));
  const auto uniform = bits(fill_with<float>(simd::baseline::uniform_blocks, range));
  const auto words = fill_with<std::uint32_t>(simd::baseline::word_blocks, range);
  if (!isa_supported(Isa::avx2)) GTEST_SKIP() << "this processor has no AVX2: there is nothing to compare";
  EXPECT_EQ(normal, bits(fill_with<float>(simd::avx2::normal_blocks, range)));
  EXPECT_EQ(uniform, bits(fill_with<float>(simd::avx2::uniform_blocks, range)));
  EXPECT_EQ(words, fill_with<std::uint32_t>(simd::avx2::word_blocks, range));
  if (!isa_supported(Isa::avx512)) return;
  EXPECT_EQ(normal, bits(fill_with<float>(simd::avx512::normal_blocks, range)));
  EXPECT_EQ(uniform, bits(fill_with<float>(simd::avx512::uniform_blocks, range)));
  EXPECT_EQ(words, fill_with<std::uint32_t>(simd::avx512::word_blocks, range));
}

TEST(Rng, AnySplitOfASpanGivesTheSameNumbers) {
  const Rng rng(11);
  const NoiseKey key{1, 2, 3};
  constexpr std::size_t count = 300'000;  // above the size from which threads share the work
  const std::vector<float> whole = normals(11, key, count, 5);
  std::vector<float> pieces(count);
  std::size_t done = 0;
  for (std::size_t length = 0; done < count; length = length * 3 / 2 + 1) {
    const std::size_t now = std::min(length, count - done);
    rng.normal(key, std::span(pieces).subspan(done, now), 5 + done);
    done += now;
  }
  EXPECT_EQ(whole, pieces);
  for (std::size_t first = 0; first < 9; ++first)
    for (std::size_t length = 0; length < 9; ++length) {
      const std::vector<float> part = normals(11, key, length, 5 + first);
      EXPECT_TRUE(std::equal(part.begin(), part.end(), whole.begin() + static_cast<std::ptrdiff_t>(first)));
    }
}

#if defined(_OPENMP)
TEST(Rng, AnyThreadCountGivesTheSameNumbers) {
  const int before = omp_get_max_threads();
  std::vector<std::vector<float>> results;
  for (const int threads : {1, 2, 5}) {
    omp_set_num_threads(threads);
    results.push_back(normals(12, {}, 1'000'001, 3));
  }
  omp_set_num_threads(before);
  EXPECT_EQ(results[0], results[1]);
  EXPECT_EQ(results[0], results[2]);
}
#endif

TEST(Rng, AStreamEndsWithASentence) {
  const Rng rng(1);
  const std::uint64_t end = std::uint64_t{1} << 34;
  std::array<float, 4> out{};
  rng.normal({}, out, end - 4);
  EXPECT_THROW(rng.normal({}, out, end - 3), Error);
  EXPECT_THROW(rng.normal({}, out, ~std::uint64_t{0}), Error);
  EXPECT_NO_THROW(rng.normal({}, {}, end));
}

// Box and Muller in double, from the same words.
TEST(NormalMath, AgreesWithDoublePrecision) {
  std::vector<std::uint32_t> words(1 << 20);
  Rng(5).words({}, words);
  // The corners: both ends of the radius, the places where exponent and quarter change.
  for (const std::uint32_t corner : {0u, 1u, 0x3FFFFFFFu, 0x40000000u, 0x7FFFFFFFu, 0x80000000u, 0xB504F333u,
                                     0xB504F334u, 0xFFFFFFFEu, 0xFFFFFFFFu, 0x20000000u, 0x1FFFFFFFu})
    for (const std::uint32_t other : {0u, 0x1FFFFFFFu, 0x20000000u, 0x60000000u, 0xDFFFFFFFu, 0xFFFFFFFFu}) {
      words.push_back(corner);
      words.push_back(other);
    }
  double worst = 0;
  for (std::size_t i = 0; i < words.size(); i += 2) {
    const double radius = std::sqrt(-2 * std::log((words[i] + 0.5) * 0x1p-32));
    const double angle = 2 * std::numbers::pi * words[i + 1] * 0x1p-32;
    const NormalPair pair = words_to_normals(words[i], words[i + 1]);
    worst = std::max({worst, std::abs(pair.first - radius * std::cos(angle)),
                      std::abs(pair.second - radius * std::sin(angle))});
  }
  EXPECT_LT(worst, 2e-6);
}

TEST(NormalMath, TheLargestNormalIsBeyondSixSigma) {
  EXPECT_NEAR(words_to_normals(0, 0).first, std::sqrt(66 * std::numbers::ln2), 1e-5);
}

TEST(NormalMath, UniformsLieInTheOpenInterval) {
  EXPECT_EQ(word_to_uniform(0), 0x1p-24f);
  EXPECT_EQ(word_to_uniform(~0u), 1 - 0x1p-24f);
  std::vector<float> uniform(1 << 22);
  Rng(6).uniform({}, uniform);
  std::array<double, 256> count{};
  for (const float u : uniform) count.at(static_cast<std::size_t>(u * 256)) += 1;
  const double expected = static_cast<double>(uniform.size()) / count.size();
  double chi_square = 0;
  for (const double c : count) chi_square += (c - expected) * (c - expected) / expected;
  EXPECT_NEAR(chi_square, 255, 5 * std::sqrt(2 * 255.0));
}

// Bounds are five standard deviations of the estimate for true normals.
TEST(Normals, MomentsAreThoseOfAStandardNormal) {
  double m1 = 0, m2 = 0, m3 = 0, m4 = 0;
  for (const double x : many_normals()) {
    m1 += x;
    m2 += x * x;
    m3 += x * x * x;
    m4 += x * x * x * x;
  }
  const double n = kMany, root = std::sqrt(n);
  EXPECT_NEAR(m1 / n, 0, 5 / root);
  EXPECT_NEAR(m2 / n, 1, 5 * std::sqrt(2.0) / root);
  EXPECT_NEAR(m3 / n, 0, 5 * std::sqrt(15.0) / root);
  EXPECT_NEAR(m4 / n, 3, 5 * std::sqrt(96.0) / root);
}

TEST(Normals, PassKolmogorovAndSmirnov) {
  std::vector<float> sorted = many_normals();
  std::sort(sorted.begin(), sorted.end());
  const double n = kMany;
  double distance = 0;
  for (std::size_t i = 0; i < sorted.size(); ++i) {
    const double cdf = normal_cdf(sorted[i]);
    distance = std::max({distance, cdf - static_cast<double>(i) / n, static_cast<double>(i + 1) / n - cdf});
  }
  EXPECT_LT(distance, 1.95 / std::sqrt(n));  // exceeded by chance once in a thousand
}

TEST(Normals, TailsHaveTheRightWeight) {
  for (const double sigma : {3.0, 4.0, 4.5}) {
    const double expected = kMany * normal_cdf(-sigma);
    const auto beyond = [&](auto outside) {
      return static_cast<double>(std::count_if(many_normals().begin(), many_normals().end(), outside));
    };
    EXPECT_NEAR(beyond([&](float x) { return x > sigma; }), expected, 4 * std::sqrt(expected) + 1) << sigma;
    EXPECT_NEAR(beyond([&](float x) { return x < -sigma; }), expected, 4 * std::sqrt(expected) + 1) << sigma;
  }
  // Ten of these numbers are expected beyond 5 sigma.
  EXPECT_TRUE(
      std::any_of(many_normals().begin(), many_normals().end(), [](float x) { return std::abs(x) > 5; }));
}

double correlation(const std::vector<float>& a, const std::vector<float>& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += static_cast<double>(a[i]) * b[i];
  return sum / static_cast<double>(a.size());
}

TEST(Normals, StreamsThatDifferByOneInOneFieldAreIndependent) {
  constexpr std::size_t count = 1 << 20;
  const double bound = 5 / std::sqrt(static_cast<double>(count));
  const NoiseKey key{8, 15, 3};
  const std::vector<float> reference = normals(99, key, count);
  EXPECT_LT(std::abs(correlation(reference, normals(100, key, count))), bound);
  EXPECT_LT(std::abs(correlation(reference, normals(99 + (std::uint64_t{1} << 32), key, count))), bound);
  EXPECT_LT(std::abs(correlation(reference, normals(99, {9, 15, 3}, count))), bound);
  EXPECT_LT(std::abs(correlation(reference, normals(99, {8, 16, 3}, count))), bound);
  EXPECT_LT(std::abs(correlation(reference, normals(99, {8, 15, 4}, count))), bound);
  for (const std::uint64_t lag : {1, 2, 3, 4})
    EXPECT_LT(std::abs(correlation(reference, normals(99, key, count, lag))), bound) << lag;
}

}  // namespace
}  // namespace dpg
