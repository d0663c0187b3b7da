// The methods with a loop of their own (DDRM, DDNM, DDNM+, DiffPIR, RED-diff, DAPS) on a Gaussian prior.
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cmath>

#include "dpg/core/error.h"
#include "dpg/solve/catalog.h"
#include "dpg/solve/ddnm_plus.h"
#include "dpg/solve/settings.h"
#include "dpg/solve/test_problem.h"

namespace dpg {
namespace {

const std::vector<std::string> kMethods = {"ddrm", "ddnm", "ddnm+", "diffpir", "red-diff", "daps"};

// Few steps, for tests that compare runs with each other.
std::unique_ptr<Solver> quick(const std::string& method) {
  Json settings = {{"steps", 6}};
  if (method == "ddnm+") settings["travel_repeat"] = 2;
  if (method == "daps") settings["ode_steps"] = 2, settings["langevin_steps"] = 4;
  return make_solver(method, settings);
}

// What `dpg methods` says is what a run does, for every method.
TEST(Catalogue, CountsTheNetworkCallsOfARun) {
  const TestProblem c = faint_problem("sr:2");
  for (const MethodInfo& method : method_catalog()) {
    Json settings = {{"steps", 7}};
    if (method.name == "ddnm+") settings.update({{"travel_length", 2}, {"travel_repeat", 3}});
    if (method.name == "daps") settings.update({{"ode_steps", 3}, {"langevin_steps", 2}});
    if (method.name == "enkg") settings.update({{"particles", 5}, {"ode_steps", 2}, {"updates", 2}});
    const Result result = c.solve(*make_solver(method.name, settings));
    EXPECT_EQ(network_calls(method.name, settings), result.cost.network_calls) << method.name;
    EXPECT_GE(network_calls(method.name, default_settings(method.name)), 20) << method.name;
  }
}

// Without noise it is DDNM, the same numbers.
TEST(DdnmPlus, WithoutNoiseItIsDdnm) {
  const TestProblem c = faint_problem("inpaint:random,removed=0.5", "none");
  const Tensor plain = c.solve(*make_solver("ddnm", {{"steps", 8}})).image;
  EXPECT_LT(relative_error(c.solve(*make_solver("ddnm+", {{"steps", 8}})).image, plain), 1e-4);
}

TEST(DdnmPlus, TravelsBackAsOftenAsToldAndEnds) {
  EXPECT_EQ(travel_times(4, 1, 1), (std::vector<int>{3, 2, 1, 0, -1}));
  EXPECT_EQ(travel_times(4, 1, 2), (std::vector<int>{3, 2, 3, 2, 1, 2, 1, 0, 1, 0, -1}));
  EXPECT_EQ(travel_times(5, 2, 2), (std::vector<int>{4, 3, 2, 4, 3, 2, 1, 0, 2, 1, 0, -1}));
  EXPECT_EQ(travel_times(1, 3, 5), (std::vector<int>{0, -1}));
  const TestProblem c = faint_problem("sr:2");
  const Result result = c.solve(*make_solver("ddnm+", {{"steps", 4}, {"travel_repeat", 2}}));
  EXPECT_EQ(result.cost.network_calls, 7);
  EXPECT_EQ(result.history.t.size(), 7u);
}

TEST(Projections, WithoutNoiseTheyEndOnTheData) {
  for (const std::string op :
       {"sr:2", "inpaint:random,removed=0.5", "blur:sigma=0.6,size=3,boundary=circular"})
    for (const std::string method : {"ddrm", "ddnm", "ddnm+"}) {
      const TestProblem c = faint_problem(op, "none");
      const Tensor image = c.solve(*make_solver(method, {{"steps", 10}})).image;
      EXPECT_LT(relative_error(c.m.A->apply(image), c.m.y), 1e-4) << method << " " << op;
    }
}

// No noise: the picture must come near the data, and nothing may divide by zero.
TEST(DiffPir, WorksWithoutNoise) {
  const TestProblem c = faint_problem("sr:2", "none");
  const Tensor image = c.solve(*make_solver("diffpir", {{"steps", 50}})).image;
  EXPECT_LT(relative_error(c.m.A->apply(image), c.m.y), 0.02);
}

// How a method ends on a noisy problem, over three images.
struct Ending {
  double residual;  // of the result, in noise floors
  double error;     // to the truth, in root mean square errors of the posterior mean
};

Ending ending(const TestProblem& c, const Tensor& image) {
  const Tensor A = dense_matrix(*c.m.A), prior = c.prior->covariance();
  const double sigma = noise_level(c.m);
  const Tensor seen = A.matmul(prior).matmul(A.t()) + sigma * sigma * torch::eye(A.size(0), torch::kDouble);
  const Tensor gain = torch::linalg_solve(seen, A.matmul(prior));
  const double expected = (prior - prior.matmul(A.t()).matmul(gain)).trace().item<double>();
  const double residual = residual_norm(c.m.y, c.m.A->apply(image)).mean().item<double>();
  return {residual / noise_floors(c.m)[0],
          std::sqrt((image - c.truth).square().sum().item<double>() / 3 / expected)};
}

// It goes over into the pseudo-inverse; the more of it there is, the less y is fitted; and it keeps away the
// noise that a blur's pseudo-inverse enlarges.
TEST(Damping, LeadsFromThePseudoInverseAwayFromTheNoise) {
  for (const std::string method : {"ddnm", "mcg"}) {
    const auto image = [&](const TestProblem& c, double damping) {
      return c.solve(*make_solver(method, {{"steps", 30}, {"damping", damping}})).image;
    };
    const TestProblem small = faint_problem("sr:2");
    EXPECT_LT(relative_error(image(small, 1e-4), image(small, 0)), 3e-3) << method;
    EXPECT_LT(small.residuals(image(small, 0.01))[0], small.residuals(image(small, 0.1))[0]) << method;
    EXPECT_LT(small.residuals(image(small, 0.1))[0], small.residuals(image(small, 1))[0]) << method;
    const TestProblem blurred = faint_problem("blur:sigma=1,size=5,boundary=circular", "gaussian:0.1");
    EXPECT_LT(ending(blurred, image(blurred, 0.05)).error, 0.8 * ending(blurred, image(blurred, 0)).error)
        << method;
  }
}

// A wrong sign ends far from the truth. For the methods that know the noise, a sigma_y on another range (a
// factor of two) moves the residual out of these bounds, in either direction.
TEST(Peers, EndNearTheNoiseFloorAndTheTruth) {
  struct Expected {
    const char* method;
    Json settings;
    double least, most;  // residual
    double error;
    bool knows_the_noise;
  };
  const std::vector<Expected> all = {
      {"ddrm", {{"steps", 100}}, 0.75, 0.95, 1.4, true},
      {"ddnm", Json::object(), 0, 1e-4, 1.5, false},  // takes y for exact
      {"ddnm+", Json::object(), 0.75, 0.95, 1.4, true},
      {"diffpir", Json::object(), 0.85, 1.15, 1.7, true},
      {"red-diff", Json::object(), 0, 0.2, 1.6, false},  // its default weights fit the noise
      {"daps", {{"steps", 50}}, 0.5, 0.85, 1.4, false},  // takes y for less noisy than it is
  };
  const TestProblem c = faint_problem("sr:2", "gaussian:0.1");
  const Ending unguided = ending(c, sample(*c.prior, SampleOptions(), Rng(1), c.images));
  for (const Expected& expected : all) {
    const auto solver = make_solver(expected.method, expected.settings);
    const Ending end = ending(c, c.solve(*solver).image);
    EXPECT_GE(end.residual, expected.least) << expected.method;
    EXPECT_LE(end.residual, expected.most) << expected.method;
    EXPECT_LT(end.error, expected.error) << expected.method;
    EXPECT_LT(end.error, 0.6 * unguided.error) << expected.method;
    if (!expected.knows_the_noise) continue;
    TestProblem half = c, twice = c;
    half.m.noise = make_noise("gaussian:0.05"), twice.m.noise = make_noise("gaussian:0.2");
    EXPECT_LT(ending(c, half.solve(*solver).image).residual, expected.least) << expected.method;
    EXPECT_GT(ending(c, twice.solve(*solver).image).residual, expected.most) << expected.method;
  }
}

TEST(Peers, ABatchIsItsImagesOneByOne) {
  for (const std::string op : {"sr:2", "inpaint:random,removed=0.5"})
    for (const std::string noise : {"gaussian:0.05", "poisson:1"})
      for (const std::string& method : kMethods) {
        const TestProblem c = faint_problem(op, noise);
        const auto solver = quick(method);
        const Result all = c.solve(*solver);
        for (int i = 0; i < 3; ++i) {
          const Result one = c.row(i).solve(*solver);
          EXPECT_LT(relative_error(all.image.slice(0, i, i + 1), one.image), 1e-4)
              << method << " " << op << noise;
          EXPECT_NEAR(all.history.residual_of(i).back(), one.history.residual_of(0).back(), 1e-4);
        }
      }
}

TEST(Peers, KeepNothingBetweenRunsAndFollowTheirSeed) {
  const TestProblem a = faint_problem("sr:2"), b = faint_problem("blur:sigma=1,size=5");
  for (const std::string& method : kMethods) {
    const auto solver = quick(method);
    const Tensor alone = b.solve(*solver).image;
    a.solve(*solver);
    EXPECT_TRUE(torch::equal(b.solve(*solver).image, alone)) << method;
    EXPECT_FALSE(torch::equal(b.solve(*solver, 2).image, alone)) << method;
  }
}

TEST(Peers, StopWhenTold) {
  const TestProblem c = faint_problem("sr:2");
  for (const std::string& method : kMethods) {
    const Result result = c.solve(*quick(method), 1, [](const StepRecord& record) {
      EXPECT_EQ(record.residual.size(0), 3);
      EXPECT_GE(record.total, 6);
      return record.done == 3 ? Next::stop : Next::go_on;
    });
    EXPECT_TRUE(result.stopped) << method;
    EXPECT_EQ(result.cost.network_calls, 3) << method;
    EXPECT_EQ(result.history.t.size(), 3u) << method;
    EXPECT_LE(result.image.abs().max().item<double>(), 1) << method;
  }
}

TEST(Peers, RefuseWhatTheyCannotDoAndNameWhoCan) {
  const auto refusal = [](const std::string& method, const std::string& op) {
    const TestProblem c = faint_problem(op);
    try {
      c.solve(*make_solver(method, Json::object()));
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string("accepted");
  };
  const auto names = [](const std::string& sentence, const std::string& other) {
    return sentence.find("--method " + other) != std::string::npos;
  };
  for (const std::string& method : kMethods)
    EXPECT_TRUE(names(refusal(method, "quantize:3"), "dpg")) << method;
  for (const std::string method : {"ddrm", "ddnm", "ddnm+", "diffpir"})
    EXPECT_TRUE(names(refusal(method, "hdr"), "dps")) << method;
  for (const std::string method : {"ddrm", "ddnm+"})
    EXPECT_TRUE(names(refusal(method, "blur:1,size=5 | inpaint:box,height=4,width=4"), "diffpir")) << method;
}

TEST(Peers, SettingsGoThroughJsonAndWrongOnesAreRefused) {
  for (const std::string& method : kMethods) {
    const Json defaults = default_settings(method);
    EXPECT_EQ(complete_settings(method, defaults), defaults) << method;
    EXPECT_THROW(make_solver(method, {{"steps", 0}}), Error) << method;
    EXPECT_THROW(make_solver(method, {{"stpes", 5}}), Error) << method;
  }
}

}  // namespace
}  // namespace dpg
