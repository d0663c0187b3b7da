// Samplers on the Gaussian prior, where the law of the result is known.
#include "dpg/sample/sample.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cmath>
#include <numeric>

#include "dpg/core/error.h"
#include "dpg/sample/reverse_step.h"
#include "dpg/sample/second_order.h"

namespace dpg {
namespace {

// Pixels with standard deviations from 0.02 to 1.2, correlated, away from zero mean.
GaussianPrior gaussian() {
  torch::manual_seed(6);
  const Tensor q = std::get<0>(torch::linalg_qr(torch::randn({12, 12}, torch::kDouble)));
  const Tensor spread = torch::linspace(0.02, 1.2, 12, torch::kDouble);
  return GaussianPrior(torch::randn({3, 2, 2}) * 0.5, q.matmul((spread * spread).unsqueeze(1) * q.t()));
}

std::vector<std::uint32_t> indices(int n) {
  std::vector<std::uint32_t> all(n);
  std::iota(all.begin(), all.end(), 0u);
  return all;
}

// Largest eigenvalue error relative to the largest eigenvalue, and the mean's error.
void expect_moments(const GaussianPrior& prior, const Tensor& samples, double tolerance) {
  const Tensor rows = samples.flatten(1).to(torch::kDouble);
  const Tensor mean = rows.mean(0), centred = rows - mean;
  const Tensor covariance = centred.t().matmul(centred) / (rows.size(0) - 1);
  const Tensor truth = prior.covariance();
  const double scale = truth.diagonal().max().item<double>();
  EXPECT_LT((covariance - truth).abs().max().item<double>(), tolerance * scale);
  EXPECT_LT((mean - prior.mean().flatten()).abs().max().item<double>(), tolerance * std::sqrt(scale));
}

TEST(Sample, AncestralSamplingReachesThePriorsMeanAndCovariance) {
  const GaussianPrior prior = gaussian();
  SampleOptions options{"ddpm", 500, "even", "small", 0, 0, 2, 2};
  expect_moments(prior, sample(prior, options, Rng(1), indices(8000)), 0.06);
}

TEST(Sample, DeterministicSamplingReachesThePriorsMeanAndCovariance) {
  const GaussianPrior prior = gaussian();
  SampleOptions options{"ddim", 500, "even", "auto", 0, 0, 2, 2};
  expect_moments(prior, sample(prior, options, Rng(2), indices(8000)), 0.06);
}

TEST(Sample, FewStepsSpacedTowardsLowNoiseStayClose) {
  const GaussianPrior prior = gaussian();
  SampleOptions options{"ddim", 60, "power:1.5", "auto", 0, 0, 2, 2};
  expect_moments(prior, sample(prior, options, Rng(3), indices(8000)), 0.1);
}

// Deterministic steps follow a curve; how far they end from where ten times as many do is their error.
TEST(Sample, SecondOrderStepsEndNearerToFineOnes) {
  const GaussianPrior prior = gaussian();
  const auto run = [&](int steps, double second_order) {
    return sample(prior, {"ddim", steps, "power:2", "auto", 0, second_order, 2, 2}, Rng(2), indices(64));
  };
  const Tensor fine = run(500, 0);
  const auto error = [&](double second_order) {
    return (run(50, second_order) - fine).norm().item<double>();
  };
  EXPECT_LT(error(1), 0.25 * error(0));
  EXPECT_LT(error(0.5), 0.75 * error(0));
  EXPECT_GT(error(0.5), 1.5 * error(1));
}

// Where x0 changes along a line, half a step further is where it is said to be, however long the steps are.
TEST(SecondOrder, ContinuesTheLineToTheMiddleOfTheStep) {
  const Schedule schedule = spaced_schedule(Schedule::linear(), "power:2", 20);
  const auto at = [](double abar) { return 0.5 * std::log(abar / (1 - abar)); };
  const auto x0 = [&](double place) { return torch::full({1, 1, 1, 1}, 3 - 0.7 * place, torch::kDouble); };
  SecondOrder half(0.5);
  for (int i = 19; i >= 0; --i) {
    const double here = at(schedule.alpha_bar()[i]), next = at(schedule.alpha_bar_prev()[i]);
    const Tensor more = half.beyond(schedule, i, x0(here));
    EXPECT_EQ(more.defined(), i < 19 && i > 0) << i;
    if (!more.defined()) continue;
    EXPECT_NEAR(more.item<double>(), -0.7 * 0.5 * (next - here) / 2, 1e-9) << i;
  }
}

TEST(Sample, AnImageDependsOnItsIndexAndSeedAlone) {
  const GaussianPrior prior = gaussian();
  for (const char* sampler : {"ddpm", "ddim"}) {
    SampleOptions options{sampler, 20, "even", "auto", sampler[3] == 'm' ? 0.5 : 0.0, 0, 2, 2};
    const std::uint32_t one[] = {2};
    const Tensor batch = sample(prior, options, Rng(4), indices(4));
    EXPECT_TRUE(torch::allclose(batch[2], sample(prior, options, Rng(4), one)[0], 1e-5, 1e-6)) << sampler;
    EXPECT_TRUE(torch::equal(batch, sample(prior, options, Rng(4), indices(4)))) << sampler;
    EXPECT_FALSE(torch::allclose(batch, sample(prior, options, Rng(5), indices(4)))) << sampler;
  }
}

TEST(Sample, TheObserverSeesEveryStepAndCanStop) {
  const GaussianPrior prior = gaussian();
  SampleOptions options{"ddpm", 10, "even", "auto", 0, 0, 2, 2};
  int calls = 0;
  Tensor last;
  const Tensor result = sample(prior, options, Rng(1), indices(1), [&](const StepRecord& r) {
    EXPECT_EQ(r.done, ++calls);
    EXPECT_EQ(r.total, 10);
    last = r.x0;
    return calls == 4 ? Next::stop : Next::go_on;
  });
  EXPECT_EQ(calls, 4);
  EXPECT_TRUE(torch::equal(result, last));
}

// With the true x0 and eps in hand both samplers must land on a point of the right marginal: DDIM with eta 0
// on sqrt(abar_prev) x0 + sqrt(1 - abar_prev) eps exactly; DDPM on the posterior mean, checked by Bayes'
// rule.
TEST(ReverseStep, FollowsTheForwardProcessExactly) {
  const Schedule schedule = Schedule::linear().respace("50");
  const Tensor x0 = torch::rand({1, 3, 4, 4}, torch::kDouble) - 0.5, eps = torch::randn_like(x0);
  for (int i : {1, 20, 49}) {
    const double abar = schedule.alpha_bar()[i], prev = schedule.alpha_bar_prev()[i];
    const Tensor x_t = std::sqrt(abar) * x0 + std::sqrt(1 - abar) * eps;
    const Denoised d{x0, eps, {}, {}};
    const Tensor zero = torch::zeros_like(x0);
    EXPECT_TRUE(torch::allclose(ddim_step(schedule, i, x_t, d, 0, zero),
                                std::sqrt(prev) * x0 + std::sqrt(1 - prev) * eps, 1e-10, 1e-10));
    // p(x_prev | x_t, x0): prior N(sqrt(prev) x0, 1 - prev), likelihood x_t ~ N(sqrt(a) x_prev, 1 - a), a =
    // abar/prev.
    const double a = abar / prev, precision = 1 / (1 - prev) + a / (1 - a);
    const Tensor mean = (std::sqrt(prev) * x0 / (1 - prev) + std::sqrt(a) * x_t / (1 - a)) / precision;
    EXPECT_TRUE(torch::allclose(ddpm_step(schedule, i, x_t, d, ReverseVariance::fixed_small, zero), mean,
                                1e-9, 1e-9));
    EXPECT_NEAR(reverse_log_variance(schedule, i, d, ReverseVariance::fixed_small).item<double>(),
                std::log(1 / precision), 1e-9);
    // How the next x follows x0, in both.
    const Denoised moved{x0 + 1, eps, {}, {}};
    const Tensor by_ddpm = ddpm_mean(schedule, i, x_t, moved) - ddpm_mean(schedule, i, x_t, d);
    const Tensor by_ddim = ddim_mean(schedule, i, x_t, moved, 0.5) - ddim_mean(schedule, i, x_t, d, 0.5);
    const double ddpm = x0_coefficient(schedule, i, ddpm_noise_coefficient(schedule, i));
    const double ddim = x0_coefficient(schedule, i, ddim_noise_coefficient(schedule, i, 0.5));
    EXPECT_TRUE(torch::allclose(by_ddpm, torch::full_like(x0, ddpm), 1e-9, 1e-9)) << i;
    EXPECT_TRUE(torch::allclose(by_ddim, torch::full_like(x0, ddim), 1e-9, 1e-9)) << i;
    // eta 1 adds exactly the ancestral variance.
    const Tensor one = torch::ones_like(x0);
    const Tensor added = ddim_step(schedule, i, x_t, d, 1, one) - ddim_step(schedule, i, x_t, d, 1, zero);
    EXPECT_TRUE(torch::allclose(added, one / std::sqrt(precision), 1e-9, 1e-9));
  }
}

TEST(ReverseStep, LearnedVarianceLiesBetweenSmallAndLarge) {
  const Schedule schedule = Schedule::linear().respace("50");
  const Tensor zero = torch::zeros({1, 1, 1, 3}, torch::kDouble);
  const Denoised d{zero, zero, torch::tensor({0.0, 0.5, 1.0}, torch::kDouble).view({1, 1, 1, 3}), {}};
  const Tensor learned = reverse_log_variance(schedule, 10, d, ReverseVariance::learned).flatten();
  const double small = reverse_log_variance(schedule, 10, d, ReverseVariance::fixed_small).item<double>();
  const double large = reverse_log_variance(schedule, 10, d, ReverseVariance::fixed_large).item<double>();
  EXPECT_LT(small, large);
  EXPECT_NEAR(learned[0].item<double>(), small, 1e-12);
  EXPECT_NEAR(learned[1].item<double>(), (small + large) / 2, 1e-12);
  EXPECT_NEAR(learned[2].item<double>(), large, 1e-12);
  EXPECT_THROW(choose_variance("learned", false), Error);
  EXPECT_THROW(choose_variance("tiny", true), Error);
}

TEST(Sample, BadOptionsAreNamed) {
  const GaussianPrior prior = gaussian();
  const auto refuse = [&](SampleOptions options) {
    EXPECT_THROW(sample(prior, options, Rng(1), indices(1)), Error);
  };
  refuse({"euler", 10, "even", "auto", 0, 0, 2, 2});
  refuse({"ddpm", 0, "even", "auto", 0, 0, 2, 2});
  refuse({"ddpm", 1001, "even", "auto", 0, 0, 2, 2});
  refuse({"ddpm", 10, "power:x", "auto", 0, 0, 2, 2});
  refuse({"ddim", 10, "even", "auto", 1.5, 0, 2, 2});
  refuse({"ddim", 10, "even", "auto", 0, 1.5, 2, 2});
}

}  // namespace
}  // namespace dpg
