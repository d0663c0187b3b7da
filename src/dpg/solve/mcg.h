// Manifold Constrained Gradient (Chung et al., Improving diffusion models for inverse problems using manifold
// constraints, NeurIPS 2022): Algorithm 1. A step descends the gradient of the residual, then is projected
// onto the pictures that agree with a noised measurement.
// docs/methods/mcg.md goes from equation to code.
#pragma once

#include "dpg/solve/solver.h"

namespace dpg {

struct McgOptions {
  int steps = 1000;  // ancestral, as in the paper
  std::string spacing = "even", variance = "auto";
  double alpha = 1.0;  // length of the gradient step, along -grad ||y - A(x0)||
  double damping = 0;  // lambda of (A^T A + lambda)^-1 A^T in place of A^+, for y with noise; 0: A^+
};
void validate(const McgOptions& options);

class Mcg : public Solver {
 public:
  static constexpr const char* kName = "mcg";
  explicit Mcg(McgOptions options);
  std::string name() const override { return kName; }
  void check_problem(const Measurement& measurement) const override;
  Result solve(const Measurement& measurement, const Prior& prior, const Rng& rng,
               std::span<const std::uint32_t> images, const Observer& observer = {}) const override;

 private:
  McgOptions options_;
};

}  // namespace dpg
