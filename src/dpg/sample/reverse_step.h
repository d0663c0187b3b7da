// One step of the reverse diffusion, from index i of a (respaced) schedule to index i-1.
#pragma once

#include "dpg/prior/prior.h"
#include "dpg/prior/schedule.h"

namespace dpg {

enum class ReverseVariance {
  learned,      // the network's own, between the two below (Nichol and Dhariwal, eq. 15)
  fixed_small,  // beta_i * (1 - abar_{i-1}) / (1 - abar_i)
  fixed_large,  // beta_i
};
// "learned", "small", "large", or "auto": learned where the prior has learned it, otherwise small.
ReverseVariance choose_variance(const std::string& name, bool prior_has_learned);

// Ancestral sampling (Ho et al., eq. 6 and 7): mean of q(x_{i-1} | x_i, x0) at the denoised x0, plus noise
// for i > 0.
Tensor ddpm_step(const Schedule& schedule, int i, const Tensor& x_t, const Denoised& denoised,
                 ReverseVariance variance, const Tensor& noise);

// Its mean alone.
Tensor ddpm_mean(const Schedule& schedule, int i, const Tensor& x_t, const Denoised& denoised);

// DDIM (Song et al., eq. 12 and 16): eta 0 is deterministic, eta 1 close to ancestral. The noise estimate is
// the one that agrees with the clamped x0.
Tensor ddim_step(const Schedule& schedule, int i, const Tensor& x_t, const Denoised& denoised, double eta,
                 const Tensor& noise);

Tensor ddim_mean(const Schedule& schedule, int i, const Tensor& x_t, const Denoised& denoised, double eta);
double ddim_sigma(const Schedule& schedule, int i, double eta);  // of its noise

// How x_{i-1} changes with the noise estimate, x0 following it: d x_{i-1} / d eps. Both are negative.
double ddpm_noise_coefficient(const Schedule& schedule, int i);
double ddim_noise_coefficient(const Schedule& schedule, int i, double eta);
// The same of x0, the noise estimate following it, from either of them: d x_{i-1} / d x0.
double x0_coefficient(const Schedule& schedule, int i, double noise_coefficient);

// The logarithm of the reverse step's variance, as a tensor that broadcasts over x_t.
Tensor reverse_log_variance(const Schedule& schedule, int i, const Denoised& denoised,
                            ReverseVariance variance);

}  // namespace dpg
