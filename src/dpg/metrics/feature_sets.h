// What distances between sets ask of the features they are given.
#pragma once

#include <torch/types.h>

#include <string>
#include <utility>

#include "dpg/core/error.h"
#include "dpg/tensor/convert.h"

namespace dpg::metrics {

// Both sets as float64 on the CPU.
inline std::pair<torch::Tensor, torch::Tensor> checked_feature_sets(const std::string& metric,
                                                                    const torch::Tensor& a,
                                                                    const torch::Tensor& b) {
  check(a.dim() == 2 && b.dim() == 2 && a.size(1) == b.size(1) && a.size(1) > 0, metric,
        " compares features [pictures, D] of one network, not ", a.sizes(), " and ", b.sizes());
  check(a.is_floating_point() && b.is_floating_point(), metric, " takes floating-point features, not ",
        torch::toString(a.scalar_type()), " and ", torch::toString(b.scalar_type()));
  check(a.size(0) >= 2 && b.size(0) >= 2, metric, " needs at least 2 pictures in each set, not ", a.size(0),
        " and ", b.size(0), "; give more");
  check_finite(a, "the first set of features");
  check_finite(b, "the second set of features");
  return {a.detach().to(torch::kCPU, torch::kDouble).contiguous(),
          b.detach().to(torch::kCPU, torch::kDouble).contiguous()};
}

}  // namespace dpg::metrics
