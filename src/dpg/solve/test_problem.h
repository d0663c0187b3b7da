// A small restoration problem under a Gaussian prior, for the tests of the methods.
#pragma once

#include <torch/torch.h>

#include <memory>
#include <string>
#include <vector>

#include "dpg/measure/catalog.h"
#include "dpg/solve/solver.h"
#include "dpg/tensor/convert.h"

namespace dpg {

inline constexpr int kTestSide = 8, kTestValues = 3 * kTestSide * kTestSide;

// Smooth pictures: neighbours are correlated.
inline std::shared_ptr<const GaussianPrior> smooth_prior(double deviation = 0.3) {
  const Tensor at = torch::arange(kTestSide, torch::kDouble);
  const Tensor line = torch::exp(-(at.unsqueeze(0) - at.unsqueeze(1)).square() / 8.0);
  const Tensor colour = 0.5 * torch::eye(3, torch::kDouble) + 0.5;
  const Tensor covariance = deviation * deviation * torch::kron(colour, torch::kron(line, line)) +
                            1e-6 * torch::eye(kTestValues, torch::kDouble);
  return std::make_shared<GaussianPrior>(torch::zeros({3, kTestSide, kTestSide}), covariance);
}

struct TestProblem {
  static constexpr int kSide = kTestSide, kValues = kTestValues;

  std::shared_ptr<const GaussianPrior> prior;
  std::vector<std::uint32_t> images = {0, 1, 2};
  Tensor truth;
  Measurement m;

  explicit TestProblem(const std::string& op = "sr:2", const std::string& noise = "gaussian:0.05",
                       std::shared_ptr<const GaussianPrior> from = smooth_prior())
      : prior(std::move(from)) {
    const Tensor root = torch::linalg_cholesky(prior->covariance()).to(torch::kFloat);
    const Tensor white = normal_noise(Rng(9), images, 0, 5, {kValues});
    truth = torch::matmul(white, root.t()).view({3, 3, kSide, kSide});
    m = measure(make_operator(op, {{3, kSide, kSide}, 4, images}), make_noise(noise), truth, 4, images);
  }

  // The problem of image i alone.
  TestProblem row(std::int64_t i) const {
    TestProblem one = *this;
    one.images = {images[static_cast<std::size_t>(i)]};
    one.truth = truth.slice(0, i, i + 1);
    one.m.y = m.y.slice(0, i, i + 1);
    if (m.A->batch() > 1) one.m.A = make_operator(m.A->spec(), {{3, kSide, kSide}, 4, one.images});
    return one;
  }

  // Each picture's y so many times, with runs of its own.
  TestProblem repeated(int times) const {
    TestProblem many = *this;
    many.m.y = m.y.repeat({times, 1, 1, 1});
    many.truth = truth.repeat({times, 1, 1, 1});
    many.images.clear();
    for (std::int64_t i = 0; i < many.m.y.size(0); ++i) many.images.push_back(static_cast<std::uint32_t>(i));
    return many;
  }

  Result solve(const Solver& solver, std::uint64_t seed = 1, const Observer& observer = {}) const {
    return solver.solve(m, *prior, Rng(seed), images, observer);
  }

  // ||y - A(x)|| of each image.
  std::vector<double> residuals(const Tensor& x) const {
    const Tensor norms = residual_norm(m.y, m.A->apply(x)).to(torch::kDouble);
    return {norms.data_ptr<double>(), norms.data_ptr<double>() + norms.numel()};
  }
  std::vector<double> unguided_residuals(int steps) const {
    SampleOptions options;
    options.steps = steps;
    return residuals(sample(*prior, options, Rng(1), images));
  }
};

// Pictures of so small a deviation that the clamp to [-1, 1] stays out of it.
inline TestProblem faint_problem(const std::string& op, const std::string& noise = "gaussian:0.05") {
  return TestProblem(op, noise, smooth_prior(0.2));
}

// A linear operator for one picture as a matrix, [m, d] double.
inline Tensor dense_matrix(const Operator& A) {
  const ImageShape in = A.input_shape();
  const std::int64_t d = in.elements();
  const Tensor basis = torch::eye(d).view({d, in.channels, in.height, in.width});
  return A.apply(basis).flatten(1).t().to(torch::kDouble);
}

inline double relative_error(const Tensor& a, const Tensor& b) {
  return ((a - b).norm() / b.norm()).item<double>();
}

}  // namespace dpg
