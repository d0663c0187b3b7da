// Quantisation: each value is rounded to the nearest of 2^bits equally spaced levels from -1 to 1. It has no
// useful derivative: a black box. "quantize:bits=3"
#pragma once

#include <memory>
#include <string>

#include "dpg/measure/operator.h"

namespace dpg {

struct QuantizeOptions {
  std::int64_t bits = 3;  // 1 to 16

  void validate() const;
  std::string spec() const;
};
std::shared_ptr<const Operator> make_quantize(const ImageShape& shape, const QuantizeOptions& options);

}  // namespace dpg
