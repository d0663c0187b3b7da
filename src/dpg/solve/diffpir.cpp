#include "dpg/solve/diffpir.h"

#include <torch/torch.h>

#include <algorithm>
#include <cmath>

#include "dpg/core/error.h"
#include "dpg/solve/method_entry.h"

namespace dpg {

template <class Visitor>
void fields(Visitor& visit, DiffPirOptions& o) {
  visit("steps", o.steps);
  visit("spacing", o.spacing);
  visit("lambda", o.lambda);
  visit("zeta", o.zeta);
}

void validate(const DiffPirOptions& o) {
  check(o.steps >= 1, "steps = ", o.steps, " must be at least 1");
  check(o.lambda > 0, "lambda = ", o.lambda, " must be above 0");
  check(o.zeta >= 0 && o.zeta <= 1, "zeta = ", o.zeta, " must lie in [0, 1]");
}

namespace {

// Quieter measurements are taken for this noisy, as in the authors' program (there 0.001 on [0, 1]).
constexpr double kSmallestNoise = 0.002;
// Below this the prior's part in the proximal step cannot be told from rounding in float32.
constexpr double kSmallestRho = 1e-4;

Schedule steps_of(const DiffPirOptions& o, const Schedule& full) {
  if (o.spacing != "quad") return spaced_schedule(full, o.spacing, o.steps);
  check(o.steps <= full.steps(), "steps = ", o.steps, " must lie in 1 to ", full.steps());
  return full.keep(diffpir_quad_steps(full.steps(), o.steps));
}

}  // namespace

std::vector<int> diffpir_quad_steps(int all, int steps) {
  std::vector<int> kept;
  for (int k = 0; k < steps; ++k) {
    const double part = steps > 1 ? static_cast<double>(k) / (steps - 1) : 0.0;
    kept.push_back(std::max(all - 1 - static_cast<int>(all * std::sqrt(part)), 0));
  }
  std::reverse(kept.begin(), kept.end());
  kept.erase(std::unique(kept.begin(), kept.end()), kept.end());
  return kept;
}

Tensor diffpir_data_step(const LinearOperator& A, const Tensor& y, const Tensor& x0,
                         const std::vector<double>& rho) {
  const Tensor v = A.adjoint(y - A.apply(x0));
  if (std::equal(rho.begin() + 1, rho.end(), rho.begin())) return x0 + A.regularised_solve(v, rho[0]);
  // Each image its own noise: a solve takes one rho for all rows, so one for each row.
  std::vector<Tensor> rows;
  for (std::size_t i = 0; i < rho.size(); ++i)
    rows.push_back(A.regularised_solve(v, rho[i])[static_cast<std::int64_t>(i)]);
  return x0 + torch::stack(rows);
}

DiffPir::DiffPir(DiffPirOptions options) : options_(std::move(options)) {
  validate(options_);
}

void DiffPir::check_problem(const Measurement& m) const {
  check(as_linear(*m.A), "diffpir needs a linear operator, and \"", m.A->spec(), "\" is ", kind_name(*m.A),
        "; ", method_that_serves(*m.A));
}

Result DiffPir::solve(const Measurement& measurement, const Prior& prior, const Rng& rng,
                      std::span<const std::uint32_t> images, const Observer& observer) const {
  check_problem(measurement);
  const Schedule schedule = steps_of(options_, prior.schedule());
  OwnLoop run(measurement, prior, rng, images, schedule.steps(), observer);
  const LinearOperator& A = *as_linear(*run.m.A);
  const std::vector<double> levels = noise_levels(run.m);

  Tensor x = run.noise(kBeforeFirstStep);
  for (int i = schedule.steps() - 1; i >= 0; --i) {
    const auto k = static_cast<std::size_t>(i);
    const double abar = schedule.alpha_bar()[k], abar_next = schedule.alpha_bar_prev()[k];
    std::vector<double> rho;
    for (const double level : levels) {
      const double ratio = std::max(level, kSmallestNoise) / noise_to_signal(abar);
      rho.push_back(std::max(options_.lambda * ratio * ratio, kSmallestRho));
    }
    Tensor x0 = run.denoise(x, schedule.timestep(i)).x0;
    x0 = diffpir_data_step(A, run.m.y, x0, rho);
    run.operator_calls += 3;
    if (!run.go_on(schedule.timestep(i), x0)) return run.result(x0);
    const Tensor eps = (x - std::sqrt(abar) * x0) / std::sqrt(1 - abar);
    x = std::sqrt(abar_next) * x0;
    if (i > 0)
      x = x +
          std::sqrt(1 - abar_next) * (std::sqrt(1 - options_.zeta) * eps +
                                      std::sqrt(options_.zeta) * run.noise(static_cast<std::uint32_t>(i)));
  }
  return run.result(x);
}

MethodEntry diffpir_entry() {
  return method_entry<DiffPir, DiffPirOptions>(
      {"", "a proximal step brings the network's x0 to the data at each step of the sampler",
       "Zhu et al., Denoising diffusion models for plug-and-play image restoration, CVPR workshops 2023",
       "linear"});
}

}  // namespace dpg
