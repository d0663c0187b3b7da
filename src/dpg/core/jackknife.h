// How sure an estimate is, from what becomes of it when a part of the data is left out.
#pragma once

#include <cmath>
#include <limits>
#include <span>

namespace dpg {

// The standard error of an estimate, from its values without each of n parts of the data, all about as large.
// NaN below two parts.
inline double jackknife_error(std::span<const double> leaving_out) {
  const auto n = static_cast<double>(leaving_out.size());
  if (leaving_out.size() < 2) return std::numeric_limits<double>::quiet_NaN();
  double mean = 0, squares = 0;
  for (const double value : leaving_out) mean += value / n;
  for (const double value : leaving_out) squares += (value - mean) * (value - mean);
  return std::sqrt((n - 1) / n * squares);
}

}  // namespace dpg
