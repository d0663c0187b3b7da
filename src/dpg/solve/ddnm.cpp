#include "dpg/solve/ddnm.h"

#include <torch/torch.h>

#include <cmath>

#include "dpg/core/error.h"
#include "dpg/solve/damped_inverse.h"
#include "dpg/solve/method_entry.h"

namespace dpg {

template <class Visitor>
void fields(Visitor& visit, DdnmOptions& o) {
  visit("steps", o.steps);
  visit("spacing", o.spacing);
  visit("eta", o.eta);
  visit("damping", o.damping);
}

void validate(const DdnmOptions& o) {
  check(o.steps >= 1, "steps = ", o.steps, " must be at least 1");
  check(o.eta >= 0 && o.eta <= 1, "eta = ", o.eta, " must lie in [0, 1]");
  check(o.damping >= 0, "damping = ", o.damping, " must not be negative");
}

Ddnm::Ddnm(DdnmOptions options) : options_(std::move(options)) {
  validate(options_);
}

void Ddnm::check_problem(const Measurement& m) const {
  check(as_linear(*m.A), "ddnm needs a linear operator, and \"", m.A->spec(), "\" is ", kind_name(*m.A), "; ",
        method_that_serves(*m.A));
}

Result Ddnm::solve(const Measurement& measurement, const Prior& prior, const Rng& rng,
                   std::span<const std::uint32_t> images, const Observer& observer) const {
  check_problem(measurement);
  const Schedule schedule = spaced_schedule(prior.schedule(), options_.spacing, options_.steps);
  OwnLoop run(measurement, prior, rng, images, schedule.steps(), observer);
  const LinearOperator& A = *as_linear(*run.m.A);
  const double fresh = options_.eta, kept = std::sqrt(1 - fresh * fresh);

  Tensor x = run.noise(kBeforeFirstStep);
  for (int i = schedule.steps() - 1; i >= 0; --i) {
    const auto k = static_cast<std::size_t>(i);
    const double abar = schedule.alpha_bar()[k], abar_next = schedule.alpha_bar_prev()[k];
    const Tensor eps = run.denoise(x, schedule.timestep(i)).eps;
    Tensor x0 = unclamped_x0(x, eps, abar);  // (12)
    // (13): A^+ y + (I - A^+ A) x0
    x0 = x0 + damped_inverse(A, run.m.y - A.apply(x0), options_.damping);
    run.operator_calls += options_.damping > 0 ? 3 : 2;
    if (!run.go_on(schedule.timestep(i), x0)) return run.result(x0);
    x = std::sqrt(abar_next) * x0;  // (14)
    if (i > 0)
      x = x + std::sqrt(1 - abar_next) * (fresh * run.noise(static_cast<std::uint32_t>(i)) + kept * eps);
  }
  return run.result(x);
}

MethodEntry ddnm_entry() {
  return method_entry<Ddnm, DdnmOptions>(
      {"", "what A sees is taken from y, the null space from the network; for y without noise",
       "Wang et al., Zero-shot image restoration using denoising diffusion null-space model, ICLR 2023",
       "linear"});
}

}  // namespace dpg
