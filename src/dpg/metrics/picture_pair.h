// What every metric asks of its two pictures, and the form in which it answers.
#pragma once

#include <torch/types.h>

#include <string>
#include <vector>

#include "dpg/core/error.h"

namespace dpg::metrics {

inline void check_pictures(const std::string& metric, const torch::Tensor& a, const torch::Tensor& b) {
  check(a.dim() == 4 && b.dim() == 4, metric, " compares batches [N, C, H, W], not ", a.sizes(), " and ",
        b.sizes());
  check(a.sizes() == b.sizes(), metric, " compares pictures of equal number and size, not ", a.sizes(),
        " and ", b.sizes(), "; resize or repeat one of them");
  check(a.is_floating_point() && b.is_floating_point(), metric,
        " takes floating-point pictures in [-1, 1], not ", torch::toString(a.scalar_type()), " and ",
        torch::toString(b.scalar_type()));
  check(a.size(1) > 0 && a.size(2) > 0 && a.size(3) > 0, metric,
        " cannot compare pictures without pixels: ", a.sizes());
}

inline void check_smallest_side(const std::string& metric, const torch::Tensor& pictures, std::int64_t side) {
  check(pictures.size(2) >= side && pictures.size(3) >= side, metric, " needs pictures of at least ", side,
        "x", side, " pixels, not ", pictures.size(3), "x", pictures.size(2), "; give larger ones");
}

// One number for each picture, from a tensor [N] on any device.
inline std::vector<double> numbers(const torch::Tensor& values) {
  const torch::Tensor here = values.detach().to(torch::kCPU, torch::kDouble).contiguous();
  return {here.data_ptr<double>(), here.data_ptr<double>() + here.numel()};
}

}  // namespace dpg::metrics
