#include "dpg/solve/answer.h"

#include <torch/torch.h>

#include <cmath>

#include "dpg/measure/gaussian_blur.h"
#include "dpg/solve/measured_guide.h"

namespace dpg {
namespace {

// One is exact where A A^T is a multiple of the identity and nothing is clamped; clamped values need more.
constexpr int kRounds = 3;

// Of a way to a mean: what is finer than so many pixels stays; each next scale is twice as coarse; and what
// is nearby, in scales.
constexpr double kFinest = 0.7, kWindow = 2;
constexpr int kScales = 2;

}  // namespace

Tensor coarse_part(const Tensor& pictures, double sigma) {
  const std::int64_t reach = std::lround(std::ceil(4 * sigma)), channels = pictures.size(1);
  const Tensor kernel = gaussian_kernel(2 * reach + 1, sigma).to(pictures.options());
  const Tensor padded = torch::replication_pad2d(pictures, {reach, reach, reach, reach});
  const auto along = [&](const Tensor& x, torch::IntArrayRef shape) {
    const Tensor weights = kernel.view(shape).expand({channels, 1, shape[2], shape[3]}).contiguous();
    const std::int64_t no_padding = 0;
    return torch::conv2d(x, weights, {}, 1, torch::IntArrayRef(no_padding), 1, channels);
  };
  return along(along(padded, {1, 1, 2 * reach + 1, 1}), {1, 1, 1, 2 * reach + 1});
}

Tensor way_to_mean(const Tensor& draw, const Tensor& mean, double smoothing) {
  const auto energy = [](const Tensor& band, double reach) {
    return coarse_part(band.square().mean(1, true), reach);
  };
  // A part b of the way loses 2 b of the part that the way's energy is of the draw's.
  const auto gone = [&](const Tensor& way, const Tensor& there, double reach) {
    const Tensor part = energy(way, reach) / energy(there, reach).clamp_min(1e-12);
    return way / (1 + (part / smoothing).square());
  };
  double pixels = kFinest;
  Tensor picture = coarse_part(draw, pixels), rest = coarse_part(mean - draw, pixels);
  Tensor way = torch::zeros_like(draw);
  for (int scale = 0; scale < kScales; ++scale) {
    pixels *= 2;
    const Tensor coarse_picture = coarse_part(picture, pixels), coarse_rest = coarse_part(rest, pixels);
    way = way + gone(rest - coarse_rest, picture - coarse_picture, kWindow * pixels);
    picture = coarse_picture;
    rest = coarse_rest;
  }
  return way + gone(rest, picture, 2 * kWindow * pixels);
}

int raised_to_floor_calls() {
  return 3 * kRounds;
}

Tensor raised_to_floor(const LinearOperator& A, const Tensor& y, const Tensor& floors, const Tensor& x) {
  Tensor raised = x;
  for (int round = 0; round < kRounds; ++round) {
    const Tensor e = y - A.apply(raised.clamp(-1, 1));
    const Tensor w = A.adjoint(e), q = A.apply(w);
    // ||e + s q||^2 = floor^2; <e, q> = ||w||^2, so the larger root is the one forwards.
    const Tensor a = image_product(q, q), b = image_product(e, q);
    const Tensor missing = (over_rows(floors.square(), e) - image_product(e, e)).clamp_min(0);
    const Tensor s = missing / (b + (b.square() + a * missing).sqrt()).clamp_min(1e-30);
    raised = raised - over_rows(s, w) * w;
  }
  return raised;
}

Tensor share_within_floor(const LinearOperator& A, const Tensor& y, const Tensor& floors, const Tensor& x,
                          const Tensor& way) {
  const Tensor e = y - A.apply(x), q = A.apply(way);
  // ||e - s q||^2 = ||e||^2 + room: its larger root, never below zero, is as far as x may go.
  const Tensor a = image_product(q, q).clamp_min(1e-30), b = image_product(e, q);
  const Tensor room = (over_rows(floors.square(), e) - image_product(e, e)).clamp_min(0);
  const Tensor furthest = (b + (b.square() + a * room).sqrt()) / a;
  return over_pictures(furthest.clamp(0, 1));
}

}  // namespace dpg
