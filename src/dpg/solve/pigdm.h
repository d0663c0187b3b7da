// Pseudoinverse-guided diffusion, PiGDM (Song et al., Pseudoinverse-guided diffusion models for inverse
// problems, ICLR 2023): Algorithm 1, in its noisy linear form and in its form for encode-decode pairs such as
// JPEG. docs/methods/pigdm.md goes from equation to code.
#pragma once

#include "dpg/solve/solver.h"

namespace dpg {

struct PigdmOptions {
  SamplerOptions sampler = {.sampler = "ddim", .steps = 100, .spacing = "even", .eta = 1.0};
  double scale = 1.0;  // times the paper's weight of the guidance
};
void validate(const PigdmOptions& options);

// A^T (A A^T + lambda I)^-1 e = (lambda I + A^T A)^-1 A^T e, with one lambda for each image; lambda 0 is the
// pseudo-inverse.
Tensor pseudo_inverse_direction(const LinearOperator& A, const Tensor& e, const std::vector<double>& lambdas);

class Pigdm : public Solver {
 public:
  static constexpr const char* kName = "pigdm";
  explicit Pigdm(PigdmOptions options);
  std::string name() const override { return kName; }
  void check_problem(const Measurement& measurement) const override;
  Result solve(const Measurement& measurement, const Prior& prior, const Rng& rng,
               std::span<const std::uint32_t> images, const Observer& observer = {}) const override;

 private:
  PigdmOptions options_;
};

}  // namespace dpg
