// Loss-guided diffusion, Monte Carlo (Song et al., Loss-guided diffusion models for plug-and-play
// controllable generation, ICML 2023): the loss is averaged over a Gaussian around the denoised picture,
// instead of taken at the picture itself as DPS does. docs/methods/lgd-mc.md goes from equation to code.
#pragma once

#include "dpg/solve/solver.h"

namespace dpg {

struct LgdMcOptions {
  SamplerOptions sampler = {.sampler = "ddpm", .steps = 1000, .spacing = "even"};
  int mc = 10;          // n, samples around the denoised picture at each step
  double radius = 1.0;  // times the paper's r_t = sigma_t / sqrt(1 + sigma_t^2); 0 is DPS
  // log-mean-exp: of the likelihoods, as in the paper. mean: of the losses, its lower bound.
  std::string average = "log-mean-exp";
  double zeta = 1.0;  // each step moves by zeta along -grad sqrt(loss), as in DPS
};
void validate(const LgdMcOptions& options);

// The samples' squared residuals [n, N] as one loss for each image, and what each sample weighs in its
// gradient: grad loss = sum_k weights_k grad ||e_k||^2.
struct AveragedLoss {
  Tensor loss;     // [N]
  Tensor weights;  // [n, N], sums to one over k
};
// log-mean-exp: -2 s log((1/n) sum_k exp(-||e_k||^2 / (2 s))), s = sigma_y^2 the `variances` [N].
AveragedLoss average_likelihoods(const Tensor& squares, const Tensor& variances);
AveragedLoss average_losses(const Tensor& squares);

class LgdMc : public Solver {
 public:
  static constexpr const char* kName = "lgd-mc";
  explicit LgdMc(LgdMcOptions options);
  std::string name() const override { return kName; }
  void check_problem(const Measurement& measurement) const override;
  Result solve(const Measurement& measurement, const Prior& prior, const Rng& rng,
               std::span<const std::uint32_t> images, const Observer& observer = {}) const override;

 private:
  LgdMcOptions options_;
};

}  // namespace dpg
