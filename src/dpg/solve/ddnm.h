// Denoising Diffusion Null-space Model (Wang, Yu, Zhang, ICLR 2023): the part of x0 that A sees is replaced
// by what y says (equation 13); the network fills in the rest. For measurements without noise.
// Equation 12: x0 from the network; 14: the step on. docs/methods/ddnm.md goes from equation to code.
#pragma once

#include "dpg/solve/own_loop.h"

namespace dpg {

struct DdnmOptions {
  int steps = 100;  // network calls
  std::string spacing = "even";
  double eta = 0.85;   // part of the noise that is fresh
  double damping = 0;  // lambda of (A^T A + lambda)^-1 A^T in place of A^+, for y with noise; 0: A^+
};
void validate(const DdnmOptions& options);

class Ddnm : public Solver {
 public:
  static constexpr const char* kName = "ddnm";
  explicit Ddnm(DdnmOptions options);
  std::string name() const override { return kName; }
  void check_problem(const Measurement& measurement) const override;
  Result solve(const Measurement& measurement, const Prior& prior, const Rng& rng,
               std::span<const std::uint32_t> images, const Observer& observer = {}) const override;

 private:
  DdnmOptions options_;
};

}  // namespace dpg
