#include "dpg/prior/schedule.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <numbers>
#include <numeric>

#include "dpg/core/error.h"

namespace dpg {
namespace {

constexpr int kMaxSteps = 1'000'000;

void check_steps(int steps) {
  check(steps >= 1 && steps <= kMaxSteps, "a schedule of ", steps, " steps is not possible: between 1 and ",
        kMaxSteps, " are");
}

int parse_count(std::string_view text, std::string_view spec) {
  int count = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), count);
  check(error == std::errc() && end == text.data() + text.size() && count >= 0, "respacing '", spec,
        "' is not understood: write a number of steps (100), one per section (10,15,20) or ddim200");
  return count;
}

std::vector<int> parse_counts(std::string_view spec) {
  std::vector<int> counts;
  for (std::size_t begin = 0; begin <= spec.size();) {
    const std::size_t comma = std::min(spec.find(',', begin), spec.size());
    counts.push_back(parse_count(spec.substr(begin, comma - begin), spec));
    begin = comma + 1;
  }
  return counts;
}

// Every stride-th step from 0; the stride is the smallest that gives exactly `count` steps.
std::vector<int> fixed_stride(int steps, int count, std::string_view spec) {
  const auto taken = [&](int stride) { return (steps + stride - 1) / stride; };
  int stride = 1;
  while (stride + 1 < steps && taken(stride) > count) ++stride;
  check(count > 0 && taken(stride) == count, "respacing '", spec, "': no whole stride takes exactly ", count,
        " of ", steps, " steps; take a count that divides ", steps, " or leave out 'ddim'");
  std::vector<int> indices;
  for (int i = 0; i < steps; i += stride) indices.push_back(i);
  return indices;
}

// `count` steps spread evenly over [start, start + size), both ends included. The running sum and the
// rounding of halves to even are guided-diffusion's, so that the same steps come out.
void spread_evenly(int start, int size, int count, std::vector<int>& indices) {
  const double stride = count > 1 ? static_cast<double>(size - 1) / (count - 1) : 1.0;
  double position = 0;
  for (int i = 0; i < count; ++i, position += stride)
    indices.push_back(start + static_cast<int>(std::nearbyint(position)));
}

std::vector<int> sections(int steps, const std::vector<int>& counts, std::string_view spec) {
  std::vector<int> indices;
  const int number = static_cast<int>(counts.size());
  int start = 0;
  for (int i = 0; i < number; ++i) {
    const int size = steps / number + (i < steps % number ? 1 : 0);
    const int count = counts[static_cast<std::size_t>(i)];
    check(count <= size, "respacing '", spec, "': ", count, " steps cannot be taken from a section of ",
          size);
    spread_evenly(start, size, count, indices);
    start += size;
  }
  check(!indices.empty(), "respacing '", spec, "' leaves no step");
  return indices;
}

}  // namespace

Schedule Schedule::linear(int steps) {
  check_steps(steps);
  const double scale = 1000.0 / steps;
  const double first = scale * 1e-4, last = scale * 0.02;
  check(last < 1, "a linear schedule of ", steps, " steps has betas above 1; it needs more than 20");
  std::vector<double> beta(static_cast<std::size_t>(steps));
  const double stride = (last - first) / (steps - 1);
  for (std::size_t i = 0; i < beta.size(); ++i) beta[i] = first + static_cast<double>(i) * stride;
  beta.back() = last;
  std::vector<int> timestep(beta.size());
  std::iota(timestep.begin(), timestep.end(), 0);
  return {std::move(beta), std::move(timestep)};
}

Schedule Schedule::cosine(int steps) {
  check_steps(steps);
  const auto signal = [&](int i) {
    const double t = static_cast<double>(i) / steps;
    const double c = std::cos((t + 0.008) / 1.008 * std::numbers::pi / 2);
    return c * c;
  };
  std::vector<double> beta(static_cast<std::size_t>(steps));
  std::vector<int> timestep(beta.size());
  std::iota(timestep.begin(), timestep.end(), 0);
  for (const int i : timestep)
    beta[static_cast<std::size_t>(i)] = std::min(1 - signal(i + 1) / signal(i), 0.999);
  return {std::move(beta), std::move(timestep)};
}

Schedule Schedule::named(std::string_view name, int steps) {
  if (name == "linear") return linear(steps);
  if (name == "cosine") return cosine(steps);
  fail("noise schedule '", name, "' is not known; there are linear and cosine");
}

Schedule::Schedule(std::vector<double> beta, std::vector<int> timestep)
    : beta_(std::move(beta)), timestep_(std::move(timestep)) {
  double product = 1;
  for (const double b : beta_) {
    const double previous = product;
    product *= 1 - b;
    alpha_bar_prev_.push_back(previous);
    alpha_bar_.push_back(product);
    const double noise = 1 - product;
    posterior_variance_.push_back(b * (1 - previous) / noise);
    posterior_mean_x0_.push_back(b * std::sqrt(previous) / noise);
    posterior_mean_xt_.push_back((1 - previous) * std::sqrt(1 - b) / noise);
  }
  // The first variance is 0, which has no logarithm. A schedule of one step has no second entry to stand in;
  // its beta, the upper bound of the variance, does.
  posterior_log_variance_ = posterior_variance_;
  posterior_log_variance_[0] = steps() > 1 ? posterior_variance_[1] : beta_[0];
  for (double& v : posterior_log_variance_) v = std::log(v);
}

Schedule Schedule::respace(std::string_view spec) const {
  constexpr std::string_view ddim = "ddim";
  if (spec.starts_with(ddim)) return keep(fixed_stride(steps(), parse_count(spec.substr(4), spec), spec));
  return keep(sections(steps(), parse_counts(spec), spec));
}

Schedule Schedule::respace_power(int count, double power) const {
  check(count >= 1 && count <= steps(), count, " steps cannot be taken from a schedule of ", steps());
  check(std::isfinite(power) && power > 0, "the power of a respacing is ", power, " and must be above 0");
  const int last = steps() - 1;
  if (count == 1) return keep({last});
  std::vector<int> indices;
  for (int k = 0; k < count; ++k) {
    const double wanted = last * std::pow(static_cast<double>(k) / (count - 1), power);
    // Distinct, and room for the steps still to come: where the curve is flat this falls back to every step.
    const int lowest = indices.empty() ? 0 : indices.back() + 1;
    const int highest = last - (count - 1 - k);
    indices.push_back(std::clamp(static_cast<int>(std::nearbyint(wanted)), lowest, highest));
  }
  return keep(indices);
}

Schedule Schedule::keep(const std::vector<int>& indices) const {
  check(!indices.empty(), "a schedule needs at least one step");
  std::vector<double> beta;
  std::vector<int> timestep;
  double previous = 1;
  int last = -1;
  for (const int i : indices) {
    check(i > last && i < steps(), "step ", i,
          " cannot be kept: the indices must ascend and lie between 0 and ", steps() - 1);
    last = i;
    const double kept = alpha_bar_[static_cast<std::size_t>(i)];
    beta.push_back(1 - kept / previous);
    timestep.push_back(timestep_[static_cast<std::size_t>(i)]);
    previous = kept;
  }
  return {std::move(beta), std::move(timestep)};
}

}  // namespace dpg
