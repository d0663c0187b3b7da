// DDNM+ (Wang, Yu, Zhang, ICLR 2023, section 3.3): DDNM for noisy measurements, with time travel.
// Equation 17: the correction of x0 scaled by Sigma_t; 18: the noise by Phi_t; both along the singular
// vectors of A as in the paper's appendix for general A. docs/methods/ddnm.md goes from equation to code.
#pragma once

#include "dpg/solve/own_loop.h"

namespace dpg {

struct DdnmPlusOptions {
  int steps = 100;  // of the reverse diffusion; travelling adds network calls
  std::string spacing = "even";
  double eta = 0.85;      // part of the noise that is fresh where y does not decide
  int travel_length = 1;  // steps to go back up
  int travel_repeat = 1;  // times each stretch is run; 1: no travel
};
void validate(const DdnmPlusOptions& options);

// The step to x of abar_next, along each singular direction, from the estimates of x0 and of the noise.
NormalEntries ddnm_plus_step(const SpectralView& view, const Tensor& x0, const Tensor& eps, double abar_next,
                             double eta);
// The indices that x passes through, from steps - 1 down to -1 (the picture); an ascent is a travel back.
std::vector<int> travel_times(int steps, int travel_length, int travel_repeat);

class DdnmPlus : public Solver {
 public:
  static constexpr const char* kName = "ddnm+";
  explicit DdnmPlus(DdnmPlusOptions options);
  std::string name() const override { return kName; }
  void check_problem(const Measurement& measurement) const override;
  Result solve(const Measurement& measurement, const Prior& prior, const Rng& rng,
               std::span<const std::uint32_t> images, const Observer& observer = {}) const override;

 private:
  DdnmPlusOptions options_;
};

}  // namespace dpg
