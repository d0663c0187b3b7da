// The reflection that takes the first unit vector to the direction of a given vector: an orthogonal basis
// whose first member is that direction, applied in one pass. It is symmetric, hence its own inverse.
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <vector>

namespace dpg {

class Householder {
 public:
  explicit Householder(const std::vector<double>& direction);  // not zero

  // Q x along dimension `dim`, whose size is the direction's.
  torch::Tensor apply(const torch::Tensor& x, std::int64_t dim) const;
  Householder to(torch::Device device) const;

 private:
  torch::Tensor w_;  // Q = I - w w^T, ||w||^2 = 2, or w = 0 where the direction is the first unit vector
};

}  // namespace dpg
