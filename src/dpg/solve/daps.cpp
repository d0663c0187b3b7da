#include "dpg/solve/daps.h"

#include <torch/torch.h>

#include <algorithm>
#include <cmath>

#include "dpg/core/error.h"
#include "dpg/solve/method_entry.h"

namespace dpg {

template <class Visitor>
void fields(Visitor& visit, DapsOptions& o) {
  visit("steps", o.steps);
  visit("ode_steps", o.ode_steps);
  visit("langevin_steps", o.langevin_steps);
  visit("lr", o.lr);
  visit("last_lr", o.last_lr);
  visit("tau", o.tau);
  visit("sigma_max", o.sigma_max);
  visit("sigma_min", o.sigma_min);
}

namespace {

constexpr double kOdeEnd = 0.01;  // noise at which the probability flow stops
constexpr int kPowerIterations = 5;

// One number for each image, shaped to multiply pictures.
Tensor per_picture(const Tensor& values) {
  return values.view({-1, 1, 1, 1});
}

Tensor norms(const Tensor& x) {
  return x.flatten(1).norm(2, {1});
}

}  // namespace

void validate(const DapsOptions& o) {
  check(o.steps >= 1, "steps = ", o.steps, " must be at least 1");
  check(o.ode_steps >= 1, "ode_steps = ", o.ode_steps, " must be at least 1");
  check(o.langevin_steps >= 0, "langevin_steps = ", o.langevin_steps, " must not be negative");
  check(o.lr > 0, "lr = ", o.lr, " must be above 0");
  check(o.last_lr > 0 && o.last_lr <= 1, "last_lr = ", o.last_lr, " must lie in (0, 1]");
  check(o.tau > 0, "tau = ", o.tau, " must be above 0");
  check(o.sigma_min > kOdeEnd && o.sigma_min < o.sigma_max, "sigma_min = ", o.sigma_min, " must lie between ",
        kOdeEnd, " and sigma_max = ", o.sigma_max);
}

std::vector<double> karras_levels(double first, double last, int steps) {
  constexpr double kPower = 7;
  const double from = std::pow(first, 1 / kPower), to = std::pow(last, 1 / kPower);
  std::vector<double> levels;
  for (int k = 0; k <= steps; ++k) levels.push_back(std::pow(from + k * (to - from) / steps, kPower));
  return levels;
}

int nearest_timestep(const Schedule& schedule, double sigma) {
  const auto distance = [&](double abar) { return std::abs(std::log(noise_to_signal(abar) / sigma)); };
  const auto& abar = schedule.alpha_bar();
  const auto nearest = std::min_element(abar.begin(), abar.end(),
                                        [&](double a, double b) { return distance(a) < distance(b); });
  return schedule.timestep(static_cast<int>(nearest - abar.begin()));
}

Tensor langevin(const DifferentiableOperator& A, const Tensor& y, const Tensor& x0, const Langevin& chain,
                const std::function<Tensor(int step)>& noise) {
  const Tensor data = per_picture(chain.lr / (chain.tau * chain.tau));
  const Tensor prior = per_picture(chain.lr / (chain.sigma * chain.sigma));
  const Tensor deviation = per_picture((2 * chain.lr).sqrt());
  Tensor x = x0;
  for (int k = 0; k < chain.steps; ++k)
    x = x + data * A.vjp(x, y - A.apply(x)) + prior * (x0 - x) + deviation * noise(k);
  return x;
}

Tensor squared_slope(const DifferentiableOperator& A, const Tensor& x, const Tensor& start, int iterations) {
  // Differences over a hundredth of a picture's range, so that they are no rounding errors.
  const double length = 0.01 * std::sqrt(static_cast<double>(A.input_shape().elements()));
  const Tensor at_x = A.apply(x);
  Tensor direction = start, slope;
  for (int k = 0; k < iterations; ++k) {
    direction = direction * per_picture(length / norms(direction).clamp_min(1e-30));
    const Tensor change = A.apply(x + direction) - at_x;
    slope = norms(change) / length;
    direction = A.vjp(x, change);
  }
  return slope.square();
}

Daps::Daps(DapsOptions options) : options_(std::move(options)) {
  validate(options_);
}

void Daps::check_problem(const Measurement& m) const {
  check(as_differentiable(*m.A), "daps needs the operator's derivative, and \"", m.A->spec(), "\" is a ",
        kind_name(*m.A), "; ", method_that_serves(*m.A));
}

Result Daps::solve(const Measurement& measurement, const Prior& prior, const Rng& rng,
                   std::span<const std::uint32_t> images, const Observer& observer) const {
  check_problem(measurement);
  OwnLoop run(measurement, prior, rng, images, options_.steps * options_.ode_steps, observer);
  const DifferentiableOperator& A = *as_differentiable(*run.m.A);

  std::vector<double> levels = karras_levels(options_.sigma_max, options_.sigma_min, options_.steps);
  levels.back() = 0;
  Tensor x = levels[0] * run.noise(kBeforeFirstStep);
  Tensor x0_given_y;
  for (int level = 0; level < options_.steps; ++level) {
    const auto step = static_cast<std::uint32_t>(level);
    const double sigma = levels[static_cast<std::size_t>(level)];

    // x0 at the end of the probability flow dx/dsigma = eps, by Euler's steps.
    const std::vector<double> flow = karras_levels(sigma, kOdeEnd, options_.ode_steps);
    Tensor x0 = x;
    int t = 0;
    for (std::size_t k = 0; k + 1 < flow.size(); ++k) {
      t = nearest_timestep(prior.schedule(), flow[k]);
      const Tensor eps = run.denoise(x0 / std::sqrt(1 + flow[k] * flow[k]), t).eps;
      if (!x0_given_y.defined()) x0_given_y = x0 - flow[k] * eps;
      x0 = x0 + (flow[k + 1] - flow[k]) * eps;
      const bool last = k + 2 == flow.size();
      if (!last && !run.go_on(t, x0_given_y)) return run.result(x0_given_y);
    }

    // x0 given y, by Langevin's steps. They converge below 2 / curvature; half of that is safe. None at the
    // last level, whose x0 is the result: they would leave noise in it that no network call removes.
    x0_given_y = x0;
    if (level + 1 < options_.steps) {
      const auto next_sample = static_cast<std::uint32_t>(options_.langevin_steps + 1);
      const Tensor slope = squared_slope(A, x0, run.noise(step, next_sample), kPowerIterations);
      const double part = 1 + (options_.last_lr - 1) * level / options_.steps;
      const double tau = options_.tau;
      const Tensor safe = (slope / (tau * tau) + 1 / (sigma * sigma)).reciprocal();
      const Langevin chain{options_.langevin_steps, sigma, tau, safe.clamp_max(part * options_.lr)};
      x0_given_y = langevin(A, run.m.y, x0, chain,
                            [&](int k) { return run.noise(step, static_cast<std::uint32_t>(1 + k)); });
      run.operator_calls += 2 * options_.langevin_steps + 2 * kPowerIterations + 1;
    }
    if (!run.go_on(t, x0_given_y)) return run.result(x0_given_y);

    // The next level, from there.
    x = x0_given_y + levels[static_cast<std::size_t>(level) + 1] * run.noise(step);
  }
  return run.result(x);
}

std::int64_t network_calls(const DapsOptions& o) {
  return static_cast<std::int64_t>(o.steps) * o.ode_steps;
}

MethodEntry daps_entry() {
  return method_entry<Daps, DapsOptions>(
      {"", "Langevin steps to the data at each noise level, then noised anew: the levels are decoupled",
       "Zhang et al., Improving diffusion inverse problem solving with decoupled noise annealing, CVPR 2025",
       "differentiable"});
}

}  // namespace dpg
