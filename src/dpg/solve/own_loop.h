// What the methods with a loop of their own share: they replace the estimate of x0, where guided samplers
// move x. Also the notation of the papers that count noise as x = x0 + sigma n (variance exploding).
#pragma once

#include "dpg/solve/solver.h"

namespace dpg {

// x0 as the noise estimate has it, without the clamp of Denoised::x0.
Tensor unclamped_x0(const Tensor& x_t, const Tensor& eps, double alpha_bar);
// sqrt((1 - abar) / abar): the noise beside an x0 of scale one.
double noise_to_signal(double alpha_bar);

// "use --method NAME, which ...": what serves an operator of this kind, for refusals.
std::string method_that_serves(const Operator& A);

// One run of a loop: its problem on the prior's device, its random numbers, and what it tells.
class OwnLoop {
 public:
  OwnLoop(const Measurement& measurement, const Prior& prior, const Rng& rng,
          std::span<const std::uint32_t> images, int network_calls, const Observer& observer);

  const Measurement m;
  std::int64_t operator_calls = 0;

  // Standard normals like the pictures.
  Tensor noise(std::uint32_t step, std::uint32_t sample = kSamplerNoise) const;
  // The network's noise estimate; counts the call.
  Denoised denoise(const Tensor& x_t, int t);
  // Told after each network call: the time step and the estimate that stands now. False: the observer ends
  // the run, and the estimate is the result.
  bool go_on(int t, const Tensor& x0);
  Result result(const Tensor& x);

 private:
  const Prior& prior_;
  const Rng& rng_;
  std::span<const std::uint32_t> images_;
  int total_;
  const Observer& observer_;
  History history_;
  int calls_ = 0;
  bool stopped_ = false;
};

// y seen through A = U S V^T: what it says along each column of V, and with how much noise.
struct SpectralView {
  Tensor y;      // [N, elements] U^T y / s, zero where A loses the direction
  Tensor sigma;  // [N, elements] sigma_y / s, infinite where A loses it
};
SpectralView spectral_view(const Measurement& m);

// Independent normals, one for each entry.
struct NormalEntries {
  Tensor mean, deviation;
};

}  // namespace dpg
