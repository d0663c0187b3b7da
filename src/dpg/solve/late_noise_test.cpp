// The late part of a measurement, against its definition by singular values.
#include "dpg/solve/late_noise.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include "dpg/solve/test_problem.h"

namespace dpg {
namespace {

// h(A A^T) v of one picture, dense.
Tensor by_definition(const Operator& A, const Tensor& v, double reach) {
  const Tensor a = dense_matrix(A);
  const auto [values, vectors] = torch::linalg_eigh(a.matmul(a.t()));
  const Tensor h = 1 / (1 + (values / reach).square());
  const Tensor flat = v.flatten().to(torch::kDouble);
  return vectors.matmul(h * vectors.t().matmul(flat)).view_as(v).to(torch::kFloat);
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

TEST(LatePart, OfNothingIsNothing) {
  const TestProblem one = TestProblem("sr:2").row(0);
  const Tensor zero = torch::zeros_like(one.m.y);
  EXPECT_TRUE(torch::equal(late_part(*as_linear(*one.m.A), zero, reaches({0.5}, zero)), zero));
}

}  // namespace
}  // namespace dpg
