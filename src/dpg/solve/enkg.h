// Ensemble Kalman Diffusion Guidance (Zheng et al., Ensemble Kalman diffusion guidance: a derivative-free
// method for inverse problems, 2024): Algorithm 1. An ensemble of particles follows the probability-flow ODE;
// between steps it is moved by its own covariance with its predicted measurements. It needs no derivative of
// A, nor of the network. docs/methods/enkg.md goes from equation to code.
#pragma once

#include "dpg/solve/solver.h"

namespace dpg {

struct EnkgOptions {
  int steps = 30;
  std::string spacing = "even";
  int particles = 64;  // J, for each image; the paper takes 1024 and more
  double scale = 2.0;  // the correction's matrix of J x J coefficients has this Frobenius norm
  int updates = 1;     // corrections at each step; the paper takes 2 for pictures
  int ode_steps = 8;   // network calls, at most, that look ahead to a particle's clean picture; paper: 20
  double skip = 0.05;  // the part of the steps without correction, at each end
  std::string answer = "mean";  // of the particles at the end; or first: one of them
  int chunk = 16;               // rows in one network call; memory grows with this and not with the ensemble
};
void validate(const EnkgOptions& options);

// The correction of one ensemble for each image. Row j * N + i of `particles` and `outputs` is particle j of
// image i; outputs are A of the particles' clean pictures; y is [N, ...]. Per image
//   x_j <- x_j - s sum_k C_jk (x_k - mean x),   C_jk = <A_j - y, A_k - mean A> / J,   s = scale / ||C||_F.
// For a linear A of the particles themselves the sum is Cov A^T (A x_j - y).
Tensor kalman_correction(const Tensor& particles, const Tensor& outputs, const Tensor& y, double scale);

class Enkg : public Solver {
 public:
  static constexpr const char* kName = "enkg";
  explicit Enkg(EnkgOptions options);
  std::string name() const override { return kName; }
  void check_problem(const Measurement&) const override {}  // it serves every operator
  Result solve(const Measurement& measurement, const Prior& prior, const Rng& rng,
               std::span<const std::uint32_t> images, const Observer& observer = {}) const override;

 private:
  EnkgOptions options_;
};

}  // namespace dpg
