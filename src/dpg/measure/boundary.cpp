#include "dpg/measure/boundary.h"

#include <torch/torch.h>

#include "dpg/core/error.h"

namespace dpg {
namespace {

// The pixel that the boundary shows at place i, or -1 for a zero. One reflection is enough (check_reach).
std::int64_t source(std::int64_t i, std::int64_t length, Boundary boundary) {
  if (i >= 0 && i < length) return i;
  switch (boundary) {
    case Boundary::reflect:
      return i < 0 ? -i : 2 * (length - 1) - i;
    case Boundary::circular:
      return ((i % length) + length) % length;
    case Boundary::zero:
      break;
  }
  return -1;
}

}  // namespace

const char* name(Boundary boundary) {
  switch (boundary) {
    case Boundary::reflect:
      return "reflect";
    case Boundary::circular:
      return "circular";
    case Boundary::zero:
      break;
  }
  return "zero";
}

void check_reach(const std::string& what, std::int64_t kernel, std::int64_t length, Boundary boundary) {
  check(boundary != Boundary::reflect || kernel / 2 <= length - 1, what, " has a kernel of ", kernel,
        " pixels, which reaches further than a reflection of ", length, " pixels: make it at most ",
        2 * length - 1, " or choose boundary=circular or boundary=zero.");
}

torch::Tensor convolution_matrix(const torch::Tensor& kernel, std::int64_t length, Boundary boundary) {
  const torch::Tensor weights = kernel.to(torch::kDouble).contiguous();
  const std::int64_t origin = weights.size(0) / 2;
  torch::Tensor matrix = torch::zeros({length, length}, torch::kDouble);
  auto m = matrix.accessor<double, 2>();
  const auto k = weights.accessor<double, 1>();
  for (std::int64_t i = 0; i < length; ++i)
    for (std::int64_t j = 0; j < weights.size(0); ++j) {
      const std::int64_t from = source(i - (j - origin), length, boundary);
      if (from >= 0) m[i][from] += k[j];
    }
  return matrix;
}

}  // namespace dpg
