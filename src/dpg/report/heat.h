// Maps of numbers as pictures: how much posterior samples differ, pixel by pixel.
#pragma once

#include "dpg/image/image.h"

namespace dpg {

// One channel of numbers >= 0 (a standard deviation, say; not limited to [-1, 1]) as RGB: dark violet at 0,
// through blue and green, to light yellow at `top` and above. Equal differences look equally large, in grey
// print as well. A NaN becomes mid grey.
Image heat_map(const Image& values, double top);

// The map with its colour bar below, and the bar's ends, 0 and `top`, below that.
Image with_scale(const Image& map, double top);

}  // namespace dpg
