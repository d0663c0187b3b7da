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

// (lambda I + A^T A)^-1 v for any linear operator, until the recurrence tracks a relative residual of 1e-6.
// In float32 the true residual drifts from the tracked one as lambda falls (4e-4 at lambda 1e-4), the answer
// hardly: it then differs from a float64 solve by 3e-6. Throws when 2000 iterations do not suffice; operators
// of norm one need about 7 sqrt(1 / lambda).
Tensor regularised_solve_by_cg(const LinearOperator& a, const Tensor& v, double lambda);

// The least-squares picture of least norm, A^+ y, by conjugate gradients on A^T A x = A^T y from zero. It
// stops at a relative residual of 1e-5 or after 500 iterations, and does not throw in the second case: what
// is missing then are the directions that A damps most, which converge last. The misfit ||y - A x|| is larger
// than that residual.
Tensor pseudo_inverse_by_cg(const LinearOperator& a, const Tensor& y);

}  // namespace dpg
