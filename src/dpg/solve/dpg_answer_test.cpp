// From DPG's draws to its answers, on a Gaussian prior.
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <functional>

#include "dpg/core/error.h"
#include "dpg/solve/answer.h"
#include "dpg/solve/catalog.h"
#include "dpg/solve/dpg.h"
#include "dpg/solve/settings.h"
#include "dpg/solve/test_problem.h"

namespace dpg {
namespace {

constexpr int kSide = TestProblem::kSide;

Result solve(const TestProblem& c, const DpgOptions& options, const Observer& observer = {}) {
  return c.solve(Dpg(options), 1, observer);
}

DpgOptions fifty_steps() {
  DpgOptions options;
  options.passes = 6;
  options.sampler = {.sampler = "ddpm", .steps = 50, .spacing = "power:1.5", .variance = "small"};
  return options;
}

// On the way to a draw, x_t and y say less of x0 than in the end: over many runs what they say has the
// posterior's mean, and less of its spread. An answer lies between, nearer to the truth; draws do not.
TEST(DpgAnswer, LiesBetweenTheDrawAndTheMean) {
  constexpr int kDraws = 64;
  const TestProblem c = faint_problem("sr:2", "gaussian:0.1").repeated(kDraws);
  DpgOptions options = fifty_steps();
  const auto answers = [&](double relaxation, std::optional<double> smoothing) {
    options.relaxation = relaxation;
    options.smoothing = smoothing;
    return solve(c, options).image;
  };
  const auto of_each = [&](const Tensor& x) { return x.view({kDraws, 3, 3, kSide, kSide}); };
  const auto spread = [&](const Tensor& x) { return of_each(x).var(0).sum().item<double>(); };
  const auto error = [&](const Tensor& x) { return (x - c.truth).square().mean().item<double>(); };

  const Tensor draws = answers(1, 0.0), means = answers(1, 1.0);
  EXPECT_LT(spread(means), 0.7 * spread(draws));
  const double apart = (of_each(means).mean(0) - of_each(draws).mean(0)).square().sum().item<double>();
  EXPECT_LT(apart, 4 * (spread(draws) + spread(means)) / kDraws);
  EXPECT_TRUE(torch::equal(answers(1, {}), draws));

  options.floor = 0;  // which would move each of these by another length
  const Tensor draw = answers(1.7, 0.0), chosen = answers(1.7, {}), further = answers(1.7, 0.3);
  EXPECT_TRUE(torch::equal(chosen, answers(1.7, 0.065)));
  EXPECT_LT(error(chosen), 0.985 * error(draw));
  EXPECT_LT(error(further), error(chosen));

  options.estimator = "mc";
  EXPECT_TRUE(torch::equal(answers(1.7, {}), answers(1.7, 0.0)));
}

// A relaxed draw's residual ends below the floor; an answer's is not far below.
TEST(DpgAnswer, HasTheResidualOfTheTruth) {
  for (const std::string op : {"sr:2", "blur:sigma=1,size=5", "inpaint:box,height=4,width=4"}) {
    const TestProblem c(op, "gaussian:0.1");
    DpgOptions options = fifty_steps();
    const Tensor residual = residual_norm(c.m.y, c.m.A->apply(solve(c, options).image));
    for (int i = 0; i < 3; ++i)
      EXPECT_GT(residual[i].item<double>(), 0.96 * noise_floors(c.m)[static_cast<std::size_t>(i)]) << op;
    options.floor = 0;
    const Tensor unraised = residual_norm(c.m.y, c.m.A->apply(solve(c, options).image));
    EXPECT_LT(unraised.min().item<double>(), 0.95 * noise_floors(c.m)[0]) << op;  // or the above says little
  }
}

// With one pass a step, means on the way are not so near to the data as they are exact: the way there ends at
// the floor, or where the draw is.
TEST(DpgAnswer, IsNotLedAwayFromTheData) {
  for (const std::string noise : {"gaussian:0.01", "gaussian:0.03"}) {
    const TestProblem c = faint_problem("blur:sigma=1.5,size=7", noise);
    DpgOptions options = fifty_steps();
    options.passes = 1;
    const auto ratio = [&](double smoothing, double floor) {
      options.smoothing = smoothing;
      options.floor = floor;
      const Tensor residual = residual_norm(c.m.y, c.m.A->apply(solve(c, options).image));
      return residual.to(torch::kDouble) / torch::tensor(noise_floors(c.m), torch::kDouble);
    };
    // A smoothing of 0 would be another draw: means on the way ask for steps without late noise taken away.
    const Tensor draw = ratio(1e-9, 0), led = ratio(1, 0), kept = ratio(1, 0.97);
    const Tensor may = draw.clamp_min(1);
    EXPECT_GT((led / may).min().item<double>(), 1.002) << noise;  // or the next says little
    EXPECT_GT((led / may).max().item<double>(), 1.07) << noise;
    EXPECT_LT((kept / may).max().item<double>(), 1.001) << noise;
  }
}

// Without a mean on the way, what is coarse in the answer is that of the draws, what is fine the first one's.
TEST(DpgAnswer, TakesItsCoarsePartFromAllDraws) {
  const TestProblem c = faint_problem("sr:2", "gaussian:0.1");
  DpgOptions options = fifty_steps();
  options.relaxation = 1;  // draws as they are
  const Tensor first = solve(c, options).image;
  const Tensor second = c.solve(Dpg(options), 1 + 0x9E3779B97F4A7C15u).image;
  EXPECT_GT(relative_error(second, first), 0.1);
  options.draws = 2;
  const Result both = solve(c, options);
  EXPECT_LT(relative_error(both.image, first + coarse_part((second - first) / 2, 2)), 1e-5);
  EXPECT_EQ(both.cost.network_calls, 100);
  EXPECT_EQ(both.history.t.size(), 50u);
}

TEST(DpgAnswer, OfMoreDrawsIsNearerToTheTruth) {
  const TestProblem c = faint_problem("sr:2", "gaussian:0.1").repeated(32);
  DpgOptions options = fifty_steps();
  options.relaxation = 1;
  const auto error = [&](int draws) {
    options.draws = draws;
    return coarse_part(solve(c, options).image - c.truth, 2).square().mean().item<double>();
  };
  // Coarse error: V of the mean and V of the draw, the latter divided by the draws.
  const double one = error(1), two = error(2), four = error(4);
  EXPECT_NEAR(two / one, 0.75, 0.1);
  EXPECT_NEAR(four / one, 0.625, 0.1);
}

TEST(DpgAnswer, OfABatchIsThatOfItsPictures) {
  const TestProblem c("inpaint:random,removed=0.5");
  DpgOptions options = fifty_steps();
  options.draws = 3;
  const Tensor all = solve(c, options).image;
  for (int i = 0; i < 3; ++i)
    EXPECT_LT(relative_error(all.slice(0, i, i + 1), solve(c.row(i), options).image), 2e-5);
}

TEST(DpgAnswer, CountsTheStepsOfAllDraws) {
  const TestProblem c;
  DpgOptions options = fifty_steps();
  options.draws = 3;
  int last = 0;
  solve(c, options, [&](const StepRecord& record) {
    EXPECT_EQ(record.done, ++last);
    EXPECT_EQ(record.total, 150);
    return Next::go_on;
  });
  EXPECT_EQ(last, 150);
  const Result stopped = solve(
      c, options, [](const StepRecord& record) { return record.done == 70 ? Next::stop : Next::go_on; });
  EXPECT_TRUE(stopped.stopped);
  EXPECT_EQ(stopped.cost.network_calls, 70);

  EXPECT_EQ(network_calls("dpg", complete_settings("dpg", Json{{"draws", 3}})), 300);
  options.draws = 0;
  EXPECT_THROW(Dpg{options}, Error);
}

// With means on the way, it is their mean over all draws that the answer lies towards.
TEST(DpgAnswer, LiesTowardsTheMeanOfAllDraws) {
  const TestProblem c = faint_problem("sr:2", "gaussian:0.1").repeated(32);
  DpgOptions options = fifty_steps();
  options.smoothing = 1;
  const auto error = [&](int draws) {
    options.draws = draws;
    return (solve(c, options).image - c.truth).square().mean().item<double>();
  };
  const double one = error(1), three = error(3);
  EXPECT_LT(three, 0.95 * one);
}

// Queries are dealt out over all draws.
TEST(DpgAnswer, StaysWithinItsQueries) {
  const TestProblem c("quantize:8", "none");
  DpgOptions options;
  options.sampler.steps = 10;
  options.draws = 2;
  options.queries = 1000;
  const Result result = solve(c, options);
  EXPECT_LE(result.cost.operator_calls, 1000);
  EXPECT_GE(result.cost.operator_calls, 800);
}

// The order is chosen where detail is lacking, and never where a strength or draws are asked for.
TEST(DpgAnswer, ChoosesItsOrder) {
  struct Case {
    const char* op;
    const char* sampler;
    std::function<void(DpgOptions&)> set;
    double order;
  };
  const auto as_it_is = [](DpgOptions&) {};
  const Case cases[] = {
      {"sr:2", "ddim", as_it_is, 0.5},
      {"hdr", "ddim", as_it_is, 0.5},
      {"sr:2", "ddpm", as_it_is, 0},
      {"hdr", "ddpm", as_it_is, 0},
      {"sr:2 | quantize:bits=16", "ddpm", as_it_is, 0.5},
      {"sr:2 | quantize:bits=16", "ddpm", [](DpgOptions& o) { o.guess = false; }, 0},
      {"sr:2", "ddim", [](DpgOptions& o) { o.strength = 4; }, 0},
      {"sr:2", "ddim", [](DpgOptions& o) { o.relaxation = 1; }, 0},
  };
  for (const Case& one : cases) {
    const TestProblem c(one.op);
    DpgOptions options;
    options.sampler = {.sampler = one.sampler, .steps = 12, .variance = "small", .eta = 1};
    options.mc = 20;
    one.set(options);
    const Tensor chosen = solve(c, options).image;
    options.second_order = one.order;
    EXPECT_TRUE(torch::equal(chosen, solve(c, options).image)) << one.op << ", " << one.sampler;
    options.second_order = one.order == 0 ? 0.5 : 0;
    EXPECT_FALSE(torch::equal(chosen, solve(c, options).image)) << one.op << ", " << one.sampler;
  }
  DpgOptions wrong;
  wrong.second_order = 1.5;
  EXPECT_THROW(Dpg{wrong}, Error);
}

}  // namespace
}  // namespace dpg
