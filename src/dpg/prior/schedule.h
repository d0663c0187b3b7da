// The diffusion's noise schedule: betas and what follows from them, in double. No torch here.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace dpg {

// Index i = 0 .. steps()-1 runs over the (possibly respaced) steps, 0 the least noisy. `timestep(i)` is what
// the network is told. Vectors are public by const reference: alpha_bar()[i] is the cumulative product.
class Schedule {
 public:
  static Schedule linear(int steps = 1000);  // beta from 1e-4 to 0.02, scaled by 1000 / steps
  static Schedule cosine(int steps = 1000);  // Nichol and Dhariwal, beta capped at 0.999
  static Schedule named(std::string_view name, int steps = 1000);  // "linear" or "cosine"

  // guided-diffusion's notation: "100" (evenly spaced), "10,15,20" (per section), "ddim200" (fixed stride).
  Schedule respace(std::string_view spec) const;
  // `count` steps with t ~ (T-1) * (k/(count-1))^power: power 1 even, above 1 denser at low noise. Distinct
  // steps, both ends kept.
  Schedule respace_power(int count, double power) const;
  // Keeps these original indices (ascending, distinct).
  Schedule keep(const std::vector<int>& indices) const;

  int steps() const { return static_cast<int>(beta_.size()); }
  int timestep(int i) const { return timestep_[static_cast<std::size_t>(i)]; }
  const std::vector<int>& timesteps() const { return timestep_; }
  const std::vector<double>& beta() const { return beta_; }
  const std::vector<double>& alpha_bar() const { return alpha_bar_; }
  const std::vector<double>& alpha_bar_prev() const { return alpha_bar_prev_; }          // 1 at index 0
  const std::vector<double>& posterior_variance() const { return posterior_variance_; }  // "fixed small"
  // Its logarithm with index 0 replaced by index 1's, where the variance itself is 0.
  const std::vector<double>& posterior_log_variance() const { return posterior_log_variance_; }
  const std::vector<double>& posterior_mean_x0() const { return posterior_mean_x0_; }  // coefficient of x0
  const std::vector<double>& posterior_mean_xt() const { return posterior_mean_xt_; }  // coefficient of x_t

 private:
  Schedule(std::vector<double> beta, std::vector<int> timestep);
  std::vector<double> beta_, alpha_bar_, alpha_bar_prev_;
  std::vector<double> posterior_variance_, posterior_log_variance_, posterior_mean_x0_, posterior_mean_xt_;
  std::vector<int> timestep_;
};

}  // namespace dpg
