#include "dpg/solve/ddrm.h"

#include <torch/torch.h>

#include <cmath>

#include "dpg/core/error.h"
#include "dpg/solve/method_entry.h"

namespace dpg {

template <class Visitor>
void fields(Visitor& visit, DdrmOptions& o) {
  visit("steps", o.steps);
  visit("spacing", o.spacing);
  visit("eta", o.eta);
  visit("eta_b", o.eta_b);
}

void validate(const DdrmOptions& o) {
  check(o.steps >= 1, "steps = ", o.steps, " must be at least 1");
  check(o.eta >= 0 && o.eta <= 1, "eta = ", o.eta, " must lie in [0, 1]");
  check(o.eta_b >= 0 && o.eta_b <= 1, "eta_b = ", o.eta_b, " must lie in [0, 1]");
}

NormalEntries ddrm_start(const SpectralView& view, double sigma) {
  const Tensor clearer = view.sigma <= sigma;
  const Tensor rest = (sigma * sigma - view.sigma.square()).clamp_min(0).sqrt();
  return {torch::where(clearer, view.y, torch::zeros_like(view.y)),
          torch::where(clearer, rest, torch::full_like(rest, sigma))};
}

NormalEntries ddrm_step(const SpectralView& view, const Tensor& x0, const Tensor& eps, double sigma,
                        double eta, double eta_b) {
  const double kept = std::sqrt(1 - eta * eta) * sigma;  // of the noise: what is not fresh
  // A loses the direction: the unconditional step.
  const Tensor lost = torch::isinf(view.sigma);
  const Tensor free = x0 + kept * eps;
  // y is noisier than the step: its error stands in for the kept noise.
  const Tensor noisier = x0 + kept * (view.y - x0) / view.sigma;
  // y is clearer: it is the mean, and fresh noise fills up to sigma.
  const Tensor clearer = view.sigma <= sigma;
  const Tensor fixed = (1 - eta_b) * x0 + eta_b * view.y;
  const Tensor filling = (sigma * sigma - (eta_b * view.sigma).square()).clamp_min(0).sqrt();
  return {torch::where(clearer, fixed, torch::where(lost, free, noisier)),
          torch::where(clearer, filling, torch::full_like(filling, eta * sigma))};
}

Ddrm::Ddrm(DdrmOptions options) : options_(std::move(options)) {
  validate(options_);
}

void Ddrm::check_problem(const Measurement& m) const {
  check(as_spectral(*m.A), "ddrm needs the singular vectors of the operator, and \"", m.A->spec(), "\" is ",
        kind_name(*m.A), "; ", method_that_serves(*m.A));
}

Result Ddrm::solve(const Measurement& measurement, const Prior& prior, const Rng& rng,
                   std::span<const std::uint32_t> images, const Observer& observer) const {
  check_problem(measurement);
  const Schedule schedule = spaced_schedule(prior.schedule(), options_.spacing, options_.steps);
  OwnLoop run(measurement, prior, rng, images, schedule.steps(), observer);
  const SpectralOperator& A = *as_spectral(*run.m.A);
  const SpectralView view = spectral_view(run.m);
  // A draw as the network wants it: x in its own basis, scaled from x0 + sigma n to variance one.
  const auto draw = [&](const NormalEntries& entries, double abar, std::uint32_t step) {
    return std::sqrt(abar) * A.V(entries.mean + entries.deviation * run.noise(step).flatten(1));
  };

  const double last = schedule.alpha_bar().back();
  Tensor x = draw(ddrm_start(view, noise_to_signal(last)), last, kBeforeFirstStep);
  for (int i = schedule.steps() - 1; i >= 0; --i) {
    const auto k = static_cast<std::size_t>(i);
    const double abar = schedule.alpha_bar()[k], abar_next = schedule.alpha_bar_prev()[k];
    const Tensor eps = run.denoise(x, schedule.timestep(i)).eps;
    const Tensor x0 = unclamped_x0(x, eps, abar);
    if (!run.go_on(schedule.timestep(i), x0)) return run.result(x0);
    const NormalEntries next =
        ddrm_step(view, A.Vt(x0), A.Vt(eps), noise_to_signal(abar_next), options_.eta, options_.eta_b);
    x = draw(next, abar_next, static_cast<std::uint32_t>(i));
  }
  return run.result(x);
}

MethodEntry ddrm_entry() {
  return method_entry<Ddrm, DdrmOptions>(
      {"", "each singular direction takes from y what is clearer than the diffusion; few steps",
       "Kawar et al., Denoising diffusion restoration models, NeurIPS 2022", "spectral"});
}

}  // namespace dpg
