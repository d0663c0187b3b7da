// Distances between two sets of pictures, each given by its features (features.h): one row per picture.
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <string>
#include <vector>

namespace dpg {

using torch::Tensor;

struct FrechetResult {
  double distance = 0;
  // One of the sets has at most as many pictures as there are features. The distance is finite and exact for
  // these pictures, but as an estimate of the distance of their distributions it is far too large.
  bool low_rank = false;
  std::string note;  // says so for a reader; empty otherwise
};

// The Frechet distance of the normal distributions with the sets' means m and covariances S (n - 1 in the
// denominator):
//   |m_a - m_b|^2 + tr S_a + tr S_b - 2 tr (S_a S_b)^(1/2)
// a: [n, D], b: [m, D], floating, on any device; computed in float64 on the CPU. Two pictures or more each.
//
// No square root of a matrix product is taken. With F^T F = S the eigenvalues of S_a S_b that are not 0 are
// the squared singular values of F_a F_b^T, so that tr (S_a S_b)^(1/2) is their sum. F is the centred
// features over sqrt(n - 1) where there are at most D pictures (nothing of size D x D is then formed), and
// diag(sqrt(l)) V^T from S = V diag(l) V^T where there are more. Singular values are not negative: no NaN,
// and no small number to be added to a diagonal.
FrechetResult frechet_distance(const Tensor& a, const Tensor& b);

// The distance without each of at most 40 parts of the pictures, for jackknife_error: row i of one set and
// row i of the other are left out together, so that pictures and their truths may belong together. Sets of as
// many pictures, kFewestToLeaveOut or more; the parts are single pictures, 20 runs of neighbours where there
// are more than 40, 10 where there are more than 1000.
std::vector<double> frechet_leaving_out(const Tensor& a, const Tensor& b);
inline constexpr std::int64_t kFewestToLeaveOut = 6;

// The estimate of MMD^2 without bias under the kernel (x . y / D + 1)^3 (Binkowski, Sutherland, Arbel,
// Gretton: "Demystifying MMD GANs", 2018): what KID is. It may come out negative for sets that are alike.
struct KernelDistance {
  double value = 0;
  // Of `value`, over the choice of the pictures (jackknife); on the large side for sets that are alike. NaN
  // where a set has only two pictures.
  double standard_error = 0;
};

// a: [n, D], b: [m, D], two rows or more each. With s = min(1000, n, m) pictures of each set at a time: all
// of them where n = m = s, otherwise the mean over 100 random choices. Numbers of one seed are the same
// everywhere.
KernelDistance kernel_distance(const Tensor& a, const Tensor& b, std::uint64_t seed = 0);

}  // namespace dpg
