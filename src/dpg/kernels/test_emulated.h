// What the tests of emulated kernels share: random numbers, tensors as kernels store them, and resizing as a
// plain sparse matrix.
#pragma once

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

#include "dpg/kernels/emulated/cuda_bf16.h"
#include "dpg/kernels/norm_cuda.h"

namespace dpg::cuda {

using kernels::Bf16;
using Doubles = std::vector<double>;

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

inline float to_float(float x) {
  return x;
}
inline float to_float(Bf16 x) {
  return __bfloat162float({x.bits});
}
inline void assign(float& to, float from) {
  to = from;
}
inline void assign(Bf16& to, float from) {
  to = {__float2bfloat16_rn(from).bits};
}

// A tensor as a kernel sees it: [image][pixel][channel].
template <class T>
struct Stored {
  std::vector<T> values;
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

inline Doubles resized(const Doubles& from, const Picture& p, Size size) {
  Doubles to(static_cast<std::size_t>(p.resized(size).count()));
  for_each_weight(p, size, [&](auto i, auto j, double w) { to[j] += w * from[i]; });
  return to;
}

inline Doubles resized_back(const Doubles& from, const Picture& p, Size size) {
  Doubles to(static_cast<std::size_t>(p.count()));
  for_each_weight(p, size, [&](auto i, auto j, double w) { to[i] += w * from[j]; });
  return to;
}

inline Size any_size(Dice& dice) {
  return static_cast<Size>(dice.pick(0, 2));
}

}  // namespace dpg::cuda
