// Diffusion Posterior Sampling (Chung et al., Diffusion posterior sampling for general noisy inverse
// problems, ICLR 2023): Algorithm 1 (Gaussian noise), Algorithm 2 (Poisson noise), step sizes of appendix
// D.1. docs/methods/dps.md goes from equation to code.
#pragma once

#include "dpg/solve/solver.h"

namespace dpg {

struct DpsOptions {
  SamplerOptions sampler = {.sampler = "ddpm", .steps = 1000, .spacing = "even"};
  // Each step moves by zeta along -grad ||y - A(x0)||: the gradient of the norm, not of its square. The
  // appendix' zeta' multiplies the gradient of the square over the norm, which is twice this one.
  double zeta = 1.0;
};
void validate(const DpsOptions& options);

// grad_{x_t} ||e||_W with e = y - A(x0(x_t)) and ||e||_W^2 = sum_j W_j e_j^2, per image:
// -J^T A'^T W e / ||e||_W. `weights` W broadcasts over e. Zero where e is.
Tensor residual_gradient(const DifferentiableOperator& A, const Denoised& denoised, const Tensor& e,
                         const Tensor& weights);

// Lambda of Algorithm 2: one over the variance of each measurement, given y, with a mean of 1 over each
// image's measurements. Where the noise does not depend on the light this is a scalar one. A variance counts
// as at least a tenth of the image's mean, or the darkest measurements would be all that is fitted.
Tensor inverse_variances(const Measurement& m);

class Dps : public Solver {
 public:
  static constexpr const char* kName = "dps";
  explicit Dps(DpsOptions options);
  std::string name() const override { return kName; }
  void check_problem(const Measurement& measurement) const override;
  Result solve(const Measurement& measurement, const Prior& prior, const Rng& rng,
               std::span<const std::uint32_t> images, const Observer& observer = {}) const override;

 private:
  DpsOptions options_;
};

}  // namespace dpg
