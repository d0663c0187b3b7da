#include "dpg/measure/motion_kernel.h"

#include <torch/torch.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "dpg/core/error.h"
#include "dpg/measure/gaussian_blur.h"
#include "dpg/measure/kernel_blur.h"
#include "dpg/measure/spec.h"

namespace dpg {
namespace {

constexpr int kMoments = 96;                 // points of the walk, before it is refined
constexpr std::uint64_t kNormalsFrom = 256;  // in the stream, beyond the uniform numbers

// Constants of the walk at intensity 1, per moment: how much the heading wanders (radians), how often the
// hand jerks, and how unevenly the camera moves. Chosen so that intensity 0.5 bends by about a right angle
// during the exposure.
constexpr double kWander = 0.3, kJerkChance = 0.06, kSpeedSpread = 0.8, kSpeedMemory = 0.9;

// A walk with inertia, in arbitrary units, starting at the origin.
std::vector<TrajectoryPoint> walk(double intensity, std::span<const float> uniform,
                                  std::span<const float> normal) {
  std::vector<TrajectoryPoint> points(kMoments);
  double heading = 2 * std::numbers::pi * uniform[0], log_speed = 0;
  for (std::size_t i = 1; i < points.size(); ++i) {
    heading += intensity * kWander * normal[2 * i];
    if (uniform[i] < intensity * kJerkChance) heading += std::numbers::pi * (2 * uniform[kMoments + i] - 1);
    log_speed = kSpeedMemory * log_speed +
                intensity * kSpeedSpread * std::sqrt(1 - kSpeedMemory * kSpeedMemory) * normal[2 * i + 1];
    points[i].x = points[i - 1].x + std::exp(log_speed) * std::cos(heading);
    points[i].y = points[i - 1].y + std::exp(log_speed) * std::sin(heading);
  }
  return points;
}

// Moves the mean over time to (0, 0): the camera spends the same time on every step, moving evenly.
void centre(std::vector<TrajectoryPoint>& points) {
  TrajectoryPoint mean;
  const double steps = static_cast<double>(points.size() - 1);
  for (std::size_t i = 1; i < points.size(); ++i) {
    mean.x += (points[i - 1].x + points[i].x) / (2 * steps);
    mean.y += (points[i - 1].y + points[i].y) / (2 * steps);
  }
  for (auto& p : points) p = {p.x - mean.x, p.y - mean.y};
}

// Scales to a furthest coordinate of `reach`.
void scale_to(std::vector<TrajectoryPoint>& points, double reach) {
  double furthest = 0;
  for (const auto& p : points) furthest = std::max({furthest, std::abs(p.x), std::abs(p.y)});
  for (auto& p : points) p = {p.x * reach / furthest, p.y * reach / furthest};
}

// The middles of the parts when every step is cut into the same number of them, none longer than `longest`.
// Times stay equal, and the mean of these points is the mean over time.
std::vector<TrajectoryPoint> refined(const std::vector<TrajectoryPoint>& points, double longest) {
  double step = 0;
  for (std::size_t i = 1; i < points.size(); ++i)
    step = std::max(step, std::hypot(points[i].x - points[i - 1].x, points[i].y - points[i - 1].y));
  const int parts = std::max(1, static_cast<int>(std::ceil(step / longest)));
  std::vector<TrajectoryPoint> out;
  for (std::size_t i = 1; i < points.size(); ++i)
    for (int k = 0; k < parts; ++k) {
      const double t = (k + 0.5) / parts;
      out.push_back({std::lerp(points[i - 1].x, points[i].x, t), std::lerp(points[i - 1].y, points[i].y, t)});
    }
  return out;
}

}  // namespace

std::vector<TrajectoryPoint> random_trajectory(double extent, double intensity, const Rng& rng,
                                               std::uint32_t image) {
  check(extent >= 0, "A trajectory has extent = ", extent, ": it must not be negative.");
  check(intensity >= 0 && intensity <= 1, "A trajectory has intensity = ", intensity,
        ": it must be in [0, 1].");
  const NoiseKey key{image, kBeforeFirstStep, kOperatorChoices};
  std::vector<float> uniform(2 * kMoments + 1), normal(2 * kMoments);
  rng.uniform(key, uniform);
  rng.normal(key, normal, kNormalsFrom);
  std::vector<TrajectoryPoint> points = walk(intensity, uniform, normal);
  centre(points);
  scale_to(points, extent / 2 * (0.6 + 0.4 * uniform[2 * kMoments]));
  return refined(points, 0.25);
}

Tensor draw_trajectory(std::span<const TrajectoryPoint> trajectory, std::int64_t size) {
  const double middle = static_cast<double>(size - 1) / 2;
  Tensor kernel = torch::zeros({size, size}, torch::kDouble);
  auto k = kernel.accessor<double, 2>();
  for (const auto& point : trajectory) {
    const double x = point.x + middle, y = point.y + middle;
    check(x >= -1e-9 && y >= -1e-9 && x <= 2 * middle + 1e-9 && y <= 2 * middle + 1e-9,
          "A trajectory leaves its kernel of ", size, " x ", size, " pixels: draw it into a larger one.");
    const auto left =
        std::clamp<std::int64_t>(static_cast<std::int64_t>(x), 0, std::max<std::int64_t>(0, size - 2));
    const auto top =
        std::clamp<std::int64_t>(static_cast<std::int64_t>(y), 0, std::max<std::int64_t>(0, size - 2));
    const double right_part = std::clamp(x - static_cast<double>(left), 0.0, 1.0);
    const double bottom_part = std::clamp(y - static_cast<double>(top), 0.0, 1.0);
    k[top][left] += (1 - bottom_part) * (1 - right_part);
    if (size == 1) continue;
    k[top][left + 1] += (1 - bottom_part) * right_part;
    k[top + 1][left] += bottom_part * (1 - right_part);
    k[top + 1][left + 1] += bottom_part * right_part;
  }
  return kernel / kernel.sum();
}

MotionBlurOptions MotionBlurOptions::resolved(const ImageShape& shape) const {
  MotionBlurOptions out = *this;
  if (!out.size) out.size = std::max<std::int64_t>(1, odd_scaled_to(shape, 61));
  return out;
}

void MotionBlurOptions::validate(const ImageShape& shape) const {
  const MotionBlurOptions set = resolved(shape);
  check(*set.size >= 1 && *set.size % 2 == 1, "motion has size = ", *set.size,
        ": it must be odd and at least 1.");
  check(intensity >= 0 && intensity <= 1, "motion has intensity = ", intensity, ": it must be in [0, 1].");
  check_reach("motion", *set.size, std::min(shape.height, shape.width), boundary);
}

std::string MotionBlurOptions::spec() const {
  Spec text{"motion", {}};
  if (size) text.arguments.push_back({"size", std::to_string(*size)});
  text.arguments.push_back({"intensity", number_text(intensity)});
  text.arguments.push_back({"boundary", name(boundary)});
  return to_text(text);
}

std::shared_ptr<const LinearOperator> make_motion_blur(const ImageShape& shape,
                                                       const MotionBlurOptions& options, const Rng& rng,
                                                       std::span<const std::uint32_t> images) {
  check_shape(options.spec(), shape);
  options.validate(shape);
  const MotionBlurOptions set = options.resolved(shape);
  std::vector<Tensor> kernels;
  for (const std::uint32_t image : images) {
    const auto trajectory = random_trajectory(static_cast<double>(*set.size - 1), set.intensity, rng, image);
    kernels.push_back(draw_trajectory(trajectory, *set.size));
  }
  return make_kernel_blur(shape, torch::stack(kernels), set.boundary, set.spec());
}

}  // namespace dpg
