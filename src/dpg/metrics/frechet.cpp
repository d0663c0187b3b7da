#include "dpg/metrics/frechet.h"

#include <torch/torch.h>

#include <algorithm>

#include "dpg/core/error.h"
#include "dpg/metrics/feature_sets.h"

namespace dpg {
namespace {

struct Moments {
  Tensor mean;    // [D]
  Tensor factor;  // [min(n, D), D]: factor^T factor is the covariance
  double trace = 0;
};

Moments moments_of(const Tensor& features) {
  const auto pictures = static_cast<double>(features.size(0));
  const Tensor mean = features.mean(0);
  const Tensor centred = (features - mean) / std::sqrt(pictures - 1);
  const double trace = centred.square().sum().item<double>();
  if (features.size(0) <= features.size(1)) return {mean, centred, trace};
  // R of Q R, not a root of the covariance: where that is singular, a root has half of the digits.
  return {mean, std::get<1>(torch::linalg_qr(centred, "r")), trace};
}

std::string low_rank_note(std::int64_t fewest, std::int64_t features) {
  return str("only ", fewest, " pictures for ", features,
             " features: finite, but biased upward; compare only with sets of the same size");
}

double distance_of(const Tensor& a, const Tensor& b) {
  const Moments of_a = moments_of(a), of_b = moments_of(b);
  const double apart = (of_a.mean - of_b.mean).square().sum().item<double>();
  const double shared = torch::linalg_svdvals(of_a.factor.mm(of_b.factor.t())).sum().item<double>();
  // Equal sets leave only rounding, of either sign.
  return std::max(0.0, apart + of_a.trace + of_b.trace - 2 * shared);
}

}  // namespace

FrechetResult frechet_distance(const Tensor& a, const Tensor& b) {
  const torch::NoGradGuard no_gradient;
  const auto [rows_a, rows_b] = metrics::checked_feature_sets("the Frechet distance", a, b);
  FrechetResult result;
  result.distance = distance_of(rows_a, rows_b);
  const std::int64_t fewest = std::min(a.size(0), b.size(0));
  result.low_rank = fewest <= a.size(1);  // n pictures give a covariance of rank n - 1
  if (result.low_rank) result.note = low_rank_note(fewest, a.size(1));
  return result;
}

std::vector<double> frechet_leaving_out(const Tensor& a, const Tensor& b) {
  const torch::NoGradGuard no_gradient;
  const auto [rows_a, rows_b] = metrics::checked_feature_sets("the Frechet distance", a, b);
  const std::int64_t pictures = rows_a.size(0);
  check(pictures == rows_b.size(0) && pictures >= kFewestToLeaveOut,
        "leaving out pairs takes two sets of as many pictures, at least ", kFewestToLeaveOut, ", not ",
        pictures, " and ", rows_b.size(0));
  const std::int64_t parts = pictures <= 40 ? pictures : pictures <= 1000 ? 20 : 10;  // they take time
  std::vector<double> distances;
  for (std::int64_t k = 0; k < parts; ++k) {
    const std::int64_t begin = k * pictures / parts, end = (k + 1) * pictures / parts;
    const auto rest = [&](const Tensor& rows) {
      return torch::cat({rows.slice(0, 0, begin), rows.slice(0, end)});
    };
    distances.push_back(distance_of(rest(rows_a), rest(rows_b)));
  }
  return distances;
}

}  // namespace dpg
