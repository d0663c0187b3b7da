// A measurement as something to look at.
#pragma once

#include <string>

#include "dpg/measure/operator.h"

namespace dpg {

struct View {
  Tensor pictures;   // [N, 1 or 3, H, W] in [-1, 1]
  std::string note;  // what was done to the values so that they can be seen; empty when nothing was
};

// Pictures whose values are mostly on the [-1, 1] range are shown as they are, clamped when written. A
// spectrum's amplitudes are shown on a logarithmic scale, anything else is stretched to the range. What is no
// picture is laid out as one grey rectangle for each image.
View view_of(const Tensor& y);

}  // namespace dpg
