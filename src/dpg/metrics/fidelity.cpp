#include "dpg/metrics/fidelity.h"

#include <torch/torch.h>

#include <array>
#include <cmath>

#include "dpg/metrics/picture_pair.h"

namespace dpg {
namespace {

using metrics::check_pictures;
using metrics::numbers;

constexpr double kDataRange = 2;  // pictures lie in [-1, 1]

Tensor as_shown(const Tensor& pictures) {
  return pictures.to(torch::kDouble).clamp(-1, 1);
}

std::array<double, kSsimWindow> gaussian_weights() {
  constexpr double sigma = 1.5;
  std::array<double, kSsimWindow> weights{};
  double sum = 0;
  for (std::int64_t i = 0; i < kSsimWindow; ++i) {
    const double x = static_cast<double>(i - kSsimWindow / 2);
    sum += weights[i] = std::exp(-x * x / (2 * sigma * sigma));
  }
  for (double& weight : weights) weight /= sum;
  return weights;
}

// The Gaussian mean in every window inside the picture: [..., H, W] to [..., H - 10, W - 10]. The window is a
// product of a column and a row, so one dimension after the other.
Tensor window_mean(const Tensor& x) {
  static const auto weights = gaussian_weights();
  Tensor mean = x;
  for (const std::int64_t dimension : {-2, -1}) {
    const std::int64_t places = mean.size(dimension) - kSsimWindow + 1;
    Tensor sum = weights[0] * mean.narrow(dimension, 0, places);
    for (std::int64_t i = 1; i < kSsimWindow; ++i)
      sum.add_(mean.narrow(dimension, i, places), weights[static_cast<std::size_t>(i)]);
    mean = sum;
  }
  return mean;
}

// a, b: [C, H, W] in double.
Tensor ssim_of_one(const Tensor& a, const Tensor& b) {
  constexpr double c1 = (0.01 * kDataRange) * (0.01 * kDataRange);
  constexpr double c2 = (0.03 * kDataRange) * (0.03 * kDataRange);
  const Tensor mean_a = window_mean(a), mean_b = window_mean(b);
  const Tensor product = mean_a * mean_b, squares = mean_a.square() + mean_b.square();
  const Tensor covariance = window_mean(a * b) - product;
  const Tensor variances = window_mean(a.square() + b.square()) - squares;
  // Channels have equally many windows: the mean over everything is the mean over channels.
  return ((2 * product + c1) * (2 * covariance + c2) / ((squares + c1) * (variances + c2))).mean();
}

}  // namespace

std::vector<double> psnr(const Tensor& pictures, const Tensor& truth) {
  const torch::NoGradGuard no_gradient;
  check_pictures("PSNR", pictures, truth);
  const Tensor difference = as_shown(pictures) - as_shown(truth.to(pictures.device()));
  const Tensor mean_squared_error = difference.square().mean({1, 2, 3});
  return numbers(10 * torch::log10(kDataRange * kDataRange / mean_squared_error));  // 4 / 0 is infinity
}

std::vector<double> ssim(const Tensor& pictures, const Tensor& truth) {
  const torch::NoGradGuard no_gradient;
  check_pictures("SSIM", pictures, truth);
  metrics::check_smallest_side("SSIM", pictures, kSsimWindow);
  // One picture at a time: the double-precision maps of a whole batch would be large.
  std::vector<Tensor> each;
  for (std::int64_t n = 0; n < pictures.size(0); ++n)
    each.push_back(ssim_of_one(as_shown(pictures[n]), as_shown(truth[n].to(pictures.device()))));
  return each.empty() ? std::vector<double>{} : numbers(torch::stack(each));
}

}  // namespace dpg
