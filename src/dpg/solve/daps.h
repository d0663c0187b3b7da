// Decoupled Annealing Posterior Sampling (Zhang et al., CVPR 2025, Algorithm 1): at each of a row of falling
// noise levels, estimate x0 with the probability flow, move it to the data with Langevin steps under
// N(x0, sigma^2) and y, and noise it anew for the next level. Variance-exploding notation.
// docs/methods/daps.md goes from equation to code.
#pragma once

#include <functional>

#include "dpg/solve/own_loop.h"

namespace dpg {

struct DapsOptions {
  int steps = 200;    // noise levels
  int ode_steps = 5;  // network calls at each level
  int langevin_steps = 100;
  double lr = 1e-4;       // Langevin's step at the first level; shortened where it would not converge
  double last_lr = 0.01;  // at the last level, as a part of lr; linear between them
  double tau = 0.01;      // noise that y is taken to have, whatever it has
  double sigma_max = 100, sigma_min = 0.1;  // the noise levels
};
void validate(const DapsOptions& options);

// From `first` to `last` in `steps` steps (steps + 1 values), even in the seventh root (Karras et al., eq.
// 5).
std::vector<double> karras_levels(double first, double last, int steps);
// The schedule's step whose noise, beside an x0 of scale one, is nearest to sigma.
int nearest_timestep(const Schedule& schedule, double sigma);

// Langevin steps from x0 on ||y - A(x)||^2 / (2 tau^2) + ||x - x0||^2 / (2 sigma^2).
struct Langevin {
  int steps;
  double sigma, tau;
  Tensor lr;  // [N]
};
Tensor langevin(const DifferentiableOperator& A, const Tensor& y, const Tensor& x0, const Langevin& chain,
                const std::function<Tensor(int step)>& noise);
// About the largest squared singular value of the derivative of A at x, [N]: power iterations from `start`.
Tensor squared_slope(const DifferentiableOperator& A, const Tensor& x, const Tensor& start, int iterations);

class Daps : public Solver {
 public:
  static constexpr const char* kName = "daps";
  explicit Daps(DapsOptions options);
  std::string name() const override { return kName; }
  void check_problem(const Measurement& measurement) const override;
  Result solve(const Measurement& measurement, const Prior& prior, const Rng& rng,
               std::span<const std::uint32_t> images, const Observer& observer = {}) const override;

 private:
  DapsOptions options_;
};

}  // namespace dpg
