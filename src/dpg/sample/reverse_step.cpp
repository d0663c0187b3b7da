#include "dpg/sample/reverse_step.h"

#include <torch/torch.h>

#include <cmath>

#include "dpg/core/error.h"

namespace dpg {

double ddim_sigma(const Schedule& schedule, int i, double eta) {
  const auto k = static_cast<std::size_t>(i);
  const double abar = schedule.alpha_bar()[k], abar_prev = schedule.alpha_bar_prev()[k];
  return eta * std::sqrt((1 - abar_prev) / (1 - abar)) * std::sqrt(1 - abar / abar_prev);
}

ReverseVariance choose_variance(const std::string& name, bool prior_has_learned) {
  if (name == "auto") return prior_has_learned ? ReverseVariance::learned : ReverseVariance::fixed_small;
  if (name == "small") return ReverseVariance::fixed_small;
  if (name == "large") return ReverseVariance::fixed_large;
  check(name == "learned", "reverse variance \"", name, "\" is not one of auto, learned, small, large");
  check(prior_has_learned, "this prior has not learned its reverse variance; use small or large");
  return ReverseVariance::learned;
}

Tensor reverse_log_variance(const Schedule& schedule, int i, const Denoised& denoised,
                            ReverseVariance variance) {
  const auto k = static_cast<std::size_t>(i);
  const double smallest = schedule.posterior_log_variance()[k], largest = std::log(schedule.beta()[k]);
  switch (variance) {
    case ReverseVariance::fixed_small:
      return torch::full({}, smallest, denoised.x0.options());
    case ReverseVariance::fixed_large:
      // As in the original code: index 0 has no noise, so its value is never used.
      return torch::full({}, largest, denoised.x0.options());
    case ReverseVariance::learned:
      break;
  }
  check(denoised.variance_fraction.defined(),
        "this prior has not learned its reverse variance; use small or large");
  return smallest + denoised.variance_fraction * (largest - smallest);
}

Tensor ddpm_mean(const Schedule& schedule, int i, const Tensor& x_t, const Denoised& denoised) {
  const auto k = static_cast<std::size_t>(i);
  return schedule.posterior_mean_x0()[k] * denoised.x0 + schedule.posterior_mean_xt()[k] * x_t;
}

Tensor ddpm_step(const Schedule& schedule, int i, const Tensor& x_t, const Denoised& denoised,
                 ReverseVariance variance, const Tensor& noise) {
  const Tensor mean = ddpm_mean(schedule, i, x_t, denoised);
  if (i == 0) return mean;
  return mean + torch::exp(0.5 * reverse_log_variance(schedule, i, denoised, variance)) * noise;
}

double ddpm_noise_coefficient(const Schedule& schedule, int i) {
  const auto k = static_cast<std::size_t>(i);
  const double abar = schedule.alpha_bar()[k];
  return -schedule.posterior_mean_x0()[k] * std::sqrt((1 - abar) / abar);
}

double ddim_noise_coefficient(const Schedule& schedule, int i, double eta) {
  const auto k = static_cast<std::size_t>(i);
  const double abar = schedule.alpha_bar()[k], abar_prev = schedule.alpha_bar_prev()[k];
  const double sigma = ddim_sigma(schedule, i, eta);
  return std::sqrt(1 - abar_prev - sigma * sigma) - std::sqrt(abar_prev) * std::sqrt((1 - abar) / abar);
}

double x0_coefficient(const Schedule& schedule, int i, double noise_coefficient) {
  const double abar = schedule.alpha_bar()[static_cast<std::size_t>(i)];
  return -noise_coefficient * std::sqrt(abar / (1 - abar));
}

Tensor ddim_mean(const Schedule& schedule, int i, const Tensor& x_t, const Denoised& denoised, double eta) {
  const auto k = static_cast<std::size_t>(i);
  const double abar = schedule.alpha_bar()[k], abar_prev = schedule.alpha_bar_prev()[k];
  const double sigma = ddim_sigma(schedule, i, eta);
  const Tensor eps = (x_t - std::sqrt(abar) * denoised.x0) / std::sqrt(1 - abar);
  return std::sqrt(abar_prev) * denoised.x0 + std::sqrt(1 - abar_prev - sigma * sigma) * eps;
}

Tensor ddim_step(const Schedule& schedule, int i, const Tensor& x_t, const Denoised& denoised, double eta,
                 const Tensor& noise) {
  const Tensor mean = ddim_mean(schedule, i, x_t, denoised, eta);
  const double sigma = ddim_sigma(schedule, i, eta);
  return i == 0 || sigma == 0 ? mean : mean + sigma * noise;
}

}  // namespace dpg
