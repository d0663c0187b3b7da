#include "dpg/solve/late_noise.h"

#include <torch/torch.h>

#include <vector>

#include "dpg/solve/measured_guide.h"

namespace dpg {
namespace {

constexpr int kIterations = 8;

}  // namespace

int late_part_calls() {
  return 4 * kIterations;
}

// (reach^2 + (A A^T)^2) q = reach^2 v, divided by reach^2 + 1 so that no reach is too large for floats.
Tensor late_part(const LinearOperator& A, const Tensor& v, const Tensor& reach) {
  const auto seen_again = [&](const Tensor& p) { return A.apply(A.adjoint(p)); };
  const Tensor rest = 1 / (reach.square() + 1), square = reach.square() * rest;
  Tensor left = square * v, q = torch::zeros_like(v), direction = left;
  Tensor size = image_product(left, left);
  for (int k = 0; k < kIterations; ++k) {
    const Tensor product = square * direction + rest * seen_again(seen_again(direction));
    // Where it is solved already, left and direction are zero: so is the step.
    const Tensor length = size / image_product(direction, product).clamp_min(1e-30);
    q = q + length * direction;
    left = left - length * product;
    const Tensor next = image_product(left, left);
    direction = left + next / size.clamp_min(1e-30) * direction;
    size = next;
  }
  return q;
}

}  // namespace dpg
