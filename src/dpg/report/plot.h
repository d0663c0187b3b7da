// Line plots as SVG.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "dpg/report/axis.h"

namespace dpg {

// A line through (x, y). Points that cannot be drawn (not finite; not positive on a log axis) break it; a
// point alone between two breaks is drawn as a dot.
struct PlotSeries {
  std::string name;  // in the legend; a series without a name is not listed
  std::vector<double> x, y;
  // A band around the line, both empty or as long as x: the spread over several runs, say. On a log axis it
  // is cut at the bottom where `lower` is not positive.
  std::vector<double> lower = {}, upper = {};
};

struct PlotReference {
  double y = 0.0;
  std::string label;
};

struct Plot {
  std::string title;  // for those who cannot see the plot; it is not drawn
  std::string x_label, y_label;
  AxisScale y_scale = AxisScale::linear;
  bool x_falls = false;  // large x at the left: time steps, which a restoration counts down
  std::optional<PlotReference> reference = {};  // a dashed horizontal line; left out where it cannot be drawn
  std::vector<PlotSeries> series = {};
  int width = 720, height = 380;
};

// For use inside an HTML page: takes its text colour from there, and follows a dark colour scheme.
std::string plot_svg(const Plot& plot);
// The same as a file of its own, with a background.
std::string plot_svg_file(const Plot& plot);

}  // namespace dpg
