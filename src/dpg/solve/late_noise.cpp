#include "dpg/solve/late_noise.h"

#include <torch/torch.h>

#include <vector>

#include "dpg/solve/measured_guide.h"

namespace dpg {
namespace {

constexpr int kIterations = 8;

// reach^2 and 1, both divided by reach^2 + 1 so that no reach is too large for floats.
struct Shares {
  explicit Shares(const Tensor& reach) : rest(1 / (reach.square() + 1)), square(reach.square() * rest) {}
  Tensor rest, square;
};

// (reach^2 + M^2) q = right, M = seen_again; both sides divided as above.
template <class SeenAgain>
Tensor solved(const SeenAgain& seen_again, const Shares& shares, const Tensor& right) {
  Tensor left = right, q = torch::zeros_like(right), direction = left;
  Tensor size = image_product(left, left);
  for (int k = 0; k < kIterations; ++k) {
    const Tensor product = shares.square * direction + shares.rest * seen_again(seen_again(direction));
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

template <class SeenAgain>
Tensor late_part_of(const SeenAgain& seen_again, const Tensor& v, const Tensor& reach) {
  const Shares shares(reach);
  return solved(seen_again, shares, shares.square * v);
}

}  // namespace

int late_part_calls() {
  return 4 * kIterations;
}

int early_part_calls() {
  return 4 * (kIterations + 1);
}

Tensor late_part(const LinearOperator& A, const Tensor& v, const Tensor& reach, const Tensor& weights) {
  if (weights.defined()) {
    const Tensor roots = weights.sqrt();
    return late_part_of([&](const Tensor& p) { return roots * A.apply(A.adjoint(roots * p)); }, roots * v,
                        reach) /
           roots;
  }
  return late_part_of([&](const Tensor& p) { return A.apply(A.adjoint(p)); }, v, reach);
}

Tensor early_part(const LinearOperator& A, const Tensor& x, const Tensor& reach, const Tensor& weights) {
  const auto seen_again = [&](const Tensor& p) {
    const Tensor seen = A.apply(p);
    return A.adjoint(weights.defined() ? weights * seen : seen);
  };
  const Shares shares(reach);
  return solved(seen_again, shares, shares.rest * seen_again(seen_again(x)));
}

}  // namespace dpg
