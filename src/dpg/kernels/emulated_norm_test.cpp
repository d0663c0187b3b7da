// The GPU's norm, emulated on the CPU (emulated/emulated.h), against the formula in double precision.
#include <gtest/gtest.h>

#include <array>

#include "dpg/kernels/test_emulated.h"

namespace dpg::cuda {
namespace {

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

}  // namespace
}  // namespace dpg::cuda
