// What was seen while a picture was restored.
#pragma once

#include <limits>
#include <string>
#include <vector>

#include "dpg/image/image.h"

namespace dpg {

struct TraceStep {
  int t = 0;
  double residual = 0.0;  // ||y - A(x0)||, x0 being the estimate of the clean picture
  double strength =
      std::numeric_limits<double>::quiet_NaN();  // of the guidance; NaN where the method has none
};

struct TraceFrame {
  int t = 0;
  Image picture;  // the estimate of the clean picture
};

struct Trace {
  std::string title, method, op, noise;
  double noise_floor = std::numeric_limits<double>::quiet_NaN();  // sigma sqrt(m); NaN where it is not known
  std::vector<TraceStep> steps = {};                              // in the order in which they were taken
  std::vector<TraceFrame> frames = {};
};

// Everything but the pictures, one step a line; of the frames only their time steps. Numbers are written so
// that they read back exactly; those that are not finite are null.
std::string trace_json(const Trace& trace);

}  // namespace dpg
