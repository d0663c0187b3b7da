// The mean of x0 given x_t and the data, by a few reverse passes of the network.
#pragma once

#include <functional>

#include "dpg/measure/operator.h"
#include "dpg/prior/prior.h"

namespace dpg {

struct PosteriorMeanProblem {
  const Operator& A;
  std::function<Tensor(const Tensor& left)> adjoint;  // A^T left, or as near as one can come to it
  const Denoised& denoised;                           // mu and its pull_back, at x_t
  const Tensor& prediction;                           // A(mu)
  const Tensor& residual;                             // e = y - A(mu)
  const Tensor& variance;                             // of the noise, its mean, [N, 1, ...]
  const Tensor& weights;  // of the entries of e: mean variance over variance; undefined: all one
  const Tensor& radius;   // [N], how far a non-linear A is followed to find its slope
  double alpha_bar = 0;   // of x_t
};

// w with mu + c w the mean of x0 given y, c = (1 - abar) / sqrt(abar). c J is the covariance of x0 given x_t;
// with A (or its derivative at mu) and V the noise's variance, `variance / weights`,
//   w = J^T A^T u,   (A c J A^T + V) u = e,
// solved by `passes` steps of generalised conjugate residuals: each is one reverse pass, one A^T and one A,
// and makes what is left of e smaller, measured by V^-1: then noise is the same in every direction. Conjugate
// gradients would need J to be symmetric and positive, and that of a network is so only nearly: they fall
// apart after some four passes. Nor do conjugate residuals need the true A^T: whatever `adjoint` answers, the
// data are fitted as well as its directions allow.
Tensor posterior_mean_move(const PosteriorMeanProblem& problem, int passes);

}  // namespace dpg
