// The GPU's kernels, emulated on the CPU (emulated/emulated.h), against plain double-precision references on
// random shapes. gpu_test compares the same kernels on a card; this one needs none.
#include <gtest/gtest.h>

#include "dpg/core/rng.h"
#include "dpg/kernels/emulated/cuda_runtime.h"
#include "dpg/kernels/normal_cuda.h"
#include "dpg/kernels/split_cuda.h"
#include "dpg/kernels/test_emulated.h"

namespace dpg::cuda {
namespace {

// ---- The emulation itself: it must notice what a card would suffer from.

template <bool kWaits>
void reverse_block(const int* from, int* to) {
  static int shared[256];
  shared[threadIdx.x] = from[threadIdx.x];
  if (kWaits) __syncthreads();
  to[threadIdx.x] = shared[255 - threadIdx.x];
}

TEST(Emulation, AMissingWaitIsNoticed) {
  std::vector<int> from(256), with(256), without(256);
  for (int i = 0; i < 256; ++i) from[i] = i;
  reverse_block<true>->*emulated::Launch{1, 256}(from.data(), with.data());
  for (int i = 0; i < 256; ++i) EXPECT_EQ(with[i], 255 - i);
  for (int& v : from) v += 1000;  // the last block's numbers are still in its memory
  reverse_block<false>->*emulated::Launch{1, 256}(from.data(), without.data());
  int wrong = 0;
  for (int i = 0; i < 256; ++i) wrong += without[i] != 1255 - i;
  EXPECT_GT(wrong, 50);
}

void sum_warp(const float* from, float* to, unsigned lanes) {
  if (threadIdx.x >= lanes) return;
  float total = from[threadIdx.x];
  for (int d = 16; d > 0; d /= 2) total += __shfl_xor_sync(0xffffffffu, total, d);
  to[threadIdx.x] = total;
}

TEST(Emulation, ExchangesNeedEveryLane) {
  std::vector<float> from(64), to(64);
  for (int i = 0; i < 64; ++i) from[i] = static_cast<float>(i);
  sum_warp->*emulated::Launch{1, 64}(from.data(), to.data(), 64u);
  for (int i = 0; i < 64; ++i) EXPECT_EQ(to[i], i < 32 ? 496 : 1520);
  EXPECT_ANY_THROW((sum_warp->*emulated::Launch{1, 64}(from.data(), to.data(), 40u)));
  EXPECT_ANY_THROW((sum_warp->*emulated::Launch{1, 48}(from.data(), to.data(), 48u)));
}

// ---- The sum that ends a residual block.

template <class T>
void compare_sum(Dice& dice, double bound) {
  const Picture p{dice.pick(1, 3), 2 * dice.pick(1, 12), 2 * dice.pick(1, 12), 8 * dice.pick(1, 40)};
  const Size size = any_size(dice);
  const Picture r = p.resized(size);
  const Stored<T> other(dice.normals(p.count()));
  Stored<T> out(dice.normals(r.count()));
  const std::vector<float> bias = dice.normals(p.channels);
  const bool with_bias = dice.often(2);
  Doubles wide(static_cast<std::size_t>(p.count()));
  for (std::size_t i = 0; i < wide.size(); ++i) wide[i] = other[static_cast<std::int64_t>(i)];
  Doubles expected = resized(wide, p, size);
  for (std::size_t i = 0; i < expected.size(); ++i)
    expected[i] +=
        out[static_cast<std::int64_t>(i)] + (with_bias ? bias[i % static_cast<std::size_t>(p.channels)] : 0);
  add_with_bias<T>(p.images, r.height * r.width, p.channels, out.values.data(), other.values.data(), p.width,
                   size, with_bias ? bias.data() : nullptr, nullptr);
  EXPECT_LT(relative_error(out, expected), bound) << p.height << "x" << p.width << "x" << p.channels;
}

TEST(EmulatedKernels, SumWithBiasEqualsThePlainOne) {
  Dice dice(6);
  for (int round = 0; round < 12; ++round) {
    compare_sum<float>(dice, 1e-7);
    compare_sum<Bf16>(dice, 3e-3);
  }
}

// ---- Splitting and random numbers: bit for bit.

TEST(EmulatedKernels, SplitFollowsItsFormula) {
  Dice dice(7);
  for (int round = 0; round < 12; ++round) {
    const std::int64_t n = dice.pick(1, 3), channels = dice.pick(1, 9), pixels = dice.pick(1, 900);
    const std::int64_t wide = (2 * channels + 2 + 7) / 8 * 8 + 8 * dice.pick(0, 1);
    const std::vector<float> x = dice.normals(n * channels * pixels);
    Stored<Bf16> out(n * pixels * wide);
    split_channels(n, channels, pixels, x.data(), wide, out.values.data(), nullptr);
    const auto rounded = [](float v) { return __bfloat162float(__float2bfloat16_rn(v)); };
    for (std::int64_t i = 0; i < n * pixels * wide; ++i) {
      const std::int64_t c = i % wide, pixel = i / wide % pixels, image = i / wide / pixels;
      const auto at = [&](std::int64_t channel) { return x[(image * channels + channel) * pixels + pixel]; };
      const float expected = c < channels           ? rounded(at(c))
                             : c < 2 * channels     ? rounded(at(c - channels) - rounded(at(c - channels)))
                             : c < 2 * channels + 2 ? 1.0f
                                                    : 0.0f;
      ASSERT_EQ(out[i], expected) << i;
    }
  }
}

TEST(EmulatedKernels, NormalsAreThoseOfTheCpu) {
  Dice dice(8);
  const std::vector<std::uint32_t> images{3, 0, 700000};
  for (int round = 0; round < 8; ++round) {
    const std::int64_t rows = 3 * dice.pick(1, 4), each = dice.pick(1, 3000);
    const std::uint64_t seed = 0x123456789abcull + static_cast<std::uint64_t>(round);
    std::vector<float> out(static_cast<std::size_t>(rows * each)), expected(static_cast<std::size_t>(each));
    fill_normals({seed, images.data(), 3, 17, 5}, rows, each, out.data(), nullptr);
    for (std::int64_t row = 0; row < rows; ++row) {
      Rng(seed).normal(
          {images[static_cast<std::size_t>(row % 3)], 17, 5 + static_cast<std::uint32_t>(row / 3)}, expected);
      for (std::int64_t j = 0; j < each; ++j) ASSERT_EQ(out[row * each + j], expected[j]) << row << ", " << j;
    }
  }
}

}  // namespace
}  // namespace dpg::cuda
