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
  const auto [values, vectors] = torch::linalg_eigh(centred.t().mm(centred));
  // Rounding may leave an eigenvalue of 0 a little below.
  return {mean, values.clamp_min(0).sqrt().unsqueeze(1) * vectors.t(), trace};
}

std::string low_rank_note(std::int64_t fewest, std::int64_t features) {
  return str("only ", fewest, " pictures for ", features,
             " features: finite, but biased upward; compare only with sets of the same size");
}

}  // namespace

FrechetResult frechet_distance(const Tensor& a, const Tensor& b) {
  const torch::NoGradGuard no_gradient;
  const auto [rows_a, rows_b] = metrics::checked_feature_sets("the Frechet distance", a, b);
  const Moments of_a = moments_of(rows_a), of_b = moments_of(rows_b);
  const double apart = (of_a.mean - of_b.mean).square().sum().item<double>();
  const double shared = torch::linalg_svdvals(of_a.factor.mm(of_b.factor.t())).sum().item<double>();
  FrechetResult result;
  // Equal sets leave only rounding, of either sign.
  result.distance = std::max(0.0, apart + of_a.trace + of_b.trace - 2 * shared);
  const std::int64_t fewest = std::min(a.size(0), b.size(0));
  result.low_rank = fewest <= a.size(1);  // n pictures give a covariance of rank n - 1
  if (result.low_rank) result.note = low_rank_note(fewest, a.size(1));
  return result;
}

}  // namespace dpg
