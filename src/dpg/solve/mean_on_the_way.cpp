#include "dpg/solve/mean_on_the_way.h"

#include <torch/torch.h>

#include <cmath>

#include "dpg/solve/late_noise.h"

namespace dpg {
namespace {

// Later means have too much of what was drawn to be averaged.
constexpr int kAveraged = 5;
constexpr double kApart = 3;

double spread_of_x0(double abar) {
  return (1 - abar) / std::sqrt(abar);
}

}  // namespace

MeanOnTheWay::MeanOnTheWay(const LinearOperator* A, Tensor variance)
    : A_(A), variance_(std::move(variance)) {}

bool MeanOnTheWay::asks_for(double abar) const {
  if (count_ == 0) return abar >= 0.5;
  return spread_of_x0(abar) <= last_c_ / kApart && (A_ || count_ < kAveraged);
}

Tensor MeanOnTheWay::still_open(double abar) const {
  if (count_ == 0) return torch::ones_like(variance_);
  return (variance_ <= spread_of_x0(abar)).to(variance_.scalar_type());
}

int MeanOnTheWay::calls() const {
  return A_ && count_ > 0 ? early_part_calls() : 0;
}

void MeanOnTheWay::add(const Tensor& mean, double abar, const Tensor& weights) {
  const double c = spread_of_x0(abar);
  if (count_ == 0) {
    mean_ = mean;
  } else {
    const double share = count_ < kAveraged ? 1.0 / (count_ + 1) : 0;
    const Tensor change = mean - mean_;
    Tensor step = share * change;
    if (A_) step = step + (1 - share) * early_part(*A_, change, variance_ / c, weights);
    mean_ = mean_ + still_open(abar) * step;
  }
  ++count_;
  last_c_ = c;
}

}  // namespace dpg
