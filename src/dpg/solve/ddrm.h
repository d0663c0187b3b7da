// Denoising Diffusion Restoration Models (Kawar, Elad, Ermon, Song, NeurIPS 2022): the diffusion runs along
// the singular vectors of A, and each takes from y what is less noisy than the diffusion is at that step.
// Section 3.2: the start p(x_T | y) (equation 7) and the step p(x_t | x_{t+1}, y) (equation 8), in
// variance-exploding notation.
// docs/methods/ddrm.md goes from equation to code.
#pragma once

#include "dpg/solve/own_loop.h"

namespace dpg {

struct DdrmOptions {
  int steps = 20;  // network calls; the paper takes 20, for inpainting more
  std::string spacing = "even";
  double eta = 0.85;   // part of the noise that is fresh where y does not decide
  double eta_b = 1.0;  // weight of y where it is clearer than the diffusion
};
void validate(const DdrmOptions& options);

// The start along each direction, at noise sigma.
NormalEntries ddrm_start(const SpectralView& view, double sigma);
// The step to noise sigma, from the estimates of x0 and of the noise along each direction.
NormalEntries ddrm_step(const SpectralView& view, const Tensor& x0, const Tensor& eps, double sigma,
                        double eta, double eta_b);

class Ddrm : public Solver {
 public:
  static constexpr const char* kName = "ddrm";
  explicit Ddrm(DdrmOptions options);
  std::string name() const override { return kName; }
  void check_problem(const Measurement& measurement) const override;
  Result solve(const Measurement& measurement, const Prior& prior, const Rng& rng,
               std::span<const std::uint32_t> images, const Observer& observer = {}) const override;

 private:
  DdrmOptions options_;
};

}  // namespace dpg
