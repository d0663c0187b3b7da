// The DPG solver on a Gaussian prior, where the posterior is known.
#include "dpg/solve/dpg.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cmath>
#include <limits>

#include "dpg/core/error.h"
#include "dpg/measure/catalog.h"
#include "dpg/solve/catalog.h"
#include "dpg/solve/settings.h"
#include "dpg/solve/step_length.h"
#include "dpg/solve/test_problem.h"
#include "dpg/tensor/convert.h"

namespace dpg {
namespace {

constexpr int kSide = TestProblem::kSide, kValues = TestProblem::kValues;

Result solve(const TestProblem& c, const DpgOptions& options, const Observer& observer = {}) {
  return c.solve(Dpg(options), 1, observer);
}

DpgOptions sampled(double strength = 4, int steps = 12) {
  DpgOptions o;
  o.sampler.steps = steps;
  o.sampler.variance = "small";
  o.estimator = "mc";
  o.mc = 40;
  o.strength = strength;
  return o;
}

TEST(Dpg, WithoutStrengthItIsThePriorsOwnSample) {
  const TestProblem c;
  DpgOptions options = sampled(0);
  options.sampler.spacing = "even";
  SampleOptions unguided;
  static_cast<SamplerOptions&>(unguided) = options.sampler;
  const Tensor expected = sample(*c.prior, unguided, Rng(1), c.images).clamp(-1, 1);
  EXPECT_LT(relative_error(solve(c, options).image, expected), 1e-6);
}

// One step moves by B c_t along the guidance, whatever the operator's scale. (Pictures near zero, so that the
// clamp at the end stays out of it.)
TEST(Dpg, AStepMovesByItsStrength) {
  TestProblem c;
  c.prior = std::make_shared<GaussianPrior>(torch::zeros({3, kSide, kSide}),
                                            1e-6 * torch::eye(kValues, torch::kDouble));
  DpgOptions options = sampled(0, 1), none = options;
  options.unguided = none.unguided = 0;
  options.sampler.spacing = none.sampler.spacing = "even";
  options.strength = 0.1;
  const Tensor moved = solve(c, options).image - solve(c, none).image;
  const Schedule one = spaced_schedule(c.prior->schedule(), "even", 1);
  const double expected = 0.1 * std::sqrt((1 - one.alpha_bar()[0]) / one.alpha_bar()[0]);
  for (int i = 0; i < 3; ++i) EXPECT_NEAR(moved[i].norm().item<double>(), expected, 1e-3 * expected);
}

TEST(Dpg, ABatchIsItsImagesOneByOne) {
  for (const std::string op : {"sr:2", "inpaint:random,removed=0.5", "hdr"})
    for (const std::string noise : {"gaussian:0.05", "poisson:1"})
      for (const bool automatic : {false, true}) {
        const TestProblem c(op, noise);
        DpgOptions options = sampled();
        options.momentum = 0.1;
        if (automatic) options.strength.reset();
        const Result all = solve(c, options);
        for (int i = 0; i < 3; ++i) {
          const Result one = solve(c.row(i), options);
          EXPECT_LT(relative_error(all.image.slice(0, i, i + 1), one.image), 2e-5) << op << " " << noise;
          EXPECT_NEAR(all.history.residual_of(i).back(), one.history.residual_of(0).back(), 1e-4);
        }
      }
}

TEST(Dpg, KeepsNothingBetweenRuns) {
  const TestProblem a("sr:2"), b("blur:sigma=1,size=5");
  DpgOptions options = sampled();
  options.momentum = 0.1;
  const Dpg solver(options);
  const Tensor alone = solver.solve(b.m, *b.prior, Rng(1), b.images).image;
  solver.solve(a.m, *a.prior, Rng(1), a.images);
  EXPECT_TRUE(torch::equal(solver.solve(b.m, *b.prior, Rng(1), b.images).image, alone));
  EXPECT_FALSE(torch::equal(solver.solve(b.m, *b.prior, Rng(2), b.images).image, alone));
}

// Every form of the estimator brings the picture to the data: the residual ends far below that of an
// unguided sample.
TEST(Dpg, EveryEstimatorFitsTheData) {
  struct Form {
    const char* name;
    std::function<void(DpgOptions&)> set;
  };
  const std::vector<Form> forms = {
      {"collapsed", [](DpgOptions&) {}},
      {"streamed", [](DpgOptions& o) { o.collapse = false; }},
      {"single samples", [](DpgOptions& o) { o.collapse = false, o.pairs = "never"; }},
      {"exact", [](DpgOptions& o) { o.estimator = "exact"; }},
      {"text", [](DpgOptions& o) { o.estimator = "exact", o.rewards = "text"; }},
      {"coarse", [](DpgOptions& o) { o.detail = "coarse"; }},
      {"ddim",
       [](DpgOptions& o) { o.sampler.sampler = "ddim", o.sampler.spacing = "even", o.strength = 16; }},
  };
  const TestProblem c("sr:2");
  const double unguided = solve(c, sampled(0, 50)).history.residual_of(0).back();
  const double floor = noise_floors(c.m)[0];
  for (const Form& form : forms) {
    DpgOptions options = sampled(4, 50);
    options.mc = 400;
    form.set(options);
    const Result result = solve(c, options);
    for (int i = 0; i < 3; ++i) {
      const double residual = result.history.residual_of(i).back();
      EXPECT_LT(residual, 0.5 * unguided) << form.name;
      EXPECT_LT(residual, 3 * floor) << form.name;
    }
    EXPECT_EQ(result.history.t.size(), 50u);
    EXPECT_EQ(result.cost.network_calls, 50);
  }
}

// Closed form: for a Gaussian prior and an operator that keeps the residual's direction (A c J A^T e = k e),
// the best step along e is the posterior mean itself, s = 1 / (k + sigma^2).
TEST(StepLength, IsThePosteriorMeanWhereOneDirectionIsAll) {
  const auto prior =
      std::make_shared<GaussianPrior>(torch::zeros({3, 2, 2}), 0.2 * torch::eye(12, torch::kDouble));
  const auto A = make_operator("identity", {{3, 2, 2}, 0, {0}});
  const int t = 300;
  const double abar = prior->schedule().alpha_bar()[t];
  const Tensor x_t = normal_noise(Rng(2), std::vector<std::uint32_t>{0}, 0, 0, {3, 2, 2});
  const Denoised denoised = prior->denoise(x_t, t, Track::gradient);
  const Tensor y = 0.4 * normal_noise(Rng(3), std::vector<std::uint32_t>{0}, 0, 0, {3, 2, 2});
  const Tensor prediction = A->apply(denoised.x0), e = y - prediction;
  const double sigma = 0.1, c = (1 - abar) / std::sqrt(abar);
  const Tensor w = denoised.pull_back(e);
  const Tensor radius = torch::tensor({0.01f}), level = torch::tensor({static_cast<float>(sigma)});
  const SlopeProblem at{*A, denoised.x0, prediction, radius};
  const Tensor s = posterior_step_length({at, e, level}, w, abar);
  const double variance = 1 / (abar / (1 - abar) + 1 / 0.2);  // of x0 given x_t
  EXPECT_NEAR(s.item<double>(), 1 / (variance + sigma * sigma), 1e-4 / variance);
  const Tensor posterior_mean =
      (denoised.x0 / variance + y / (sigma * sigma)) / (1 / variance + 1 / (sigma * sigma));
  EXPECT_LT(relative_error(denoised.x0 + s * c * w, posterior_mean), 1e-4);
}

// Without relaxation the strength found at run time lands the residual on the noise floor, as a posterior
// draw does, for operators as different as these, also with sampled directions. (With it the residual ends
// lower: docs/methods/dpg.md.)
TEST(Dpg, WithoutRelaxationItLandsOnTheNoiseFloor) {
  for (const std::string op : {"sr:2", "blur:sigma=1,size=5", "inpaint:box,height=4,width=4"}) {
    const TestProblem c(op, "gaussian:0.1");
    for (const std::string estimator : {"exact", "mc"}) {
      DpgOptions options;
      options.relaxation = 1;
      options.sampler = {.sampler = "ddpm", .steps = 100, .spacing = "power:1.5", .variance = "small"};
      options.estimator = estimator;
      options.mc = 2000;
      const Result result = solve(c, options);
      double sum = 0;
      for (int i = 0; i < 3; ++i) sum += result.history.residual_of(i).back() / noise_floors(c.m)[i] / 3;
      EXPECT_GT(sum, 0.75) << op << " " << estimator;
      EXPECT_LT(sum, 1.3) << op << " " << estimator;
    }
  }
}

// A posterior draw is not the nearest to the truth that a draw can be: trusting the data 1.5 times or more is
// nearer in every direction (docs/methods/dpg.md).
TEST(Dpg, RelaxationComesNearerToTheTruth) {
  constexpr int kDraws = 64;
  const TestProblem c = TestProblem("blur:sigma=1,size=5", "gaussian:0.2").repeated(kDraws);
  const auto error = [&](double relaxation) {
    DpgOptions options;
    options.relaxation = relaxation;
    options.floor = 0;
    options.passes = 6;
    options.sampler = {.sampler = "ddpm", .steps = 100, .spacing = "power:1.5", .variance = "small"};
    return (solve(c, options).image - c.truth).square().mean().item<double>();
  };
  const double posterior = error(1);
  EXPECT_LT(error(1.7), 0.97 * posterior);
  EXPECT_GT(error(12), posterior);  // and too much fits the noise
}

// The spread of relaxed draws, against the recursion that the steps make of it for one direction: with prior
// variance v, noise variance s and gain G = C / (C + s) of the data, C the variance of x0 given x_t, the
// noise of late steps keeps 1 - rho (rho - 1) G of its size; how late a step is goes from 0 to 1 with its
// noise.
TEST(Dpg, WhatTheDataSayOfLateNoiseIsTakenAway) {
  constexpr int kDraws = 64, kSteps = 100;
  constexpr double v = 0.01, s = 0.01, rho = 1.7;
  TestProblem c("identity", "gaussian:0.1",
                std::make_shared<GaussianPrior>(torch::zeros({3, kSide, kSide}),
                                                v * torch::eye(kValues, torch::kDouble)));
  c = c.row(0).repeated(kDraws);
  DpgOptions options;
  options.relaxation = rho;
  options.smoothing = 0;
  options.floor = 0;
  options.unguided = 0;
  options.sampler = {.sampler = "ddpm", .steps = kSteps, .spacing = "power:2", .variance = "small"};
  const double variance = solve(c, options).image.var(0).mean().item<double>();

  const Schedule schedule = spaced_schedule(c.prior->schedule(), "power:2", kSteps);
  const auto expected = [&](bool taken_away) {
    double spread = 1;
    for (int i = kSteps - 1; i >= 0; --i) {
      const auto k = static_cast<std::size_t>(i);
      const double abar = schedule.alpha_bar()[k], C = 1 / (abar / (1 - abar) + 1 / v), G = C / (C + s);
      const double late = taken_away ? 1 / (1 + std::pow((1 - abar) / std::sqrt(abar) / (4 * s), 2)) : 0;
      const double keeps = schedule.posterior_mean_xt()[k] +
                           schedule.posterior_mean_x0()[k] * (1 - rho * G) * std::sqrt(abar) * C / (1 - abar);
      const double size = 1 - rho * (rho - 1) * G * late;
      spread = keeps * keeps * spread;
      if (i > 0) spread += size * size * std::exp(schedule.posterior_log_variance()[k]);
    }
    return spread;
  };
  EXPECT_NEAR(variance, expected(true), 0.04 * expected(true));
  EXPECT_LT(expected(true), 0.85 * expected(false));  // or the above would say little
}

// Where no spacing is asked for, steps are denser at low noise for a linear operator whose adjoint leads, and
// for a black box whose measurements have the shape of pictures.
TEST(Dpg, SpacesItsStepsByWhatLeads) {
  for (const std::string op : {"sr:2", "hdr", "quantize:8", "phase"})
    for (const std::string estimator : {"auto", "mc"}) {
      const TestProblem c(op);
      DpgOptions options = sampled(4, 20);
      options.estimator = estimator;
      options.strength.reset();
      DpgOptions named = options;
      const bool linear = op == "sr:2", box = op == "quantize:8" || estimator == "mc";
      const bool late = linear ? estimator == "auto" : box;
      named.sampler.spacing = late ? "power:2" : "power:1.5";
      EXPECT_TRUE(torch::equal(solve(c, options).image, solve(c, named).image)) << op << " " << estimator;
    }
}

// An operator that hides its derivative (16 bits change nothing else) is solved nearly as well as one that
// does not, and the second pass is what makes it so.
TEST(Dpg, ABlackBoxComesCloseToTheGradient) {
  const TestProblem open("blur:sigma=1,size=5", "gaussian:0.05");
  TestProblem hidden = open;
  hidden.m.A = make_operator("blur:sigma=1,size=5 | quantize:16", {{3, kSide, kSide}, 4, open.images});
  const auto error = [&](const TestProblem& c, int passes) {
    DpgOptions options;
    options.sampler = {.sampler = "ddpm", .steps = 100, .spacing = "power:1.5", .variance = "small"};
    options.passes = passes;
    options.mc = 100;
    return relative_error(solve(c, options).image, c.truth);
  };
  ASSERT_EQ(as_differentiable(*hidden.m.A), nullptr);
  const double gradient = error(open, 3), one = error(hidden, 1), two = error(hidden, 2);
  EXPECT_LT(two, one);
  EXPECT_LT(two, 1.15 * gradient);
}

// Under a Gaussian prior: the sampled guidance J^T v turns towards the exact one as samples are added.
TEST(Dpg, SampledGuidanceConvergesToTheExactOne) {
  const TestProblem c("blur:sigma=1,size=5");
  const int t = 300;
  const Tensor x_t = normal_noise(Rng(2), c.images, 0, 0, {3, kSide, kSide});
  const Denoised denoised = c.prior->denoise(x_t, t, Track::gradient);
  const Tensor prediction = c.m.A->apply(denoised.x0);
  const PolicyStep step{
      *c.m.A,     *c.m.noise,
      c.m.y,      denoised.x0,
      prediction, next_scale(RewardRule::code, Loss::squared, c.m.y - prediction, kValues, 0, {})};
  const Tensor exact =
      denoised.pull_back(exact_policy_gradient(step, std::numeric_limits<double>::infinity()))[0];
  double last = 1;
  for (const std::int64_t draws : {50, 800, 12800}) {
    const Tensor v = streamed_policy_gradient(step, draws, true, [&](std::int64_t first, std::int64_t count) {
      return normal_samples(Rng(3), c.images, 0, static_cast<std::uint32_t>(1 + first), count,
                            {3, kSide, kSide});
    });
    const Tensor g = denoised.pull_back(v)[0];
    const double cosine = (g * exact).sum().item<double>() / (g.norm() * exact.norm()).item<double>();
    EXPECT_LT(1 - cosine, 0.5 * last) << draws;  // in the mean a sixteenth each time
    last = 1 - cosine;
  }
  EXPECT_LT(last, 0.01);
}

// Without relaxation, a run draws from the posterior of a Gaussian prior: its mean and its variance.
TEST(Dpg, AutomaticStrengthDrawsFromThePosterior) {
  constexpr int kDraws = 256;
  TestProblem c = faint_problem("sr:2", "gaussian:0.1").row(0);
  const Tensor A = dense_matrix(*c.m.A), prior = c.prior->covariance();
  const Tensor S = A.matmul(prior).matmul(A.t()) + 0.01 * torch::eye(A.size(0), torch::kDouble);
  const Tensor gain = torch::linalg_solve(S, A.matmul(prior)).t();
  const Tensor mean = gain.matmul(c.m.y.flatten().to(torch::kDouble));
  const Tensor covariance = prior - gain.matmul(A).matmul(prior);
  c = c.repeated(kDraws);

  DpgOptions options;
  options.relaxation = 1;
  options.passes = 6;
  options.unguided = 0;
  options.sampler = {.sampler = "ddpm", .steps = 500, .spacing = "even", .variance = "small"};
  const Tensor draws = solve(c, options).image.flatten(1).to(torch::kDouble);
  // The mean of so many draws is off by the posterior's spread over their root, and little else.
  const double spread = covariance.trace().item<double>();
  const double off = (draws.mean(0) - mean).square().sum().item<double>();
  EXPECT_LT(off, 3 * spread / kDraws);
  EXPECT_LT(off, 0.02 * mean.square().sum().item<double>());
  // With the smaller reverse variance, steps as long as these lose a tenth of the spread; 1000 steps lose 7
  // %.
  const double variance = draws.var(0).sum().item<double>();
  EXPECT_NEAR(variance, spread, 0.15 * spread);
}

// Photons: dark entries vary less than bright ones, and are trusted more, up to 3 times as much as the mean
// one. The draws' mean is that of the posterior with each entry's own variance, not with one for all.
TEST(Dpg, TrustsEachEntryByItsLight) {
  for (const float dark : {-0.5f, -0.85f}) {
    Tensor half = torch::full({3, kSide, kSide}, 0.7f);
    half.slice(2, 0, kSide / 2).fill_(dark);
    const bool capped = dark < -0.8f;
    const double spread = capped ? 0.0016 : 0.01;  // of the prior; the range is not to cut it off
    TestProblem c("identity", "poisson:rate=0.5,clip=no",
                  std::make_shared<GaussianPrior>(half, spread * torch::eye(kValues, torch::kDouble)));
    c = c.row(0);
    c.truth = (c.truth + half).clamp(-1, 1);
    c.m = measure(c.m.A, c.m.noise, c.truth, 4, c.images);
    const auto mean = [&](const Tensor& variance) {
      return half + (c.m.y - half) * spread / (spread + variance);
    };
    const double level = noise_level(c.m);
    const Tensor own = c.m.noise->variances(half), same = mean(torch::tensor(level * level));
    const Tensor trusted = mean(own.clamp_min(level * level / 3));
    EXPECT_EQ((own < level * level / 3).any().item<bool>(), capped);
    DpgOptions options;
    options.relaxation = 1;
    options.unguided = 0;
    options.sampler = {.sampler = "ddpm", .steps = 200, .spacing = "even", .variance = "small"};
    const Tensor found = solve(c.repeated(1024), options).image.mean(0, true);
    const double apart = (trusted - same).norm().item<double>();
    EXPECT_LT((found - trusted).norm().item<double>(), 0.35 * apart) << dark;
    const double from_own = (found - mean(own)).norm().item<double>();
    EXPECT_TRUE(!capped || from_own > 0.35 * apart) << from_own;
  }
}

// Long runs take fewer passes a step.
TEST(Dpg, LongRunsTakeFewerPasses) {
  DpgOptions options;
  for (const auto& [steps, passes] : {std::pair{4, 3}, {100, 3}, {200, 2}, {1000, 2}}) {
    options.sampler.steps = steps;
    EXPECT_EQ(passes_of(options), passes) << steps;
  }
  options.passes = 5;
  EXPECT_EQ(passes_of(options), 5);
  EXPECT_EQ(default_settings("dpg").at("passes"), "auto");
  EXPECT_EQ(complete_settings("dpg", Json{{"passes", 2}}).at("passes"), 2);
  EXPECT_THROW(make_solver("dpg", Json{{"passes", 2.5}}), Error);
  EXPECT_THROW(make_solver("dpg", Json{{"passes", "many"}}), Error);
  EXPECT_THROW(make_solver("dpg", Json{{"passes", 0}}), Error);
}

TEST(Dpg, StaysWithinItsQueries) {
  for (const std::string op : {"quantize:8", "hdr"})
    for (const bool automatic : {false, true}) {
      const TestProblem c(op, "none");
      DpgOptions options = sampled(4, 10);
      options.estimator = "auto";
      if (automatic) options.strength.reset();
      options.queries = 500;
      const Result result = solve(c, options);
      EXPECT_LE(result.cost.operator_calls, 500) << op << automatic;
      EXPECT_GE(result.cost.operator_calls, 400) << op << automatic;
      options.queries = 20;
      EXPECT_THROW(solve(c, options), Error);
    }
}

TEST(Dpg, StopsWhenTold) {
  const TestProblem c;
  const Result result = solve(c, sampled(), [](const StepRecord& record) {
    EXPECT_EQ(record.residual.size(0), 3);
    return record.done == 5 ? Next::stop : Next::go_on;
  });
  EXPECT_TRUE(result.stopped);
  EXPECT_EQ(result.cost.network_calls, 5);
  EXPECT_LE(result.image.abs().max().item<double>(), 1);
}

TEST(Dpg, RefusesTheExactEstimatorWhereItHasNone) {
  DpgOptions options;
  options.estimator = "exact";
  try {
    solve(TestProblem("quantize:8"), options);
    FAIL() << "a black box was not refused";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("--estimator mc"), std::string::npos) << error.what();
  }
}

TEST(Settings, GoThroughJsonAndBack) {
  const Json defaults = default_settings("dpg");
  EXPECT_EQ(defaults["strength"], "auto");
  EXPECT_EQ(defaults["steps"], 100);
  Json changed = {{"strength", 70}, {"mc", 800}};
  set_from_text(changed, "pairs=never");
  set_from_text(changed, "collapse=false");
  set_from_text(changed, "spacing=power:2");
  const Json complete = complete_settings("dpg", changed);
  EXPECT_EQ(complete["strength"], 70.0);
  EXPECT_EQ(complete["pairs"], "never");
  EXPECT_EQ(complete["collapse"], false);
  EXPECT_EQ(complete["spacing"], "power:2");
  EXPECT_EQ(complete_settings("dpg", complete), complete);
}

TEST(Settings, WrongOnesAreNamed) {
  const auto message = [](const std::string& method, const Json& settings) {
    try {
      make_solver(method, settings);
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string("accepted");
  };
  EXPECT_NE(message("dpg", {{"stregth", 1}}).find("strength"), std::string::npos);
  EXPECT_NE(message("dpg", {{"steps", 1.5}}).find("whole number"), std::string::npos);
  EXPECT_NE(message("dpg", {{"mc", 1}}).find("at least 2"), std::string::npos);
  EXPECT_NE(message("dqg", Json::object()).find("dpg"), std::string::npos);
}

TEST(Presets, AllLoadAndScaleWithTheSize) {
  const std::vector<std::string> names = preset_names();
  EXPECT_GE(names.size(), 19u);  // the rows of the paper's appendix
  for (const std::string& name : names) {
    const Preset preset = load_preset(name);
    if (!preset.op.empty()) {
      EXPECT_NO_THROW(make_operator(preset.op, {{3, 256, 256}, 0, {0}})) << name;
    }
    EXPECT_NO_THROW(make_solver(preset.method, preset_settings(preset, 3 * 128 * 128))) << name;
  }
  const Preset preset = load_preset("ffhq-sr4-gaussian");
  EXPECT_DOUBLE_EQ(preset_settings(preset, 3 * 256 * 256)["strength"], 160);
  EXPECT_DOUBLE_EQ(preset_settings(preset, 3 * 128 * 128)["strength"], 80);
  EXPECT_EQ(preset_settings(preset, 3 * 128 * 128)["mc"], 800);
  EXPECT_THROW(load_preset("ffhq-sr4-gausian"), Error);
}

}  // namespace
}  // namespace dpg
