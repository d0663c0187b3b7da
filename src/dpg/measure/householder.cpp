#include "dpg/measure/householder.h"

#include <torch/torch.h>

namespace dpg {

Householder::Householder(const std::vector<double>& direction) {
  const torch::Tensor q = torch::tensor(direction, torch::kDouble);
  torch::Tensor w = -q / q.norm();
  w[0] += 1;
  const double norm = w.norm().item<double>();
  if (norm > 1e-12) w = w * (std::sqrt(2.0) / norm);
  w_ = w.to(torch::kFloat);
}

torch::Tensor Householder::apply(const torch::Tensor& x, std::int64_t dim) const {
  std::vector<std::int64_t> along(static_cast<std::size_t>(x.dim()), 1);
  along[static_cast<std::size_t>(dim < 0 ? dim + x.dim() : dim)] = w_.size(0);
  const torch::Tensor w = w_.view(along);
  return x - (x * w).sum(dim, /*keepdim=*/true) * w;
}

Householder Householder::to(torch::Device device) const {
  Householder copy = *this;
  copy.w_ = w_.to(device);
  return copy;
}

}  // namespace dpg
