// The late part of a measurement, against its definition by singular values.
#include "dpg/solve/late_noise.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <algorithm>
#include <tuple>

#include "dpg/solve/test_problem.h"

namespace dpg {
namespace {

// h(a a^T) v by eigenvalues, in double.
Tensor dense_part(const Tensor& a, const Tensor& v, double reach) {
  const auto [values, vectors] = torch::linalg_eigh(a.matmul(a.t()));
  return vectors.matmul(vectors.t().matmul(v) / (1 + (values / reach).square()));
}

// h(A A^T) v of one picture, dense; with weights in the measurements where they are all alike.
Tensor by_definition(const Operator& A, const Tensor& v, double reach, const Tensor& weights = {}) {
  if (weights.defined()) {
    const Tensor roots = weights.flatten().to(torch::kDouble).sqrt();
    const Tensor part =
        dense_part(roots.unsqueeze(1) * dense_matrix(A), roots * v.flatten().to(torch::kDouble), reach);
    return (part / roots).view_as(v).to(torch::kFloat);
  }
  return dense_part(dense_matrix(A), v.flatten().to(torch::kDouble), reach).view_as(v).to(torch::kFloat);
}

// Rows with a reach of their own.
Tensor reaches(const std::vector<double>& values, const Tensor& like) {
  std::vector<std::int64_t> shape(static_cast<std::size_t>(like.dim()), 1);
  shape[0] = -1;
  return torch::tensor(values, torch::kFloat).view(shape);
}

TEST(LatePart, IsExactForMasksAndAveraging) {
  for (const std::string op : {"inpaint:box,height=4,width=4,position=centre", "sr:2", "identity"}) {
    const TestProblem c(op);
    const TestProblem one = c.row(0);
    const LinearOperator& A = *as_linear(*one.m.A);
    const Tensor v = A.apply(normal_noise(Rng(3), c.images, 0, 0, {3, kTestSide, kTestSide}));
    const std::vector<double> reach = {30, 0.2, 0.001};
    const Tensor part = late_part(A, v, reaches(reach, v));
    for (std::int64_t i = 0; i < 3; ++i)
      EXPECT_LT(relative_error(part[i], by_definition(A, v[i], reach[static_cast<std::size_t>(i)])), 1e-5)
          << op << " " << i;
  }
}

// A blur has many singular values: late steps are near to the definition, and early ones never take more than
// all.
TEST(LatePart, ComesNearForBlursAsStepsGetLate) {
  for (const std::string op : {"blur:sigma=1,size=5", "blur:sigma=1,size=5,boundary=circular",
                               "motion:size=5,intensity=0.5,boundary=zero"}) {
    const TestProblem one = TestProblem(op).row(0);
    const LinearOperator& A = *as_linear(*one.m.A);
    const Tensor v = A.apply(normal_noise(Rng(3), one.images, 0, 0, {3, kTestSide, kTestSide}));
    for (const auto& [reach, tolerance] : {std::pair{10.0, 1e-5}, {1.0, 2e-3}, {0.3, 2e-2}, {0.1, 0.2}}) {
      const Tensor part = late_part(A, v, reaches({reach}, v));
      EXPECT_LT(relative_error(part, by_definition(A, v[0], reach).unsqueeze(0)), tolerance)
          << op << " " << reach;
      EXPECT_LE(part.norm().item<double>(), v.norm().item<double>()) << op << " " << reach;
    }
  }
}

// What is not late of a picture, by the same eigenvalues: nothing of what A does not see.
TEST(EarlyPart, IsWhatIsLeft) {
  for (const auto& [op, reach, tolerance] :
       {std::tuple{"inpaint:box,height=4,width=4,position=centre", 0.001, 1e-5},
        {"inpaint:box,height=4,width=4,position=centre", 0.5, 1e-5},
        {"sr:2", 0.2, 1e-5},
        {"blur:sigma=1,size=5", 1.0, 2e-3},
        {"blur:sigma=1,size=5", 0.1, 0.2}}) {
    const TestProblem one = TestProblem(op).row(0);
    const LinearOperator& A = *as_linear(*one.m.A);
    const Tensor x = normal_noise(Rng(3), one.images, 0, 0, {3, kTestSide, kTestSide});
    const Tensor weights = 0.5 + normal_noise(Rng(4), one.images, 0, 0, A.apply(x).sizes().slice(1)).abs();
    for (const bool weighted : {false, true}) {
      const Tensor roots =
          (weighted ? weights : torch::ones_like(weights)).flatten().to(torch::kDouble).sqrt();
      const Tensor a = roots.unsqueeze(1) * dense_matrix(A);
      const Tensor whole = x.flatten().to(torch::kDouble);
      const Tensor expected = (whole - dense_part(a.t(), whole, reach)).view_as(x).to(torch::kFloat);
      const Tensor part = early_part(A, x, reaches({reach}, x), weighted ? weights : Tensor());
      EXPECT_LT(relative_error(part, expected), weighted ? std::max(tolerance, 0.1) : tolerance)
          << op << " " << reach << " " << weighted;
      EXPECT_LE(part.norm().item<double>(), x.norm().item<double>()) << op;
    }
  }
}

// Where noise differs from entry to entry, so does what is late.
TEST(LatePart, GoesByEachEntrysNoise) {
  for (const std::string op :
       {"inpaint:box,height=4,width=4,position=centre", "sr:2", "blur:sigma=1,size=5"}) {
    const TestProblem one = TestProblem(op).row(0);
    const LinearOperator& A = *as_linear(*one.m.A);
    const Tensor v = A.apply(normal_noise(Rng(3), one.images, 0, 0, {3, kTestSide, kTestSide}));
    const Tensor weights = 0.5 + normal_noise(Rng(4), one.images, 0, 0, v.sizes().slice(1)).abs();
    const Tensor part = late_part(A, v, reaches({0.5}, v), weights);
    EXPECT_LT(relative_error(part, by_definition(A, v[0], 0.5, weights[0]).unsqueeze(0)), 0.02) << op;
    EXPECT_GT(relative_error(late_part(A, v, reaches({0.5}, v)), part), 0.1) << op;
  }
}

TEST(LatePart, OfNothingIsNothing) {
  const TestProblem one = TestProblem("sr:2").row(0);
  const Tensor zero = torch::zeros_like(one.m.y);
  EXPECT_TRUE(torch::equal(late_part(*as_linear(*one.m.A), zero, reaches({0.5}, zero)), zero));
}

}  // namespace
}  // namespace dpg
