// Motion blur by random camera shake: a smooth random trajectory of the camera during the exposure, drawn as
// a kernel. One trajectory per image. "motion:size=61,intensity=0.5,boundary=reflect"
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "dpg/core/rng.h"
#include "dpg/measure/boundary.h"
#include "dpg/measure/operator.h"

namespace dpg {

// Where the picture stood on the sensor at one moment, in pixels; equal times pass between points.
struct TrajectoryPoint {
  double x = 0, y = 0;
};

// A trajectory inside a box of extent x extent pixels around its mean point, which is (0, 0); neighbouring
// points are at most a quarter of a pixel apart. intensity 0: a straight line; 1: strongly bent and jerky.
// Drawn from stream (image, kBeforeFirstStep, kOperatorChoices).
std::vector<TrajectoryPoint> random_trajectory(double extent, double intensity, const Rng& rng,
                                               std::uint32_t image);

// The trajectory drawn (bilinearly) into [size, size], float64, sum one.
Tensor draw_trajectory(std::span<const TrajectoryPoint> trajectory, std::int64_t size);

struct MotionBlurOptions {
  std::optional<std::int64_t> size = {};  // odd; unset: 61 at a shorter side of 256, in proportion otherwise
  double intensity = 0.5;                 // in [0, 1]
  Boundary boundary = Boundary::reflect;

  void validate(const ImageShape& shape) const;
  MotionBlurOptions resolved(const ImageShape& shape) const;  // with every field set
  std::string spec() const;
};
std::shared_ptr<const LinearOperator> make_motion_blur(const ImageShape& shape,
                                                       const MotionBlurOptions& options, const Rng& rng,
                                                       std::span<const std::uint32_t> images);

}  // namespace dpg
