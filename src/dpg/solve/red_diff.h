// RED-diff (Mardani, Song, Kautz, Vahdat, ICLR 2024, Algorithm 1): variational inference with a single
// picture mu. Gradient steps on ||y - A(mu)||^2 / 2 and on the denoiser's regularisation, which noises mu
// and asks the network for that noise; no gradient goes through the network.
// docs/methods/red-diff.md goes from equation to code.
#pragma once

#include "dpg/solve/own_loop.h"

namespace dpg {

struct RedDiffOptions {
  int steps = 1000;  // network calls, from the noisiest time step to the least
  std::string spacing = "even";
  double lr = 0.1;       // Adam's step
  double lambda = 0.25;  // weight of the denoiser, times sqrt((1 - abar) / abar) at each step
};
void validate(const RedDiffOptions& options);

// Adam (Kingma and Ba, Algorithm 1) with the beta_2 that RED-diff takes.
class Adam {
 public:
  explicit Adam(double lr) : lr_(lr) {}
  Tensor step(const Tensor& gradient);  // what to add to the variable

 private:
  static constexpr double kBeta1 = 0.9, kBeta2 = 0.99, kEpsilon = 1e-8;
  double lr_;
  double decay1_ = 1, decay2_ = 1;  // beta^steps
  Tensor mean_, square_;
};

class RedDiff : public Solver {
 public:
  static constexpr const char* kName = "red-diff";
  explicit RedDiff(RedDiffOptions options);
  std::string name() const override { return kName; }
  void check_problem(const Measurement& measurement) const override;
  Result solve(const Measurement& measurement, const Prior& prior, const Rng& rng,
               std::span<const std::uint32_t> images, const Observer& observer = {}) const override;

 private:
  RedDiffOptions options_;
};

}  // namespace dpg
