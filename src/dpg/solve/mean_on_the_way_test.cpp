// The mean that a run puts together, against what each direction is to have of the steps' means.
#include "dpg/solve/mean_on_the_way.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <algorithm>
#include <cmath>

#include "dpg/sample/sample.h"
#include "dpg/solve/test_problem.h"

namespace dpg {
namespace {

double spread(double abar) {
  return (1 - abar) / std::sqrt(abar);
}

// The part of a new mean that a direction takes which A keeps with singular value s.
double taken(int number, double s, double variance, double abar) {
  const double average = number <= 5 ? 1.0 / number : 0, x = spread(abar) * s * s / variance;
  return average + (1 - average) * x * x / (1 + x * x);
}

Tensor variances(const std::vector<float>& values) {
  return torch::tensor(values).view({-1, 1, 1, 1});
}

// Means that are all of one value, step by step.
const std::vector<double> kAbars = {0.5, 0.8, 0.93, 0.975, 0.992, 0.9974, 0.9991};
const std::vector<double> kValues = {1, -2, 3, 0.5, -1, 2, 7};

Tensor flat(double value, std::int64_t pictures) {
  return torch::full({pictures, 3, kTestSide, kTestSide}, value);
}

// Where y says nothing the first five count alike; where it says something, those before x_t says as much.
TEST(MeanOnTheWay, GoesByWhatYSaysOfEachDirection) {
  const TestProblem c = TestProblem("inpaint:box,height=4,width=4,position=centre").row(0);
  constexpr double kVariance = 1e-3;
  MeanOnTheWay mean(as_linear(*c.m.A), variances({kVariance}));
  double unseen = 0, seen = 0;
  for (std::size_t k = 0; k < kAbars.size(); ++k) {
    mean.add(flat(kValues[k], 1), kAbars[k], {});
    const int number = static_cast<int>(k) + 1;
    unseen += taken(number, 0, kVariance, kAbars[k]) * (kValues[k] - unseen);
    seen += number == 1                     ? kValues[k]
            : spread(kAbars[k]) < kVariance ? 0
                                            : taken(number, 1, kVariance, kAbars[k]) * (kValues[k] - seen);
  }
  const Tensor mask = c.m.A->apply(flat(1, 1)), value = mean.value();
  EXPECT_NEAR(unseen, (1 - 2 + 3 + 0.5 - 1) / 5, 1e-12);
  EXPECT_LT((value - (mask * seen + (1 - mask) * unseen)).abs().max().item<double>(), 1e-4);
  EXPECT_GT(std::abs(seen - unseen), 0.5);  // or the above says little
}

// The more y's noise, the sooner a picture's mean is left as it is, whatever lies beside it.
TEST(MeanOnTheWay, EndsForEachPictureByItsNoise) {
  const TestProblem c("identity");
  MeanOnTheWay mean(as_linear(*c.m.A), variances({1e-6f, 0.02f}));
  for (std::size_t k = 0; k < 3; ++k) mean.add(flat(kValues[k], 2), kAbars[k], {});
  EXPECT_TRUE(torch::equal(mean.still_open(0.975), variances({1, 1})));
  const Tensor before = mean.value();
  EXPECT_TRUE(torch::equal(mean.still_open(0.992), variances({1, 0})));
  mean.add(flat(9, 2), 0.992, {});
  EXPECT_LT((mean.value()[0] - 9).abs().max().item<double>(), 1e-3);
  EXPECT_TRUE(torch::equal(mean.value()[1], before[1]));
}

// An entry of y that is trusted more is followed further.
TEST(MeanOnTheWay, GoesByEachEntrysTrust) {
  const TestProblem c("identity");
  constexpr double kVariance = 0.05;
  MeanOnTheWay mean(as_linear(*c.m.A), variances({kVariance}));
  mean.add(flat(0, 1), 0.5, {});
  const Tensor weights = 0.5 + torch::rand({1, 3, kTestSide, kTestSide});
  mean.add(flat(1, 1), 0.9, weights);
  const Tensor x = weights * spread(0.9) / kVariance;
  const Tensor expected = 0.5 + 0.5 * x.square() / (1 + x.square());
  EXPECT_LT((mean.value() - expected).abs().max().item<double>(), 0.01);
  EXPECT_GT(expected.max().item<double>() - expected.min().item<double>(), 0.1);
}

// From the first step with half of the signal on, few of a run's steps are asked for, and where A is not
// linear five.
TEST(MeanOnTheWay, AsksForAFewSteps) {
  const TestProblem c("sr:2");
  for (const int steps : {4, 100, 1000})
    for (const bool linear : {true, false}) {
      const Schedule schedule = spaced_schedule(c.prior->schedule(), "power:2", steps);
      MeanOnTheWay mean(linear ? as_linear(*c.m.A) : nullptr, variances({1e-4f}));
      int asked = 0;
      double last = 0;
      for (int i = schedule.steps() - 1; i >= 0; --i) {
        const double abar = schedule.alpha_bar()[static_cast<std::size_t>(i)];
        if (!mean.asks_for(abar)) continue;
        EXPECT_GE(abar, 0.5);
        if (++asked > 1) {
          EXPECT_LE(spread(abar), last / 3) << steps;
        }
        last = spread(abar);
        mean.add(flat(0, 1), abar, {});
      }
      EXPECT_GE(asked, std::min(steps / 4, 5)) << steps;
      EXPECT_LE(asked, linear ? 9 : 5) << steps;
    }
}

}  // namespace
}  // namespace dpg
