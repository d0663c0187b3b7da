#include "dpg/sample/second_order.h"

#include <torch/torch.h>

#include <cmath>

namespace dpg {
namespace {

double half_log_signal_to_noise(double abar) {
  return 0.5 * std::log(abar / (1 - abar));
}

}  // namespace

Tensor SecondOrder::beyond(const Schedule& schedule, int i, const Tensor& x0) {
  if (i == 0) return {};
  const auto k = static_cast<std::size_t>(i);
  const double length = half_log_signal_to_noise(schedule.alpha_bar_prev()[k]) -
                        half_log_signal_to_noise(schedule.alpha_bar()[k]);
  Tensor more;
  if (last_x0_.defined()) more = share_ * length / (2 * last_length_) * (x0 - last_x0_);
  last_x0_ = x0;
  last_length_ = length;
  return more;
}

}  // namespace dpg
