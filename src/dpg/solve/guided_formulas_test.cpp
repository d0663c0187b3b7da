// The formulas of DPS, MCG, LGD-MC, PiGDM and EnKG, each against a closed form or finite differences.
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cmath>

#include "dpg/solve/catalog.h"
#include "dpg/solve/dps.h"
#include "dpg/solve/enkg.h"
#include "dpg/solve/lgd_mc.h"
#include "dpg/solve/pigdm.h"
#include "dpg/solve/settings.h"
#include "dpg/solve/test_problem.h"

namespace dpg {
namespace {

// DPS ------------------------------------------------------------------------------------------------------

// Central differences of ||y - A(x0(x_t))||_W through prior and operator, along a random direction.
TEST(Dps, TheGradientIsThatOfTheWeightedNorm) {
  for (const std::string op : {"sr:2", "hdr:1.2", "phase"}) {
    const TestProblem c(op, "gaussian:0.05");
    const auto& A = dynamic_cast<const DifferentiableOperator&>(*c.m.A);
    const int t = 300;
    const double abar = c.prior->schedule().alpha_bar()[t];
    const Tensor x_t =
        std::sqrt(abar) * c.truth + std::sqrt(1 - abar) * normal_noise(Rng(3), c.images, 0, 0, {3, 8, 8});
    const Tensor weights = 1 + torch::arange(c.m.y.numel()).view_as(c.m.y).remainder(3);
    const auto norm = [&](const Tensor& x) {
      const Tensor e = c.m.y - A.apply(c.prior->denoise(x, t, Track::nothing).x0);
      return (weights * e * e).to(torch::kDouble).flatten(1).sum(1).sqrt();
    };
    const Denoised denoised = c.prior->denoise(x_t, t, Track::gradient);
    const Tensor gradient = residual_gradient(A, denoised, c.m.y - A.apply(denoised.x0), weights);
    const Tensor direction = normal_noise(Rng(5), c.images, 0, 0, {3, 8, 8});
    const double h = 2e-3;
    const Tensor differences = (norm(x_t + h * direction) - norm(x_t - h * direction)) / (2 * h);
    const Tensor slopes = (gradient * direction).to(torch::kDouble).flatten(1).sum(1);
    EXPECT_LT(relative_error(slopes, differences), 5e-3) << op;
  }
}

// One step is the unguided one less zeta times that gradient. (A narrow prior keeps the clamp out of it.)
TEST(Dps, AStepIsTheAncestralOneLessTheGradient) {
  TestProblem c;
  c.prior = std::make_shared<GaussianPrior>(torch::zeros({3, 8, 8}), 1e-6 * torch::eye(192, torch::kDouble));
  const Json one_step = {{"steps", 1}, {"zeta", 0.3}}, still = {{"steps", 1}, {"zeta", 0}};
  const Tensor moved =
      c.solve(*make_solver("dps", one_step)).image - c.solve(*make_solver("dps", still)).image;
  const Schedule schedule = spaced_schedule(c.prior->schedule(), "even", 1);
  const Tensor x_t = normal_noise(Rng(1), c.images, kBeforeFirstStep, kSamplerNoise, {3, 8, 8});
  const Denoised denoised = c.prior->denoise(x_t, schedule.timestep(0), Track::gradient);
  const Tensor e = c.m.y - c.m.A->apply(denoised.x0);
  const auto& A = dynamic_cast<const DifferentiableOperator&>(*c.m.A);
  EXPECT_LT(relative_error(moved, -0.3 * residual_gradient(A, denoised, e, torch::ones({}))), 1e-3);
}

TEST(Dps, WeightsFollowTheLightOnlyWhereTheNoiseDoes) {
  EXPECT_EQ(inverse_variances(TestProblem("sr:2", "gaussian:0.1").m).dim(), 0);
  EXPECT_EQ(inverse_variances(TestProblem("sr:2", "none").m).dim(), 0);
  TestProblem c("identity", "poisson:1");
  const Tensor weights = inverse_variances(c.m);
  EXPECT_LT((weights.flatten(1).mean(1) - 1).abs().max().item<double>(), 1e-5);
  // Twice the light has twice the variance: u = 0.3 and 0.6.
  c.m.y[0][0][0][0] = -0.4, c.m.y[0][0][0][1] = 0.2, c.m.y[0][0][0][2] = -1;
  const Tensor changed = inverse_variances(c.m)[0][0][0];
  EXPECT_NEAR((changed[0] / changed[1]).item<double>(), 2, 0.02);
  EXPECT_LT((changed[2] / changed[1]).item<double>(),
            0.6 / 0.03);  // darkness itself weighs no more than this
}

// MCG ------------------------------------------------------------------------------------------------------

TEST(Mcg, EndsOnTheMeasurement) {
  for (const std::string op : {"sr:2", "inpaint:random,removed=0.5", "gray"}) {
    TestProblem c(op, "none");
    c.truth *= 0.5, c.m.y *= 0.5;  // the clamp to the range stays out of it
    const Result result = c.solve(*make_solver("mcg", {{"steps", 60}, {"alpha", 0.5}}));
    const Tensor y = c.m.A->apply(result.image);
    EXPECT_LT(relative_error(y, c.m.y), 2e-2) << op;
    const std::vector<double> residual = c.residuals(result.image), unguided = c.unguided_residuals(60);
    for (std::size_t i = 0; i < 3; ++i) EXPECT_LT(residual[i], 0.02 * unguided[i]) << op;
  }
}

// LGD-MC ---------------------------------------------------------------------------------------------------

TEST(LgdMc, WithoutRadiusItIsDps) {
  const TestProblem c("sr:2", "gaussian:0.05");
  const Json narrow = {{"steps", 10}, {"zeta", 0.2}, {"radius", 0}}, dps = {{"steps", 10}, {"zeta", 0.2}};
  const Tensor expected = c.solve(*make_solver("dps", dps)).image;
  EXPECT_LT(relative_error(c.solve(*make_solver("lgd-mc", narrow)).image, expected), 1e-4);
  Json mean = narrow;
  mean["average"] = "mean";
  EXPECT_LT(relative_error(c.solve(*make_solver("lgd-mc", mean)).image, expected), 1e-4);
}

TEST(LgdMc, AveragesAreTheirFormulas) {
  const Tensor squares = torch::tensor({1.0, 3.0, 2.0, 3.5}).view({2, 2}).to(torch::kFloat);
  const Tensor variances = torch::tensor({0.5, 2.0}).to(torch::kFloat);
  const AveragedLoss soft = average_likelihoods(squares, variances);
  // Image 0: exp(-1) and exp(-2). Image 1: exp(-3/4) and exp(-3.5/4).
  EXPECT_NEAR(soft.loss[0].item<double>(), -std::log((std::exp(-1) + std::exp(-2)) / 2), 1e-5);
  EXPECT_NEAR(soft.loss[1].item<double>(), -4 * std::log((std::exp(-0.75) + std::exp(-0.875)) / 2), 1e-5);
  EXPECT_NEAR(soft.weights[0][0].item<double>(), 1 / (1 + std::exp(-1)), 1e-5);
  EXPECT_NEAR(soft.weights[1][1].item<double>(), 1 / (1 + std::exp(0.125)), 1e-5);
  const AveragedLoss hard = average_likelihoods(1e4 * squares, 1e-8 * torch::ones({2}));
  EXPECT_NEAR(hard.loss[0].item<double>(), 1e4, 1);
  EXPECT_EQ(hard.weights[0][0].item<double>(), 1);
  const AveragedLoss mean = average_losses(squares);
  EXPECT_NEAR(mean.loss[1].item<double>(), 3.25, 1e-6);
  EXPECT_NEAR(mean.weights[1][0].item<double>(), 0.5, 1e-6);
}

// PiGDM ----------------------------------------------------------------------------------------------------

TEST(Pigdm, TheDirectionIsADenseSolve) {
  for (const std::string op : {"sr:2", "blur:sigma=1,size=5", "gray"}) {
    const TestProblem c(op);
    const auto& A = dynamic_cast<const LinearOperator&>(*c.m.A);
    const Tensor dense = dense_matrix(A);
    const Tensor e = normal_noise(Rng(6), c.images, 0, 0, c.m.y.sizes().slice(1));
    const std::vector<double> lambdas = {0.01, 3.0, 0.01};
    const Tensor direction = pseudo_inverse_direction(A, e, lambdas);
    for (std::int64_t i = 0; i < 3; ++i) {
      const Tensor K = dense.matmul(dense.t()) +
                       lambdas[static_cast<std::size_t>(i)] * torch::eye(dense.size(0), torch::kDouble);
      const Tensor u = torch::linalg_solve(K, e[i].to(torch::kDouble).flatten(), true);
      EXPECT_LT(relative_error(direction[i].to(torch::kDouble).flatten(), dense.t().mv(u)), 1e-4) << op << i;
    }
  }
}

TEST(Pigdm, WithoutNoiseItIsThePseudoInverse) {
  const TestProblem c("sr:2", "none");
  const auto& A = dynamic_cast<const LinearOperator&>(*c.m.A);
  EXPECT_TRUE(torch::equal(pseudo_inverse_direction(A, c.m.y, {0, 0, 0}), A.pseudo_inverse(c.m.y)));
  const Tensor mixed = pseudo_inverse_direction(A, c.m.y, {0, 0.5, 0});
  EXPECT_TRUE(torch::equal(mixed[2], A.pseudo_inverse(c.m.y)[2]));
  EXPECT_TRUE(torch::equal(mixed[1], A.regularised_solve(A.adjoint(c.m.y), 0.5)[1]));
  const Result result = c.solve(*make_solver("pigdm", Json::object()));
  const std::vector<double> residual = c.residuals(result.image), unguided = c.unguided_residuals(100);
  for (std::size_t i = 0; i < 3; ++i) EXPECT_LT(residual[i], 0.1 * unguided[i]);
}

// Quantisation in eight levels: the vector y - A(x0) brings most values to their level.
TEST(Pigdm, FollowsAnEncodeDecodePair) {
  const TestProblem c("quantize:3", "none");
  const Tensor x = c.solve(*make_solver("pigdm", Json::object())).image;
  const std::vector<double> residual = c.residuals(x), unguided = c.unguided_residuals(100);
  for (std::size_t i = 0; i < 3; ++i) EXPECT_LT(residual[i], 0.3 * unguided[i]);
  EXPECT_LT(relative_error(x, c.truth), 0.4);
}

// EnKG -----------------------------------------------------------------------------------------------------

// Three particles of two values for each of two images, seen through A = [1 2]: with Cov = (1/3) X^T X the
// correction is s Cov A^T (A x_j - y).
TEST(Enkg, TheCorrectionIsTheKalmanUpdate) {
  const Tensor first = torch::tensor({{1.0, 0.0}, {0.0, 2.0}, {2.0, 1.0}}, torch::kDouble);
  const Tensor second = torch::tensor({{-1.0, 3.0}, {0.5, 0.5}, {1.0, -1.0}}, torch::kDouble);
  const Tensor A = torch::tensor({{1.0, 2.0}}, torch::kDouble),
               y = torch::tensor({1.0, -2.0}, torch::kDouble);
  // By hand for the first image. A x = 1, 4, 4, mean 3; errors 0, 3, 3; spreads -2, 1, 1.
  // C = [[0 0 0], [-2 1 1], [-2 1 1]], ||C|| = sqrt(12). X = x - (1, 1) = (0, -1), (-1, 1), (1, 0);
  // C X = (0, 0), (0, 3), (0, 3).
  const double s = 0.5 / std::sqrt(12.0);
  const Tensor by_hand = torch::tensor({{1.0, 0.0}, {0.0, 2 - 3 * s}, {2.0, 1 - 3 * s}}, torch::kDouble);

  const Tensor particles = torch::stack({first, second}, 1).view({6, 2, 1, 1});  // row j * 2 + i
  const Tensor outputs = particles.view({6, 2}).matmul(A.t());
  const Tensor moved = kalman_correction(particles, outputs, y.view({2, 1}), 0.5).view({3, 2, 2});
  EXPECT_LT(relative_error(moved.select(1, 0), by_hand), 1e-12);

  const Tensor spread = second - second.mean(0, true), error = second.matmul(A.t()) + 2;
  const Tensor gain = spread.t().matmul(spread).matmul(A.t()) / 3;  // Cov A^T
  const double norm = (error.matmul(spread.matmul(A.t()).t()) / 3).norm().item<double>();
  EXPECT_LT(relative_error(moved.select(1, 1), second - 0.5 / norm * error.matmul(gain.t())), 1e-12);
}

TEST(Enkg, FitsWhatABlackBoxMade) {
  for (const std::string op : {"quantize:2", "quantize:3 | sr:2"}) {
    const TestProblem c(op, "none");
    const Result result = c.solve(*make_solver("enkg", {{"steps", 40}, {"particles", 80}, {"chunk", 240}}));
    const std::vector<double> residual = c.residuals(result.image), unguided = c.unguided_residuals(40);
    for (std::size_t i = 0; i < 3; ++i) EXPECT_LT(residual[i], 0.5 * unguided[i]) << op;
    EXPECT_LT((result.image - c.truth).norm().item<double>(), 0.8 * c.truth.norm().item<double>()) << op;
  }
}

// The clean picture that a particle leads to is further from the mean than its denoised one while there is
// much noise: corrected by the latter, the ensemble overshoots.
TEST(Enkg, LookingAheadKeepsItFromOvershooting) {
  const TestProblem c;
  Json settings = {{"steps", 30}, {"particles", 80}, {"chunk", 240}};
  const std::vector<double> ahead = c.residuals(c.solve(*make_solver("enkg", settings)).image);
  settings["ode_steps"] = 1;
  const std::vector<double> denoised = c.residuals(c.solve(*make_solver("enkg", settings)).image);
  for (std::size_t i = 0; i < 3; ++i) EXPECT_LT(ahead[i], 0.5 * denoised[i]);
}

TEST(Enkg, ChunksAndLookingAheadChangeOnlyWhatTheyShould) {
  const TestProblem c;
  Json settings = {{"steps", 10}, {"particles", 12}, {"chunk", 5}, {"ode_steps", 1}};
  const Tensor small = c.solve(*make_solver("enkg", settings)).image;
  settings["chunk"] = 100;
  EXPECT_LT(relative_error(c.solve(*make_solver("enkg", settings)).image, small), 1e-5);
  settings["ode_steps"] = 3;
  EXPECT_GT(relative_error(c.solve(*make_solver("enkg", settings)).image, small), 1e-3);
  settings["answer"] = "first";
  settings["scale"] = 0;  // the prior's own ODE, from the noise that every sampler starts with
  SampleOptions unguided;
  unguided.sampler = "ddim", unguided.steps = 10;
  const Tensor expected = sample(*c.prior, unguided, Rng(1), c.images).clamp(-1, 1);
  EXPECT_LT(relative_error(c.solve(*make_solver("enkg", settings)).image, expected), 1e-5);
}

}  // namespace
}  // namespace dpg
