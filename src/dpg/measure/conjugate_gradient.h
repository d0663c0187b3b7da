// Conjugate gradients for a batch of independent symmetric positive (semi)definite systems M x = b; each
// image stops by itself, so that a batch of N gives what N single solves give.
#pragma once

#include <torch/types.h>

#include <functional>

#include "dpg/measure/operator.h"

namespace dpg {

struct ConjugateGradientOptions {
  double tolerance = 1e-6;   // an image is done when ||b - M x|| <= tolerance * ||b||
  int max_iterations = 500;  // at most, for every image

  void validate() const;
};

struct ConjugateGradientResult {
  Tensor x;                // like b
  Tensor residual;         // [N], ||b - M x|| / ||b|| as the recurrence tracks it (0 where b is 0)
  int iterations = 0;      // of the slowest image
  bool converged = false;  // every image reached the tolerance
};

// `multiply` maps [N, ...] to M x of the same shape, row by row.
ConjugateGradientResult conjugate_gradient(const std::function<Tensor(const Tensor&)>& multiply,
                                           const Tensor& b, const ConjugateGradientOptions& options = {});

// (lambda I + A^T A)^-1 v for any linear operator, to a relative residual of 1e-6. Throws when 500 iterations
// did not reach it: lambda is then too small for float32.
Tensor regularised_solve_by_cg(const LinearOperator& a, const Tensor& v, double lambda);

// The least-squares picture of least norm, A^+ y, by conjugate gradients on A^T A x = A^T y from zero.
// Directions that A damps most converge last; it stops at a relative residual of 1e-4 or after 200
// iterations, which leaves the directions that float32 cannot recover at zero.
Tensor pseudo_inverse_by_cg(const LinearOperator& a, const Tensor& y);

}  // namespace dpg
