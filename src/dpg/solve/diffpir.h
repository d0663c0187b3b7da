// DiffPIR (Zhu et al., CVPR workshops 2023, Algorithm 1): half-quadratic splitting inside the sampler. The
// network denoises, a proximal step brings its x0 to the data, and the step on mixes the noise
// that this x0 implies with fresh noise. docs/methods/diffpir.md goes from equation to code.
#pragma once

#include "dpg/solve/own_loop.h"

namespace dpg {

struct DiffPirOptions {
  int steps = 100;               // network calls
  std::string spacing = "quad";  // quad: the authors' own, denser at low noise; or as the samplers' spacings
  // Weight of the prior in the proximal step, rho = lambda sigma_y^2 / sigma_t^2. With both sigmas on one
  // range; the authors count sigma_y on [0, 1] and sigma_t on [-1, 1], so that theirs is four times this.
  double lambda = 1.75;
  double zeta = 0.1;  // part of the noise's variance that is fresh
};
void validate(const DiffPirOptions& options);

// argmin ||y - A x||^2 + rho ||x - x0||^2, with the rho of each image.
Tensor diffpir_data_step(const LinearOperator& A, const Tensor& y, const Tensor& x0,
                         const std::vector<double>& rho);
// The authors' time steps, ascending: T - sqrt of evenly spaced squares.
std::vector<int> diffpir_quad_steps(int all, int steps);

class DiffPir : public Solver {
 public:
  static constexpr const char* kName = "diffpir";
  explicit DiffPir(DiffPirOptions options);
  std::string name() const override { return kName; }
  void check_problem(const Measurement& measurement) const override;
  Result solve(const Measurement& measurement, const Prior& prior, const Rng& rng,
               std::span<const std::uint32_t> images, const Observer& observer = {}) const override;

 private:
  DiffPirOptions options_;
};

}  // namespace dpg
