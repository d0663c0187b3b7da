#include "dpg/solve/ddnm_plus.h"

#include <torch/torch.h>

#include <algorithm>
#include <cmath>

#include "dpg/core/error.h"
#include "dpg/solve/method_entry.h"

namespace dpg {

template <class Visitor>
void fields(Visitor& visit, DdnmPlusOptions& o) {
  visit("steps", o.steps);
  visit("spacing", o.spacing);
  visit("eta", o.eta);
  visit("travel_length", o.travel_length);
  visit("travel_repeat", o.travel_repeat);
}

void validate(const DdnmPlusOptions& o) {
  check(o.steps >= 1, "steps = ", o.steps, " must be at least 1");
  check(o.eta >= 0 && o.eta <= 1, "eta = ", o.eta, " must lie in [0, 1]");
  check(o.travel_length >= 1, "travel_length = ", o.travel_length, " must be at least 1");
  check(o.travel_repeat >= 1, "travel_repeat = ", o.travel_repeat, " must be at least 1");
}

NormalEntries ddnm_plus_step(const SpectralView& view, const Tensor& x0, const Tensor& eps, double abar_next,
                             double eta) {
  const double a = std::sqrt(abar_next), sigma = std::sqrt(1 - abar_next);
  const double kept = std::sqrt(1 - eta * eta) * sigma;
  // What y's noise becomes in x. Where it is below sigma, y is taken whole and fresh noise fills the rest;
  // above, y is taken in such a part that its noise is what would have been kept.
  const Tensor y_noise = a * view.sigma;
  const Tensor lost = torch::isinf(y_noise), fits = y_noise <= sigma;
  const Tensor part = torch::where(fits, torch::ones_like(y_noise), kept / y_noise);  // Sigma_t
  Tensor deviation =                                                                  // Phi_t
      torch::where(fits, (sigma * sigma - y_noise.square()).clamp_min(0).sqrt(),
                   torch::full_like(y_noise, eta * sigma));
  // Without noise in y, Phi_t is not needed, and the step is DDNM's: the kept noise is the network's.
  const Tensor exact = y_noise == 0;
  deviation = torch::where(exact, torch::full_like(deviation, eta * sigma), deviation);
  const Tensor kept_noise = torch::where(lost | exact, kept * eps, torch::zeros_like(eps));
  return {a * (x0 + part * (view.y - x0)) + kept_noise, deviation};
}

std::vector<int> travel_times(int steps, int travel_length, int travel_repeat) {
  // How often x is still sent back up from an index; only from where there is room above.
  std::vector<int> returns(static_cast<std::size_t>(steps), 0);
  for (int i = 0; i + travel_length < steps; i += travel_length)
    returns[static_cast<std::size_t>(i)] = travel_repeat - 1;
  std::vector<int> times = {steps - 1};
  for (int i = steps - 1; i >= 0;) {
    int& left = returns[static_cast<std::size_t>(i)];
    i = left > 0 ? i + travel_length : i - 1;
    left = std::max(left - 1, 0);
    times.push_back(i);
  }
  return times;
}

std::int64_t network_calls(const DdnmPlusOptions& o) {
  const std::vector<int> times = travel_times(o.steps, o.travel_length, o.travel_repeat);
  std::int64_t calls = 0;
  for (std::size_t k = 1; k < times.size(); ++k) calls += times[k] < times[k - 1] ? 1 : 0;
  return calls;
}

DdnmPlus::DdnmPlus(DdnmPlusOptions options) : options_(std::move(options)) {
  validate(options_);
}

void DdnmPlus::check_problem(const Measurement& m) const {
  check(as_spectral(*m.A), "ddnm+ needs the singular vectors of the operator, and \"", m.A->spec(), "\" is ",
        kind_name(*m.A), "; ", method_that_serves(*m.A));
}

Result DdnmPlus::solve(const Measurement& measurement, const Prior& prior, const Rng& rng,
                       std::span<const std::uint32_t> images, const Observer& observer) const {
  check_problem(measurement);
  const Schedule schedule = spaced_schedule(prior.schedule(), options_.spacing, options_.steps);
  const std::vector<double>& abar = schedule.alpha_bar();
  const std::vector<int> times =
      travel_times(schedule.steps(), options_.travel_length, options_.travel_repeat);
  OwnLoop run(measurement, prior, rng, images, static_cast<int>(network_calls(options_)), observer);
  const SpectralOperator& A = *as_spectral(*run.m.A);
  const SpectralView view = spectral_view(run.m);

  Tensor x = run.noise(kBeforeFirstStep);
  for (std::size_t move = 0; move + 1 < times.size(); ++move) {
    const auto i = static_cast<std::size_t>(times[move]);
    const int next = times[move + 1];
    // Numbered from the end, so that without travel a step's noise is that of its index.
    const auto key = static_cast<std::uint32_t>(times.size() - 2 - move);
    if (next > times[move]) {  // time travel: x_i diffuses up again
      const double ratio = abar[static_cast<std::size_t>(next)] / abar[i];
      x = std::sqrt(ratio) * x + std::sqrt(1 - ratio) * run.noise(key);
      continue;
    }
    const int t = schedule.timestep(times[move]);
    const Tensor eps = run.denoise(x, t).eps;
    const Tensor x0 = unclamped_x0(x, eps, abar[i]);
    const NormalEntries to =
        ddnm_plus_step(view, A.Vt(x0), A.Vt(eps), schedule.alpha_bar_prev()[i], options_.eta);
    if (!run.go_on(t, x0)) return run.result(x0);
    x = A.V(to.mean + to.deviation * run.noise(key).flatten(1));
  }
  return run.result(x);
}

MethodEntry ddnm_plus_entry() {
  return method_entry<DdnmPlus, DdnmPlusOptions>(
      {"", "ddnm that knows the noise in y, with time travel",
       "Wang et al., Zero-shot image restoration using denoising diffusion null-space model, ICLR 2023",
       "spectral"});
}

}  // namespace dpg
