// What DPS, MCG, LGD-MC, PiGDM and EnKG have in common as solvers, on a Gaussian prior.
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "dpg/core/error.h"
#include "dpg/solve/catalog.h"
#include "dpg/solve/settings.h"
#include "dpg/solve/test_problem.h"

namespace dpg {
namespace {

// Settings that suit the small problem, whose pictures are much shorter vectors than those the defaults are
// for.
Json settings_for(const std::string& method, int steps) {
  Json settings = {{"steps", steps}};
  if (method == "dps" || method == "lgd-mc") settings["zeta"] = 0.5;
  if (method == "mcg") settings["alpha"] = 0.5;
  if (method == "enkg") settings.update({{"particles", 80}, {"chunk", 240}});
  return settings;
}

std::unique_ptr<Solver> solver_for(const std::string& method, int steps) {
  return make_solver(method, settings_for(method, steps));
}

const std::vector<std::string> kMethods = {"dps", "mcg", "lgd-mc", "pigdm", "enkg"};

TEST(GuidedPeers, ABatchIsItsImagesOneByOne) {
  for (const std::string& method : kMethods)
    for (const std::string op : {"sr:2", "inpaint:random,removed=0.5"})
      for (const std::string noise : {"gaussian:0.05", "poisson:1"}) {
        const TestProblem all(op, noise);
        const auto solver = solver_for(method, 12);
        const Result result = all.solve(*solver);
        for (int i = 0; i < 3; ++i) {
          const Result one = all.row(i).solve(*solver);
          const std::string what = method + " " + op + " " + noise;
          EXPECT_LT(relative_error(result.image.slice(0, i, i + 1), one.image), 2e-4) << what;
          const double last = one.history.residual_of(0).back();
          EXPECT_NEAR(result.history.residual_of(i).back(), last, 1e-3 * (1 + last)) << what;
        }
      }
}

TEST(GuidedPeers, TheSeedDecidesAndNothingIsKept) {
  const TestProblem a("sr:2"), b("blur:sigma=1,size=5");
  for (const std::string& method : kMethods) {
    const auto solver = solver_for(method, 8);
    const Tensor first = a.solve(*solver).image;
    b.solve(*solver);
    EXPECT_TRUE(torch::equal(a.solve(*solver).image, first)) << method;
    EXPECT_FALSE(torch::equal(a.solve(*solver, 2).image, first)) << method;
  }
}

// Where the residual of the result must lie, in noise floors. MCG takes the noise for the truth, so its own
// is far below one.
TEST(GuidedPeers, TheResultFitsTheData) {
  struct Range {
    std::string method;
    double least, most;
  };
  const TestProblem c("sr:2", "gaussian:0.05");
  const std::vector<double> unguided = c.unguided_residuals(100), floor = noise_floors(c.m);
  for (const Range& range :
       {Range{"dps", 0.3, 3}, {"mcg", 0, 0.05}, {"lgd-mc", 0.3, 3}, {"pigdm", 0.3, 2}, {"enkg", 0.3, 2}}) {
    const Result result = c.solve(*solver_for(range.method, 100));
    const std::vector<double> residual = c.residuals(result.image);
    for (std::size_t i = 0; i < 3; ++i) {
      EXPECT_LT(residual[i], 0.5 * unguided[i]) << range.method;
      EXPECT_LT(residual[i], range.most * floor[i]) << range.method;
      EXPECT_GE(residual[i], range.least * floor[i]) << range.method;
    }
    EXPECT_EQ(result.history.t.size(), 100u) << range.method;
  }
}

TEST(GuidedPeers, CountWhatTheyCost) {
  const TestProblem c;
  const Cost dps = c.solve(*solver_for("dps", 7)).cost;
  EXPECT_EQ(dps.network_calls, 7);
  EXPECT_EQ(dps.reverse_passes, 7);
  EXPECT_EQ(dps.operator_calls, 14);
  EXPECT_EQ(c.solve(*solver_for("mcg", 7)).cost.operator_calls, 6 * 5 + 4);
  EXPECT_EQ(c.solve(*solver_for("lgd-mc", 7)).cost.operator_calls, 7 * (1 + 20));
  EXPECT_EQ(c.solve(*solver_for("pigdm", 7)).cost.operator_calls, 14);
  // 20 steps, 18 of them corrected: each of 4 particles is denoised 20 + 18 times.
  const Json few = {{"steps", 20}, {"particles", 4}, {"ode_steps", 1}};
  const Cost enkg = c.solve(*make_solver("enkg", few)).cost;
  EXPECT_EQ(enkg.network_calls, 4 * 38);
  EXPECT_EQ(enkg.reverse_passes, 0);
  EXPECT_EQ(enkg.operator_calls, 4 * 18 + 20);
}

TEST(GuidedPeers, StopWhenTold) {
  const TestProblem c;
  for (const std::string& method : kMethods) {
    const Result result = c.solve(*solver_for(method, 12), 1, [](const StepRecord& record) {
      EXPECT_EQ(record.residual.size(0), 3);
      EXPECT_EQ(record.total, 12);
      return record.done == 5 ? Next::stop : Next::go_on;
    });
    EXPECT_TRUE(result.stopped) << method;
    EXPECT_EQ(result.history.t.size(), 5u) << method;
    EXPECT_EQ(result.image.sizes(), c.truth.sizes()) << method;
  }
}

TEST(GuidedPeers, WrongPairsAreRefusedWithAWayOut) {
  const auto message = [](const std::string& method, const std::string& op) {
    try {
      const TestProblem c(op, "none");
      make_solver(method, Json::object())->check_problem(c.m);
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string("accepted");
  };
  for (const std::string method : {"dps", "mcg", "lgd-mc"})
    EXPECT_NE(message(method, "quantize:3").find("use --method dpg or enkg"), std::string::npos) << method;
  for (const std::string method : {"mcg", "pigdm"})
    EXPECT_NE(message(method, "hdr").find("use --method dps or dpg"), std::string::npos) << method;
  // A black box that does not answer with a picture of the size it was given.
  EXPECT_NE(message("pigdm", "quantize:3 | sr:2").find("use --method dpg or enkg"), std::string::npos);
  EXPECT_EQ(message("pigdm", "quantize:3"), "accepted");
  EXPECT_EQ(message("enkg", "quantize:3"), "accepted");
  EXPECT_EQ(message("dps", "hdr"), "accepted");
}

TEST(GuidedPeers, WrongSettingsAreNamed) {
  const auto message = [](const std::string& method, const Json& settings) {
    try {
      make_solver(method, settings);
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string("accepted");
  };
  EXPECT_NE(message("dps", {{"zeta", -1}}).find("zeta"), std::string::npos);
  EXPECT_NE(message("mcg", {{"alpha", -1}}).find("alpha"), std::string::npos);
  EXPECT_NE(message("lgd-mc", {{"average", "median"}}).find("log-mean-exp"), std::string::npos);
  EXPECT_NE(message("pigdm", {{"eta", 2}}).find("eta"), std::string::npos);
  EXPECT_NE(message("enkg", {{"particles", 1}}).find("at least 2"), std::string::npos);
  EXPECT_EQ(default_settings("dps")["steps"], 1000);
  EXPECT_EQ(default_settings("pigdm")["eta"], 1.0);
}

}  // namespace
}  // namespace dpg
