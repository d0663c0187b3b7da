// Overexposure: the picture is brightened and darkened beyond what the range holds, y = clamp(scale x, -1,
// 1). Recovering what was cut off is high-dynamic-range recovery. "hdr:scale=2"
#pragma once

#include <memory>
#include <string>

#include "dpg/measure/operator.h"

namespace dpg {

struct HdrOptions {
  double scale = 2;  // contrast about mid-grey, above 0; 1 only clips

  void validate() const;
  std::string spec() const;
};
std::shared_ptr<const DifferentiableOperator> make_hdr(const ImageShape& shape, const HdrOptions& options);

}  // namespace dpg
