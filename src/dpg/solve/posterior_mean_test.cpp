// The mean of x0 given the data, against a dense solve under a Gaussian prior.
#include "dpg/solve/posterior_mean.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cmath>

#include "dpg/solve/test_problem.h"

namespace dpg {
namespace {

struct Case {
  TestProblem problem;
  int t = 400;
  double abar = problem.prior->schedule().alpha_bar()[static_cast<std::size_t>(t)];
  Denoised denoised = problem.prior->denoise(
      normal_noise(Rng(2), problem.images, 0, 0, {3, kTestSide, kTestSide}), t, Track::gradient);
  Tensor prediction = problem.m.A->apply(denoised.x0);
  Tensor residual = problem.m.y - prediction;

  explicit Case(const std::string& op) : problem(op) {}

  // variance: of each entry.
  Tensor move(int passes, const Tensor& variance) const {
    const Tensor mean = variance.mean({1, 2, 3}, true), weights = mean / variance;
    const Tensor radius = torch::full({3}, 1e-3);
    const auto adjoint = [&](const Tensor& left) {
      return as_differentiable(*problem.m.A)->vjp(denoised.x0, left);
    };
    return posterior_mean_move(
        {*problem.m.A, adjoint, denoised, prediction, residual, mean, weights, radius, abar}, passes);
  }

  // A's derivative at the mean of image i, [m, d] double.
  Tensor derivative(std::int64_t i) const {
    const std::int64_t m = residual[0].numel();
    std::vector<std::int64_t> shape = problem.m.A->output_shape();
    shape.insert(shape.begin(), m);
    const TestProblem one = problem.row(i);
    return as_differentiable(*one.m.A)
        ->vjp(denoised.x0[i].unsqueeze(0).repeat({m, 1, 1, 1}), torch::eye(m).view(shape))
        .flatten(1)
        .to(torch::kDouble);
  }

  // The same by dense matrices: (mean given y - mean) / c.
  Tensor dense_move(std::int64_t i, const Tensor& variance) const {
    const Tensor prior = problem.prior->covariance(), eye = torch::eye(kTestValues, torch::kDouble);
    const Tensor C = torch::linalg_inv(torch::linalg_inv(prior) + abar / (1 - abar) * eye), A = derivative(i);
    const Tensor S = A.matmul(C).matmul(A.t()) + torch::diag(variance.flatten().to(torch::kDouble));
    const Tensor u = torch::linalg_solve(S, residual[i].flatten().to(torch::kDouble).unsqueeze(1));
    return C.matmul(A.t()).matmul(u).flatten() / ((1 - abar) / std::sqrt(abar));
  }
};

TEST(PosteriorMean, ComesToTheDenseSolutionPassByPass) {
  for (const std::string op : {"sr:2", "blur:sigma=1,size=5", "inpaint:random,removed=0.5", "hdr"}) {
    const Case c(op);
    const Tensor variance = torch::full_like(c.residual, 0.0025f);
    double last = 1;
    for (const int passes : {1, 3, 10, 40}) {
      double error = 0;
      const Tensor move = c.move(passes, variance);
      for (int i = 0; i < 3; ++i)
        error = std::max(error,
                         relative_error(move[i].flatten().to(torch::kDouble), c.dense_move(i, variance[i])));
      EXPECT_LT(error, last) << op << ", " << passes << " passes";
      last = error;
    }
    EXPECT_LT(last, 0.02) << op;
  }
}

// Noise that differs from entry to entry weighs the data.
TEST(PosteriorMean, TakesAVarianceForEachEntry) {
  const Case c("blur:sigma=1,size=5");
  const Tensor variance = 0.001 + 0.05 * normal_noise(Rng(7), c.problem.images, 0, 0, {3, 8, 8}).square();
  const Tensor same = variance.mean({1, 2, 3}, true).expand_as(variance);
  const auto error = [&](int passes, const Tensor& v) {
    const Tensor move = c.move(passes, v);
    double largest = 0;
    for (int i = 0; i < 3; ++i)
      largest =
          std::max(largest, relative_error(move[i].flatten().to(torch::kDouble), c.dense_move(i, v[i])));
    return largest;
  };
  EXPECT_LT(error(60, variance), 0.02);
  EXPECT_LT(error(6, variance), 0.25);
  EXPECT_GT(relative_error(c.move(60, same), c.move(60, variance)), 0.05);
}

TEST(PosteriorMean, EachImageIsItsOwn) {
  const Case c("inpaint:random,removed=0.5");
  const Tensor variance = torch::full_like(c.residual, 0.0025f);
  const Tensor all = c.move(3, variance);
  // Scaling one image's data scales its move and no other's: the equation is linear in e.
  Case scaled = c;
  scaled.residual = c.residual * torch::tensor({1.0f, 5.0f, 1.0f}).view({3, 1, 1, 1});
  const Tensor changed = scaled.move(3, variance);
  EXPECT_LT(relative_error(changed[0], all[0]), 1e-6);
  EXPECT_LT(relative_error(changed[1], 5 * all[1]), 1e-4);
  EXPECT_LT(relative_error(changed[2], all[2]), 1e-6);
}

}  // namespace
}  // namespace dpg
