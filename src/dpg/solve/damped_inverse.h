// What y says of x where the operator loses little.
#pragma once

#include "dpg/measure/operator.h"

namespace dpg {

// (A^T A + damping)^-1 A^T e; without damping A^+ e, which divides noise in e by A's smallest singular
// values.
inline Tensor damped_inverse(const LinearOperator& A, const Tensor& e, double damping) {
  return damping > 0 ? A.regularised_solve(A.adjoint(e), damping) : A.pseudo_inverse(e);
}

}  // namespace dpg
