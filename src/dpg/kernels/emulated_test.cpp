// The GPU's kernels, emulated on the CPU (emulated/emulated.h), against plain double-precision references on
// random shapes. gpu_test compares the same kernels on a card; this one needs none.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <optional>
#include <random>
#include <vector>

#include "dpg/core/rng.h"
#include "dpg/kernels/emulated/cuda_bf16.h"
#include "dpg/kernels/emulated/cuda_runtime.h"
#include "dpg/kernels/norm_cuda.h"
#include "dpg/kernels/normal_cuda.h"
#include "dpg/kernels/split_cuda.h"

namespace dpg::cuda {
namespace {

using kernels::Bf16;
using Doubles = std::vector<double>;

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

// ---- What the tests of kernels share.

class Dice {
 public:
  explicit Dice(unsigned seed) : generator_(seed) {}
  std::int64_t pick(int low, int high) { return std::uniform_int_distribution<int>(low, high)(generator_); }
  bool often(int of) { return pick(1, of) > 1; }
  std::vector<float> normals(std::int64_t count, float mean = 0) {
    std::normal_distribution<float> normal(mean);
    std::vector<float> v(static_cast<std::size_t>(count));
    for (float& e : v) e = normal(generator_);
    return v;
  }

 private:
  std::mt19937 generator_;
};

float to_float(float x) {
  return x;
}
float to_float(Bf16 x) {
  return __bfloat162float({x.bits});
}
void assign(float& to, float from) {
  to = from;
}
void assign(Bf16& to, float from) {
  to = {__float2bfloat16_rn(from).bits};
}

// A tensor as a kernel sees it: [image][pixel][channel].
template <class T>
struct Stored {
  alignas(16) std::vector<T> values;
  explicit Stored(std::int64_t count) : values(static_cast<std::size_t>(count)) {}
  explicit Stored(const std::vector<float>& from) : values(from.size()) {
    for (std::size_t i = 0; i < from.size(); ++i) assign(values[i], from[i]);
  }
  double operator[](std::int64_t i) const { return to_float(values[static_cast<std::size_t>(i)]); }
  bool operator==(const Stored& other) const {
    return std::equal(values.begin(), values.end(), other.values.begin(), other.values.end(),
                      [](T a, T b) { return to_float(a) == to_float(b); });
  }
};

template <class T>
double relative_error(const Stored<T>& actual, const Doubles& expected) {
  double difference = 0, size = 0;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const double d = actual[static_cast<std::int64_t>(i)] - expected[i];
    difference += d * d;
    size += expected[i] * expected[i];
  }
  return std::sqrt(difference / size);
}

struct Picture {
  std::int64_t images, height, width, channels;
  std::int64_t count() const { return images * height * width * channels; }
  std::int64_t at(std::int64_t n, std::int64_t y, std::int64_t x, std::int64_t c) const {
    return ((n * height + y) * width + x) * channels + c;
  }
  Picture resized(Size size) const {
    if (size == Size::same) return *this;
    return size == Size::half ? Picture{images, height / 2, width / 2, channels}
                              : Picture{images, 2 * height, 2 * width, channels};
  }
};

// visit(index in p, index in the resized picture, weight): the resizing as a sparse matrix.
template <class Visit>
void for_each_weight(const Picture& p, Size size, Visit visit) {
  const Picture r = p.resized(size);
  for (std::int64_t n = 0; n < p.images; ++n)
    for (std::int64_t y = 0; y < p.height; ++y)
      for (std::int64_t x = 0; x < p.width; ++x)
        for (std::int64_t c = 0; c < p.channels; ++c) {
          const std::int64_t i = p.at(n, y, x, c);
          if (size == Size::same) visit(i, i, 1.0);
          if (size == Size::half) visit(i, r.at(n, y / 2, x / 2, c), 0.25);
          if (size == Size::twice)
            for (int q = 0; q < 4; ++q) visit(i, r.at(n, 2 * y + q / 2, 2 * x + q % 2, c), 1.0);
        }
}

Doubles resized(const Doubles& from, const Picture& p, Size size) {
  Doubles to(static_cast<std::size_t>(p.resized(size).count()));
  for_each_weight(p, size, [&](auto i, auto j, double w) { to[j] += w * from[i]; });
  return to;
}

Doubles resized_back(const Doubles& from, const Picture& p, Size size) {
  Doubles to(static_cast<std::size_t>(p.count()));
  for_each_weight(p, size, [&](auto i, auto j, double w) { to[i] += w * from[j]; });
  return to;
}

Size any_size(Dice& dice) {
  return static_cast<Size>(dice.pick(0, 2));
}

// ---- The norm.

// One call's numbers, in the order of the whole picture; `parts` cuts them.
struct NormProblem {
  Picture p;
  Size size;
  std::int64_t groups, first;  // first: channels of the first part
  bool silu;
  std::vector<float> x, gamma, beta, scale, shift, added, dy, add, other;  // empty: not given
  bool added_for_each_image = false;

  double parameter(const std::vector<float>& v, std::int64_t n, std::int64_t c) const {
    return v.empty() ? 0 : v[static_cast<std::size_t>(n * p.channels + c)];
  }
};

// Its tensors as they are stored.
template <class T, class Y>
struct NormTensors {
  Stored<T> x, add, other;
  Stored<Y> dy;
  explicit NormTensors(const NormProblem& q) : x(q.x), add(q.add), other(q.other), dy(q.dy) {}
};

struct NormResult {
  Doubles y, dx;
};

// The formula at the top of norm.h, and its derivative, in double precision.
template <class T, class Y>
NormResult plain_norm(const NormProblem& q, const NormTensors<T, Y>& in) {
  const Picture &p = q.p, r = p.resized(q.size);
  const auto count = static_cast<std::size_t>(p.count());
  Doubles y(count), cotangent(static_cast<std::size_t>(r.count())), dx(count);
  for (std::size_t i = 0; i < cotangent.size(); ++i) cotangent[i] = in.dy[static_cast<std::int64_t>(i)];
  const Doubles back = resized_back(cotangent, p, q.size);
  const std::int64_t width = p.channels / q.groups, pixels = p.height * p.width;
  const double members = static_cast<double>(width * pixels);
  for (std::int64_t n = 0; n < p.images; ++n)
    for (std::int64_t g = 0; g < q.groups; ++g) {
      const auto each = [&](auto visit) {
        for (std::int64_t i = 0; i < pixels; ++i)
          for (std::int64_t c = g * width; c < (g + 1) * width; ++c)
            visit(static_cast<std::size_t>((n * pixels + i) * p.channels + c), c);
      };
      const auto value = [&](std::size_t i, std::int64_t c) {
        return in.x[static_cast<std::int64_t>(i)] + q.parameter(q.added, q.added_for_each_image ? n : 0, c);
      };
      double mean = 0, variance = 0;
      each([&](std::size_t i, std::int64_t c) { mean += value(i, c) / members; });
      each([&](std::size_t i, std::int64_t c) { variance += std::pow(value(i, c) - mean, 2) / members; });
      const double rstd = 1 / std::sqrt(variance + 1e-5);
      double sum = 0, along = 0;  // of dxhat, and of dxhat * xhat
      const auto terms = [&](std::size_t i, std::int64_t c) {
        const double xhat = (value(i, c) - mean) * rstd, gain = 1 + q.parameter(q.scale, n, c);
        const double z = (xhat * q.gamma[c] + q.beta[c]) * gain + q.parameter(q.shift, n, c);
        const double sigmoid = 1 / (1 + std::exp(-z)), slope = sigmoid * (1 + z * (1 - sigmoid));
        return std::array{xhat, q.silu ? z * sigmoid : z, back[i] * (q.silu ? slope : 1) * gain * q.gamma[c]};
      };
      each([&](std::size_t i, std::int64_t c) {
        const auto [xhat, result, dxhat] = terms(i, c);
        y[i] = result;
        sum += dxhat / members;
        along += dxhat * xhat / members;
      });
      each([&](std::size_t i, std::int64_t c) {
        const auto [xhat, result, dxhat] = terms(i, c);
        dx[i] = rstd * (dxhat - sum - xhat * along);
      });
    }
  if (!q.add.empty()) {
    Doubles wide(cotangent.size());
    for (std::size_t i = 0; i < wide.size(); ++i) wide[i] = in.add[static_cast<std::int64_t>(i)];
    const Doubles straight = resized_back(wide, p, q.size);
    for (std::size_t i = 0; i < count; ++i) dx[i] += straight[i];
  }
  if (!q.other.empty())
    for (std::size_t i = 0; i < count; ++i) dx[i] += in.other[static_cast<std::int64_t>(i)];
  return {resized(y, p, q.size), dx};
}

// A tensor cut along its channels, as kernels take it.
template <class T>
struct Parts {
  std::int64_t channels, first;
  Stored<T> a, b;

  Parts(std::int64_t channels_, std::int64_t first_, std::int64_t count)
      : channels(channels_),
        first(first_),
        a(count / channels_ * first_),
        b(count / channels_ * (channels_ - first_)) {}
  void cut(const Stored<T>& whole) {
    visit([&](std::size_t i, T& part) { part = whole.values[i]; });
  }
  Stored<T> joined() {
    Stored<T> whole(static_cast<std::int64_t>(a.values.size() + b.values.size()));
    visit([&](std::size_t i, T& part) { whole.values[i] = part; });
    return whole;
  }
  template <class Element>
  Joined<Element> pointers() {
    return {a.values.data(), first, b.values.empty() ? nullptr : b.values.data()};
  }

 private:
  template <class Visit>
  void visit(Visit f) {
    const std::int64_t count = static_cast<std::int64_t>(a.values.size() + b.values.size());
    for (std::int64_t i = 0; i < count; ++i) {
      const std::int64_t row = i / channels, c = i % channels;
      f(static_cast<std::size_t>(i),
        c < first ? a.values[row * first + c] : b.values[row * (channels - first) + c - first]);
    }
  }
};

template <class T, class Y>
struct NormCall {
  Stored<Y> y;
  Stored<T> dx;
  std::vector<float> statistics;
};

template <class T, class Y>
NormCall<T, Y> emulate(const NormProblem& q, const NormTensors<T, Y>& given) {
  const Picture &p = q.p, r = p.resized(q.size);
  const NormPass pass{{p.images, p.height * p.width, p.channels, q.groups, 1e-5f, q.silu}, p.width, q.size};
  const auto or_null = [](const std::vector<float>& v) { return v.empty() ? nullptr : v.data(); };
  const NormParameters parameters{q.gamma.data(),
                                  q.beta.data(),
                                  or_null(q.scale),
                                  or_null(q.shift),
                                  p.channels,
                                  or_null(q.added),
                                  q.added_for_each_image ? p.channels : 0};
  std::vector<float> sums(static_cast<std::size_t>(norm_workspace_floats(pass.shape)), std::nanf(""));
  std::vector<unsigned> arrived(static_cast<std::size_t>(p.images));
  const NormWorkspace workspace{sums.data(), arrived.data()};
  Parts<T> in(p.channels, q.first, p.count()), out(p.channels, q.first, p.count()),
      extra(p.channels, q.first, r.count());
  in.cut(given.x);
  if (!q.add.empty()) extra.cut(given.add);
  NormCall<T, Y> call{Stored<Y>(r.count()), Stored<T>(0),
                      std::vector<float>(static_cast<std::size_t>(2 * p.images * q.groups))};
  norm_forward<T, Y>(pass, parameters, in.template pointers<const T>(), call.y.values.data(),
                     call.statistics.data(), workspace, nullptr);
  norm_backward<T, Y>(pass, parameters, in.template pointers<const T>(), call.statistics.data(),
                      given.dy.values.data(),
                      {q.add.empty() ? Joined<const T>{} : extra.template pointers<const T>(),
                       q.other.empty() ? nullptr : given.other.values.data()},
                      out.template pointers<T>(), workspace, nullptr);
  for (const unsigned left : arrived) EXPECT_EQ(left, 0u);  // the next call counts from zero
  call.dx = out.joined();
  return call;
}

// Any numbers, of these shapes; first: channels of the first part.
NormProblem problem_of(Dice& dice, const Picture& p, std::int64_t first, Size size) {
  NormProblem q;
  q.p = p, q.size = size;
  q.groups = 32, q.first = first;
  q.silu = dice.often(4);
  q.x = dice.normals(p.count(), 3);
  q.gamma = dice.normals(p.channels, 1);
  q.beta = dice.normals(p.channels);
  if (dice.often(2)) q.scale = dice.normals(p.images * p.channels);
  if (!q.scale.empty()) q.shift = dice.normals(p.images * p.channels);
  if (dice.often(2)) {
    q.added_for_each_image = dice.often(2);
    q.added = dice.normals((q.added_for_each_image ? p.images : 1) * p.channels);
  }
  q.dy = dice.normals(p.resized(q.size).count());
  if (dice.often(2)) q.add = dice.normals(p.resized(q.size).count());
  if (first == p.channels && dice.often(2)) q.other = dice.normals(p.count());
  return q;
}

NormProblem any_problem(Dice& dice) {
  const bool large = dice.pick(0, 2) == 0;  // too large to be held in registers
  const std::int64_t first = 32 * dice.pick(1, large ? 3 : 6),
                     second = dice.often(3) ? 0 : 32 * dice.pick(1, 3);
  const auto side = [&] { return 2 * dice.pick(1, large ? 24 : 9); };
  const Picture p{dice.pick(1, 3), side(), side(), first + second};
  return problem_of(dice, p, first, second ? Size::same : any_size(dice));
}

template <class T, class Y>
void compare_norm(const NormProblem& q, double bound_y, double bound_dx) {
  SCOPED_TRACE(testing::Message() << q.p.images << "x" << q.p.height << "x" << q.p.width << "x"
                                  << q.p.channels << ", first " << q.first << ", size "
                                  << static_cast<int>(q.size) << (q.add.empty() ? "" : ", adds straight")
                                  << (q.other.empty() ? "" : ", adds other"));
  const NormTensors<T, Y> in(q);
  const NormResult expected = plain_norm(q, in);
  const NormCall<T, Y> once = emulate(q, in), again = emulate(q, in);
  EXPECT_LT(relative_error(once.y, expected.y), bound_y);
  EXPECT_LT(relative_error(once.dx, expected.dx), bound_dx);
  // In another order of threads and blocks: the same bits.
  EXPECT_TRUE(once.y == again.y);
  EXPECT_TRUE(once.dx == again.dx);
  EXPECT_EQ(once.statistics, again.statistics);
}

TEST(EmulatedKernels, NormEqualsThePlainOne) {
  Dice dice(5);
  for (int round = 0; round < 24; ++round) {
    const NormProblem q = any_problem(dice);
    switch (round % 3) {
      case 0:
        compare_norm<float, float>(q, 3e-6, 1e-5);
        break;
      case 1:
        compare_norm<Bf16, Bf16>(q, 4e-3, 5e-3);
        break;
      case 2:
        compare_norm<Bf16, float>(q, 3e-6, 5e-3);
        break;
    }
  }
}

// What random shapes seldom are: the most channels, as few pixels as there can be, many pictures, one group
// of 24 channels for two parts, sides that are odd when halved.
TEST(EmulatedKernels, NormAtItsLimits) {
  Dice dice(9);
  compare_norm<Bf16, Bf16>(problem_of(dice, {1, 4, 4, 2048}, 2048, Size::same), 4e-3, 5e-3);
  compare_norm<Bf16, Bf16>(problem_of(dice, {1, 34, 34, 2048}, 1024, Size::same), 4e-3, 5e-3);
  compare_norm<Bf16, Bf16>(problem_of(dice, {1, 2, 4, 512}, 512, Size::same), 4e-3, 5e-3);
  compare_norm<float, float>(problem_of(dice, {9, 2, 2, 64}, 64, Size::half), 3e-6, 1e-5);
  compare_norm<Bf16, Bf16>(problem_of(dice, {9, 34, 34, 64}, 64, Size::same), 4e-3, 5e-3);
  compare_norm<Bf16, Bf16>(problem_of(dice, {2, 36, 34, 768}, 512, Size::same), 4e-3, 5e-3);
  compare_norm<Bf16, Bf16>(problem_of(dice, {1, 66, 34, 96}, 96, Size::half), 4e-3, 5e-3);
  compare_norm<Bf16, Bf16>(problem_of(dice, {1, 33, 35, 96}, 96, Size::twice), 4e-3, 5e-3);
  const NormProblem too_wide = problem_of(dice, {1, 2, 2, 2112}, 2112, Size::same);
  EXPECT_ANY_THROW((emulate(too_wide, NormTensors<float, float>(too_wide))));
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
