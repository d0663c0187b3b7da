// Randomness: one counter-based generator (Philox4x32-10). A number depends on (seed, image, step, sample,
// index) and on nothing else: not on the batch, the thread count, the call order, the instruction set or the
// device.
#pragma once

#include <cstdint>
#include <span>

namespace dpg {

// Which stream of numbers. `sample` separates the uses within one step.
struct NoiseKey {
  std::uint32_t image = 0;  // index of the image in the whole run, not in the batch
  std::uint32_t step = 0;   // index of the sampler's step; kBeforeFirstStep for what is drawn before the loop
  std::uint32_t sample = 0;  // 0: the sampler's own noise; 1..N: Monte Carlo samples; see the k... constants
};

inline constexpr std::uint32_t kBeforeFirstStep = 0xFFFFFFFFu;
inline constexpr std::uint32_t kSamplerNoise = 0;
inline constexpr std::uint32_t kMeasurementNoise = 0xFFFFFFFFu;  // the n of y = A(x) + n
inline constexpr std::uint32_t kOperatorChoices = 0xFFFFFFFEu;  // masks, trajectories: what an operator draws

class Rng {
 public:
  explicit Rng(std::uint64_t seed) : seed_(seed) {}
  std::uint64_t seed() const { return seed_; }

  // out[i] = number `first + i` of the stream, a standard normal.
  void normal(NoiseKey key, std::span<float> out, std::uint64_t first = 0) const;
  // out[i] = number `first + i` of the stream, uniform in the open interval (0, 1).
  void uniform(NoiseKey key, std::span<float> out, std::uint64_t first = 0) const;
  // out[i] = 32-bit word `first + i` of the stream.
  void words(NoiseKey key, std::span<std::uint32_t> out, std::uint64_t first = 0) const;

 private:
  std::uint64_t seed_;
};

}  // namespace dpg
