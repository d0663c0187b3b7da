#include "dpg/report/axis.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <span>

#include "dpg/core/error.h"
#include "dpg/report/markup.h"

namespace dpg {
namespace {

constexpr int kMostTicks = 8;
constexpr double kSlack = 1e-9;  // of a step: rounding must not cost a whole further step
// Far from where doubles end, so that neither ranges nor steps overflow.
constexpr double kLargest = 1e280;
constexpr double kSmallest = 1e-280;

// m x 10^e, rounded once where 10^|e| is exact: 3 x 10^-1 is the double 0.3.
double decimal(double mantissa, int exponent) {
  return exponent < 0 ? mantissa / std::pow(10.0, -exponent) : mantissa * std::pow(10.0, exponent);
}

std::string superscript(int exponent) {
  static constexpr const char* kDigits[] = {"\u2070", "\u00B9", "\u00B2", "\u00B3", "\u2074",
                                            "\u2075", "\u2076", "\u2077", "\u2078", "\u2079"};
  std::string out = exponent < 0 ? "\u207B" : "";
  for (const char digit : std::to_string(std::abs(exponent))) out += kDigits[digit - '0'];
  return out;
}

// True minus signs, which are as wide as the digits.
std::string with_minus(std::string number) {
  return number[0] == '-' ? "\u2212" + number.substr(1) : number;
}

// The value down to the digit of 10^last, as digits or as 2.5 x 10^6.
std::string label(double value, int last, bool as_power) {
  if (value == 0.0) return "0";
  if (!as_power) return with_minus(markup::fixed(value, std::max(0, -last)));
  const int exponent = static_cast<int>(std::floor(std::log10(std::abs(value)) + kSlack));
  const std::string mantissa = markup::fixed(decimal(value, -exponent), std::max(0, exponent - last));
  const std::string power = "10" + superscript(exponent);
  return mantissa == "1" ? power : with_minus(mantissa) + "\u00B7" + power;
}

// The multiples first to last of mantissa x 10^exponent.
struct Steps {
  std::int64_t first, last;
  int mantissa, exponent;
  double tick(std::int64_t i) const { return decimal(static_cast<double>(i * mantissa), exponent); }
};

// The finest steps that cover the range with few enough ticks. Each choice is at most 2.5 times as coarse as
// the one before, so that more than two steps always remain.
Steps nice_steps(double low, double high, int least_exponent = -400) {
  const int start = static_cast<int>(std::floor(std::log10((high - low) / kMostTicks))) - 1;
  for (int exponent = std::max(start, least_exponent);; ++exponent) {
    for (const int mantissa : {1, 2, 5}) {
      const double step = decimal(mantissa, exponent);
      const double first = std::floor(low / step + kSlack), last = std::ceil(high / step - kSlack);
      if (last - first >= kMostTicks) continue;
      return {static_cast<std::int64_t>(first), static_cast<std::int64_t>(last), mantissa, exponent};
    }
  }
}

PlotAxis from_steps(AxisScale scale, const Steps& steps) {
  PlotAxis axis{scale, {}, {}};
  const double largest = std::max(std::abs(steps.tick(steps.first)), std::abs(steps.tick(steps.last)));
  const bool as_power = largest >= 1e6 || steps.exponent < -5;
  for (std::int64_t i = steps.first; i <= steps.last; ++i) {
    axis.ticks.push_back(steps.tick(i));
    axis.labels.push_back(label(axis.ticks.back(), steps.exponent, as_power));
  }
  return axis;
}

void append_log_tick(PlotAxis& axis, int mantissa, int exponent) {
  axis.ticks.push_back(decimal(mantissa, exponent));
  axis.labels.push_back(label(axis.ticks.back(), exponent, exponent < -3 || exponent > 5));
}

// The mantissas in each decade, from the last tick at or below `low` to the first at or above `high`.
PlotAxis from_mantissas(double low, double high, std::span<const int> mantissas) {
  PlotAxis axis{AxisScale::log, {}, {}};
  for (int exponent = static_cast<int>(std::floor(std::log10(low))) - 1;; ++exponent) {
    for (const int mantissa : mantissas) {
      if (decimal(mantissa, exponent) <= low * (1 + kSlack)) axis.ticks.clear(), axis.labels.clear();
      append_log_tick(axis, mantissa, exponent);
      if (axis.high() >= high * (1 - kSlack) && axis.ticks.size() > 1) return axis;
    }
  }
}

PlotAxis log_axis(double low, double high) {
  if (high < 10.0 * low) {
    const Steps steps = nice_steps(low, high);
    if (steps.first > 0) return from_steps(AxisScale::log, steps);
  }
  static constexpr int kOneTwoFive[] = {1, 2, 5}, kOneThree[] = {1, 3};
  for (const std::span<const int> mantissas :
       {std::span<const int>(kOneTwoFive), std::span<const int>(kOneThree)}) {
    if (high / low > 1e8) break;  // far too many
    PlotAxis axis = from_mantissas(low, high, mantissas);
    if (axis.ticks.size() <= kMostTicks) return axis;
  }
  const Steps steps = nice_steps(std::log10(low), std::log10(high), 0);
  PlotAxis axis{AxisScale::log, {}, {}};
  for (std::int64_t i = steps.first; i <= steps.last; ++i)
    append_log_tick(axis, 1, static_cast<int>(steps.tick(i)));
  return axis;
}

}  // namespace

double PlotAxis::place(double value) const {
  if (scale == AxisScale::log) {
    return (std::log(value) - std::log(low())) / (std::log(high()) - std::log(low()));
  }
  return (value - low()) / (high() - low());
}

bool drawable(double value, AxisScale scale) {
  if (!std::isfinite(value) || std::abs(value) > kLargest) return false;
  return scale == AxisScale::linear || value >= kSmallest;
}

PlotAxis make_axis(AxisScale scale, double low, double high) {
  check(drawable(low, scale) && drawable(high, scale) && low <= high, "an axis cannot reach from ", low,
        " to ", high, "; leave out what is not finite, and on a log axis what is not positive");
  const double magnitude = std::max(std::abs(low), std::abs(high));
  if (high - low <= 1e-9 * magnitude || magnitude < kSmallest) {  // no width that doubles could divide well
    const double margin = magnitude < kSmallest ? 1.0 : magnitude / 2;
    low -= margin;
    high += margin;
  }
  return scale == AxisScale::log ? log_axis(low, high) : from_steps(scale, nice_steps(low, high));
}

}  // namespace dpg
