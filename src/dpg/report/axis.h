// The axis of a plot: its range, its ticks, and where on it a value lies.
#pragma once

#include <string>
#include <vector>

namespace dpg {

enum class AxisScale { linear, log };

struct PlotAxis {
  AxisScale scale = AxisScale::linear;
  std::vector<double> ticks;        // rising; the axis reaches from the first to the last
  std::vector<std::string> labels;  // one for each

  double low() const { return ticks.front(); }
  double high() const { return ticks.back(); }
  // 0 at low() to 1 at high().
  double place(double value) const;
};

// Whether the value has a place: finite, of sane magnitude, and positive on a log axis.
bool drawable(double value, AxisScale scale);

// An axis that holds low to high (drawable, low <= high) and ends on ticks. Ticks are multiples of 1, 2 or 5
// times a power of ten, 3 to 8 of them; on a log axis 1-2-5, 1-3, or powers of ten, and the same as a linear
// axis where the range is well below a decade. A range of no width is widened.
PlotAxis make_axis(AxisScale scale, double low, double high);

}  // namespace dpg
