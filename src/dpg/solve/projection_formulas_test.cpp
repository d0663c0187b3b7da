// The formulas of DDRM, DDNM+, DiffPIR, RED-diff and DAPS, against the same computed one number at a time.
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cmath>
#include <limits>

#include "dpg/solve/catalog.h"
#include "dpg/solve/daps.h"
#include "dpg/solve/ddnm_plus.h"
#include "dpg/solve/ddrm.h"
#include "dpg/solve/diffpir.h"
#include "dpg/solve/settings.h"
#include "dpg/solve/test_problem.h"

namespace dpg {
namespace {

// Two images, six directions with these singular values and each image its own noise.
struct DiagonalCase {
  std::vector<double> s = {0, 0.01, 0.1, 0.5, 1, 2};
  std::vector<double> sigma_y;
  Tensor uty, x0, eps;  // [2, 6] double
  SpectralView view;

  explicit DiagonalCase(std::vector<double> noise) : sigma_y(std::move(noise)) {
    const auto draw = [](std::uint32_t sample) {
      return normal_noise(Rng(3), std::vector<std::uint32_t>{0, 1}, 0, sample, {6}).to(torch::kDouble);
    };
    uty = draw(0), x0 = draw(1), eps = draw(2);
    view.y = torch::zeros({2, 6}), view.sigma = torch::full({2, 6}, std::numeric_limits<float>::infinity());
    for (int n = 0; n < 2; ++n)
      for (int i = 1; i < 6; ++i) {
        view.y[n][i] = uty[n][i] / s[i];
        view.sigma[n][i] = sigma_y[n] / s[i];
      }
  }
  double at(const Tensor& tensor, int n, int i) const { return tensor[n][i].item<double>(); }
};

// The three cases of the paper, one number at a time.
TEST(Ddrm, AStepIsThePapersAlongEachSingularDirection) {
  const DiagonalCase c({0.05, 0.3});
  const double eta = 0.85, eta_b = 0.9;
  for (const double sigma : {8.0, 0.7, 0.06, 0.0}) {
    const NormalEntries step =
        ddrm_step(c.view, c.x0.to(torch::kFloat), c.eps.to(torch::kFloat), sigma, eta, eta_b);
    for (int n = 0; n < 2; ++n)
      for (int i = 0; i < 6; ++i) {
        const double s = c.s[i], sy = c.sigma_y[n], x0 = c.at(c.x0, n, i);
        double mean = 0, variance = 0;
        if (s == 0) {
          mean = x0 + std::sqrt(1 - eta * eta) * sigma * c.at(c.eps, n, i);
          variance = eta * eta * sigma * sigma;
        } else if (sigma < sy / s) {
          mean = x0 + std::sqrt(1 - eta * eta) * sigma * (c.at(c.uty, n, i) / s - x0) / (sy / s);
          variance = eta * eta * sigma * sigma;
        } else {
          mean = (1 - eta_b) * x0 + eta_b * c.at(c.uty, n, i) / s;
          variance = sigma * sigma - sy * sy / (s * s) * eta_b * eta_b;
        }
        EXPECT_NEAR(c.at(step.mean, n, i), mean, 1e-5 * (1 + std::abs(mean)))
            << sigma << " " << n << " " << i;
        EXPECT_NEAR(std::pow(c.at(step.deviation, n, i), 2), variance, 1e-5 * (1e-3 + variance));
      }
  }
}

TEST(Ddrm, StartsFromYWhereThatIsClearer) {
  const DiagonalCase c({0.05, 0.3});
  const double sigma = 1.2;
  const NormalEntries start = ddrm_start(c.view, sigma);
  for (int n = 0; n < 2; ++n)
    for (int i = 0; i < 6; ++i) {
      const bool clearer = c.s[i] > 0 && sigma >= c.sigma_y[n] / c.s[i];
      const double mean = clearer ? c.at(c.uty, n, i) / c.s[i] : 0;
      const double variance = sigma * sigma - (clearer ? std::pow(c.sigma_y[n] / c.s[i], 2) : 0);
      EXPECT_NEAR(c.at(start.mean, n, i), mean, 1e-5 * (1 + std::abs(mean)));
      EXPECT_NEAR(std::pow(c.at(start.deviation, n, i), 2), variance, 1e-5);
    }
}

// Sigma_t and Phi_t as the paper's appendix gives them.
TEST(DdnmPlus, AStepIsThePapersAlongEachSingularDirection) {
  const DiagonalCase c({0.05, 0.3});
  const double eta = 0.85;
  for (const double abar : {0.01, 0.6, 0.995, 1.0}) {
    const NormalEntries step =
        ddnm_plus_step(c.view, c.x0.to(torch::kFloat), c.eps.to(torch::kFloat), abar, eta);
    const double a = std::sqrt(abar), sigma = std::sqrt(1 - abar), kept = std::sqrt(1 - eta * eta) * sigma;
    for (int n = 0; n < 2; ++n)
      for (int i = 0; i < 6; ++i) {
        const double s = c.s[i], sy = c.sigma_y[n], x0 = c.at(c.x0, n, i);
        double lambda = 0, phi = eta * sigma, from_eps = 0;
        if (s == 0) {
          from_eps = kept;
        } else if (sigma >= a * sy / s) {
          lambda = 1, phi = std::sqrt(sigma * sigma - a * a * sy * sy / (s * s));
        } else {
          lambda = s * kept / (a * sy);
        }
        const double y = s > 0 ? c.at(c.uty, n, i) / s : 0;
        const double mean = a * (x0 - lambda * (x0 - y)) + from_eps * c.at(c.eps, n, i);
        EXPECT_NEAR(c.at(step.mean, n, i), mean, 1e-5 * (1 + std::abs(mean))) << abar << " " << n << " " << i;
        EXPECT_NEAR(c.at(step.deviation, n, i), phi, 1e-5);
      }
  }
}

// In other words: with noise, DDNM+ takes DDRM's step (eta_b = 1), written for x of variance one.
TEST(DdnmPlus, WithNoiseItsStepIsDdrms) {
  const DiagonalCase c({0.05, 0.3});
  for (const double abar : {0.05, 0.9, 0.999}) {
    const Tensor x0 = c.x0.to(torch::kFloat), eps = c.eps.to(torch::kFloat);
    const NormalEntries plus = ddnm_plus_step(c.view, x0, eps, abar, 0.85);
    const NormalEntries ddrm = ddrm_step(c.view, x0, eps, noise_to_signal(abar), 0.85, 1);
    EXPECT_LT(relative_error(plus.mean, std::sqrt(abar) * ddrm.mean), 1e-5);
    EXPECT_LT(relative_error(plus.deviation, std::sqrt(abar) * ddrm.deviation), 1e-4);
  }
}

TEST(SpectralView, SaysWhatYSaysAlongV) {
  // The singular values of a mask are 1, those of the mean of 2x2 blocks 1/2.
  for (const auto& [op, sigma] : {std::pair{"inpaint:random,removed=0.5", 0.1}, {"sr:2", 0.2}}) {
    const TestProblem c = faint_problem(op, "gaussian:0.1");
    const SpectralOperator& A = *as_spectral(*c.m.A);
    const SpectralView view = spectral_view(c.m);
    EXPECT_LT(relative_error(A.V(view.y), A.pseudo_inverse(c.m.y)), 1e-5);
    const Tensor seen = torch::isfinite(view.sigma);
    for (int n = 0; n < 3; ++n) EXPECT_EQ(seen[n].sum().item<std::int64_t>(), A.measurements());
    EXPECT_NEAR(view.sigma.masked_select(seen).min().item<double>(), sigma, 1e-5) << op;
    EXPECT_NEAR(view.sigma.masked_select(seen).max().item<double>(), sigma, 1e-5) << op;
  }
}

TEST(DiffPir, TheDataStepIsTheDenseSolution) {
  for (const std::string op : {"sr:2", "blur:sigma=1,size=5"}) {
    const TestProblem c = faint_problem(op);
    const Tensor A = dense_matrix(*c.m.A);
    const Tensor x0 = 0.3 * normal_noise(Rng(5), c.images, 0, 0, {3, 8, 8});
    for (const std::vector<double>& rho : {std::vector<double>{0.03, 0.03, 0.03}, {0.001, 0.03, 2}}) {
      const Tensor x = diffpir_data_step(*as_linear(*c.m.A), c.m.y, x0, rho);
      for (int n = 0; n < 3; ++n) {
        const Tensor normal = A.t().matmul(A) + rho[n] * torch::eye(TestProblem::kValues, torch::kDouble);
        const Tensor right =
            A.t().matmul(c.m.y[n].flatten().to(torch::kDouble)) + rho[n] * x0[n].flatten().to(torch::kDouble);
        const Tensor dense = torch::linalg_solve(normal, right.unsqueeze(1)).squeeze(1);
        EXPECT_LT(relative_error(x[n].flatten().to(torch::kDouble), dense), 2e-4) << op << " " << rho[n];
      }
    }
  }
}

TEST(DiffPir, TakesTheAuthorsTimeSteps) {
  const std::vector<int> steps = diffpir_quad_steps(1000, 100);
  EXPECT_EQ(steps.size(), 100u);
  EXPECT_EQ(steps.front(), 0);
  EXPECT_EQ(steps.back(), 999);
  EXPECT_EQ(steps[98], 899);  // 1000 sqrt(1/99) = 100.5 below
  EXPECT_EQ(diffpir_quad_steps(1000, 1), std::vector<int>{999});
}

// Every number of three steps by hand: white pictures, A = I.
TEST(RedDiff, TheFirstStepsAreAdamsOnTheTwoTerms) {
  const double v = 0.04;
  const auto prior = std::make_shared<GaussianPrior>(torch::zeros({3, 8, 8}),
                                                     v * torch::eye(TestProblem::kValues, torch::kDouble));
  const TestProblem c("identity", "gaussian:0.1", prior);
  const Tensor image = c.solve(*make_solver("red-diff", {{"steps", 3}, {"lr", 0.02}, {"lambda", 0.5}})).image;

  const Schedule schedule = spaced_schedule(prior->schedule(), "even", 3);
  const double d = TestProblem::kValues;
  const Tensor y = c.m.y.to(torch::kDouble);
  Tensor mu = y.clone(), mean = torch::zeros_like(y), square = torch::zeros_like(y);
  for (int step = 1; step <= 3; ++step) {
    const int i = 3 - step;
    const double abar = schedule.alpha_bar()[i], noise_part = std::sqrt(1 - abar);
    const Tensor noise = normal_noise(Rng(1), c.images, static_cast<std::uint32_t>(i), 0, {3, 8, 8});
    const Tensor x = std::sqrt(abar) * mu + noise_part * noise;
    const Tensor x0 = std::sqrt(abar) * v / (abar * v + 1 - abar) * x;
    const Tensor eps = (x - std::sqrt(abar) * x0) / noise_part;
    const Tensor gradient = (mu - y) / d + 0.5 * noise_part / std::sqrt(abar) * (eps - noise) / d;
    mean = 0.9 * mean + 0.1 * gradient;
    square = 0.99 * square + 0.01 * gradient * gradient;
    mu = mu -
         0.02 * (mean / (1 - std::pow(0.9, step))) / ((square / (1 - std::pow(0.99, step))).sqrt() + 1e-8);
  }
  EXPECT_LT((image - mu).abs().max().item<double>(), 2e-4);
  EXPECT_GT((mu - y).abs().mean().item<double>(), 0.01);
}

TEST(Daps, LevelsAndTimeSteps) {
  const std::vector<double> levels = karras_levels(100, 0.1, 4);
  EXPECT_EQ(levels.size(), 5u);
  EXPECT_NEAR(levels.front(), 100, 1e-9);
  EXPECT_NEAR(levels[2], std::pow((std::pow(100, 1 / 7.0) + std::pow(0.1, 1 / 7.0)) / 2, 7), 1e-9);
  EXPECT_NEAR(levels.back(), 0.1, 1e-12);
  const Schedule schedule = Schedule::linear();
  for (const int t : {0, 17, 500, 999})
    EXPECT_EQ(nearest_timestep(schedule, noise_to_signal(schedule.alpha_bar()[t])), t);
  EXPECT_EQ(nearest_timestep(schedule, 1e6), 999);
}

// Without its noise the chain descends: x_k = x* + (I - lr H)^k (x0 - x*).
TEST(Daps, TheChainDescendsOnBothTerms) {
  const TestProblem c = faint_problem("blur:sigma=1,size=5");
  const Tensor A = dense_matrix(*c.m.A);
  const Tensor x0 = 0.3 * normal_noise(Rng(5), c.images, 0, 0, {3, 8, 8});
  const double sigma = 0.3, tau = 0.1;
  const std::vector<double> lr = {1e-3, 2e-3, 5e-3};
  const Tensor x =
      langevin(*as_differentiable(*c.m.A), c.m.y, x0, {7, sigma, tau, torch::tensor(lr, torch::kFloat)},
               [&](int) { return torch::zeros_like(x0); });
  for (int n = 0; n < 3; ++n) {
    const Tensor start = x0[n].flatten().to(torch::kDouble), y = c.m.y[n].flatten().to(torch::kDouble);
    Tensor expected = start.clone();
    for (int k = 0; k < 7; ++k)
      expected = expected + lr[n] * (A.t().matmul(y - A.matmul(expected)) / (tau * tau) +
                                     (start - expected) / (sigma * sigma));
    EXPECT_LT(relative_error(x[n].flatten().to(torch::kDouble), expected), 1e-5);
  }
}

// With it, the chain ends in the posterior: A = I, so mean and variance are known.
TEST(Daps, TheChainSamplesThePosterior) {
  const TestProblem c = faint_problem("identity", "gaussian:0.1");
  const Tensor x0 = torch::zeros({3, 3, 8, 8});
  const double sigma = 0.2, tau = 0.1, precision = 1 / (sigma * sigma) + 1 / (tau * tau);
  const Tensor x = langevin(*as_differentiable(*c.m.A), c.m.y, x0,
                            {200, sigma, tau, torch::full({3}, 0.05 / precision)}, [&](int k) {
                              return normal_noise(Rng(2), c.images, 0, k, {3, 8, 8});
                            });
  const Tensor error = x - c.m.y / (tau * tau) / precision;
  EXPECT_NEAR(error.mean().item<double>(), 0, 4 * std::sqrt(1 / precision / error.numel()));
  EXPECT_NEAR(error.square().mean().item<double>() * precision, 1, 0.2);
}

TEST(Daps, KnowsHowSteepTheOperatorIs) {
  const Tensor start = normal_noise(Rng(8), std::vector<std::uint32_t>{0, 1, 2}, 0, 0, {3, 8, 8});
  for (const auto& [op, squared] : {std::pair{"sr:2", 0.25}, {"hdr", 4.0}, {"identity", 1.0}}) {
    const TestProblem c = faint_problem(op);
    const Tensor slope = squared_slope(*as_differentiable(*c.m.A), 0.1 * start, start, 5);
    for (int n = 0; n < 3; ++n) EXPECT_NEAR(slope[n].item<double>(), squared, 0.05 * squared) << op;
  }
}

}  // namespace
}  // namespace dpg
