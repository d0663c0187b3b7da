// Non-linear blur as a camera makes it: while the shutter is open the picture moves along a random
// trajectory, the sensor sums the frames in linear light, saturates, and the response curve brings the sum
// back to display values. "nonlinear-blur:intensity=0.5,exposure=1.2"
//
//   y = E(min(1, exposure * K D(x)))     D: sRGB to linear light, K: the frames' average, E: the inverse of D
//
// Unlike motion blur of the display values, a bright light leaves a saturated streak.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "dpg/core/rng.h"
#include "dpg/measure/motion_kernel.h"
#include "dpg/measure/operator.h"

namespace dpg {

struct NonlinearBlurOptions {
  MotionBlurOptions motion;
  double exposure = 1.2;  // gain before saturation, above 0; 1 saturates nothing

  void validate(const ImageShape& shape) const;
  std::string spec() const;
};
std::shared_ptr<const DifferentiableOperator> make_nonlinear_blur(const ImageShape& shape,
                                                                  const NonlinearBlurOptions& options,
                                                                  const Rng& rng,
                                                                  std::span<const std::uint32_t> images);

// The sRGB curve on the [0, 1] range, continued beyond it: linear below 0, by the power law above 1.
Tensor srgb_to_linear(const Tensor& display);
Tensor linear_to_srgb(const Tensor& light);

}  // namespace dpg
