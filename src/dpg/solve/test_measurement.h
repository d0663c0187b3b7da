// A small problem for tests of solvers: pictures drawn from a Gaussian prior and measured, so that the
// posterior is known.
#pragma once

#include <torch/torch.h>

#include <memory>
#include <string>
#include <vector>

#include "dpg/measure/catalog.h"
#include "dpg/prior/prior.h"
#include "dpg/solve/solver.h"
#include "dpg/tensor/convert.h"

namespace dpg {

struct TestMeasurement {
  static constexpr int kSide = 8, kValues = 3 * kSide * kSide;

  std::shared_ptr<const GaussianPrior> prior;
  std::vector<std::uint32_t> images = {0, 1, 2};
  Tensor truth;
  Measurement m;

  // Smooth pictures: neighbours are correlated. At a deviation of 0.2 the clamp to [-1, 1] stays out of it.
  static std::shared_ptr<const GaussianPrior> smooth_prior(double deviation = 0.2) {
    const Tensor at = torch::arange(kSide, torch::kDouble);
    const Tensor line = torch::exp(-(at.unsqueeze(0) - at.unsqueeze(1)).square() / 8.0);
    const Tensor colour = 0.5 * torch::eye(3, torch::kDouble) + 0.5;
    const Tensor covariance = deviation * deviation * torch::kron(colour, torch::kron(line, line)) +
                              1e-6 * torch::eye(kValues, torch::kDouble);
    return std::make_shared<GaussianPrior>(torch::zeros({3, kSide, kSide}), covariance);
  }

  explicit TestMeasurement(const std::string& op, const std::string& noise = "gaussian:0.05",
                           std::shared_ptr<const GaussianPrior> from = smooth_prior())
      : prior(std::move(from)) {
    const Tensor root = torch::linalg_cholesky(prior->covariance()).to(torch::kFloat);
    const Tensor white = normal_noise(Rng(9), images, 0, 5, {kValues});
    truth = torch::matmul(white, root.t()).view({3, 3, kSide, kSide});
    m = measure(make_operator(op, {{3, kSide, kSide}, 4, images}), make_noise(noise), truth, 4, images);
  }

  // Image i alone.
  TestMeasurement row(std::int64_t i) const {
    TestMeasurement one = *this;
    one.images = {images[static_cast<std::size_t>(i)]};
    one.truth = truth.slice(0, i, i + 1);
    one.m.y = m.y.slice(0, i, i + 1);
    if (m.A->batch() > 1) one.m.A = make_operator(m.A->spec(), {{3, kSide, kSide}, 4, one.images});
    return one;
  }
  Result solve(const Solver& solver, std::uint64_t seed = 1, const Observer& observer = {}) const {
    return solver.solve(m, *prior, Rng(seed), images, observer);
  }
  // A as a matrix [measurements, values] in double, for operators without a state per image.
  static Tensor matrix_of(const Operator& A) {
    const Tensor basis = torch::eye(kValues).view({kValues, 3, kSide, kSide});
    return A.apply(basis).flatten(1).t().to(torch::kDouble);
  }
};

inline double relative_error(const Tensor& a, const Tensor& b) {
  return ((a - b).norm() / b.norm()).item<double>();
}

}  // namespace dpg
