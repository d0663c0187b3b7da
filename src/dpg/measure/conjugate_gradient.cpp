#include "dpg/measure/conjugate_gradient.h"

#include <torch/torch.h>

#include <cmath>

#include "dpg/core/error.h"

namespace dpg {
namespace {

// One inner product per image, [N, 1, ...] so that it broadcasts. Summed in float64: it steers the iteration.
Tensor image_dot(const Tensor& a, const Tensor& b) {
  std::vector<std::int64_t> shape(static_cast<std::size_t>(a.dim()), 1);
  shape[0] = a.size(0);
  return (a * b).flatten(1).sum(1, /*keepdim=*/false, torch::kDouble).view(shape);
}

// a / b, zero where the image is done (or b is zero), in float32 again.
Tensor ratio(const Tensor& a, const Tensor& b, const Tensor& active) {
  return torch::where(active & (b > 0), a / b, torch::zeros({}, a.options())).to(torch::kFloat);
}

}  // namespace

void ConjugateGradientOptions::validate() const {
  check(tolerance > 0 && tolerance < 1, "Conjugate gradients have tolerance = ", tolerance,
        ": it must be between 0 and 1.");
  check(max_iterations >= 1, "Conjugate gradients have max_iterations = ", max_iterations,
        ": it must be at least 1.");
}

ConjugateGradientResult conjugate_gradient(const std::function<Tensor(const Tensor&)>& multiply,
                                           const Tensor& b, const ConjugateGradientOptions& options) {
  options.validate();
  const Tensor b_squared = image_dot(b, b);
  const Tensor goal = b_squared * (options.tolerance * options.tolerance);
  Tensor x = torch::zeros_like(b), r = b, p = b, r_squared = b_squared;
  Tensor active = r_squared > goal;
  int iterations = 0;
  for (; iterations < options.max_iterations && active.any().item<bool>(); ++iterations) {
    const Tensor mp = multiply(p);
    const Tensor step = ratio(r_squared, image_dot(p, mp), active);
    x = x + step * p;
    r = r - step * mp;
    const Tensor next = image_dot(r, r);
    p = r + ratio(next, r_squared, active) * p;
    r_squared = torch::where(active, next, r_squared);
    active = active & (r_squared > goal);
  }
  ConjugateGradientResult result;
  result.x = x;
  const Tensor relative = torch::sqrt(r_squared / b_squared).flatten();
  result.residual = torch::where(b_squared.flatten() > 0, relative, torch::zeros_like(relative));
  result.iterations = iterations;
  result.converged = !active.any().item<bool>() && torch::isfinite(r_squared).all().item<bool>();
  return result;
}

Tensor regularised_solve_by_cg(const LinearOperator& a, const Tensor& v, double lambda) {
  check(lambda > 0, "regularised_solve of \"", a.spec(), "\" got lambda = ", lambda,
        ": it must be positive.");
  // Divided by lambda + 1 the system keeps its size for any lambda (the largest singular value is about one).
  const double scale = 1 / (lambda + 1);
  const auto multiply = [&](const Tensor& p) { return (lambda * p + a.adjoint(a.apply(p))) * scale; };
  // About 7 sqrt(1 / lambda) iterations are needed: 2000 serve lambda down to about 1e-5.
  const ConjugateGradientResult result =
      conjugate_gradient(multiply, v * scale, {.tolerance = 1e-6, .max_iterations = 2000});
  check(result.converged, "Conjugate gradients for \"", a.spec(), "\" with lambda = ", lambda,
        " stopped at a relative residual of ", result.residual.max().item<double>(), " after ",
        result.iterations,
        " iterations: choose a larger lambda, or boundary=circular, which is solved exactly.");
  return result.x;
}

Tensor pseudo_inverse_by_cg(const LinearOperator& a, const Tensor& y) {
  const auto multiply = [&](const Tensor& p) { return a.adjoint(a.apply(p)); };
  return conjugate_gradient(multiply, a.adjoint(y), {.tolerance = 1e-5, .max_iterations = 500}).x;
}

}  // namespace dpg
