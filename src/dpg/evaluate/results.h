// What an evaluation came to: one row for each restored picture, one entry for each set of them, and means
// with their intervals; as CSV and as JSON.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "dpg/evaluate/plan.h"

namespace dpg::evaluate {

struct Results {
  Json plan;         // as in the run's plan.json
  Json environment;  // what computed it
  // {"task", "method", "image", "number", "seed", metrics..., "residual", "noise_floor", "residual_ratio",
  //  "network_calls", "reverse_passes", "operator_calls", "seconds"}; a metric that could not be had is null.
  std::vector<Json> rows;
  std::vector<Json> cannot;  // {"task", "method", "why"}: methods that do not take the task's operator
  std::vector<Json> sets;    // {"task", "method", metrics...}: a number, or "unavailable: why"
  std::size_t missing = 0;   // pictures that are not restored yet
};

struct Mean {
  double mean = 0, low = 0, high = 0;  // 95 % interval by bootstrap over the pictures
  std::size_t pictures = 0;
  // "29.01 ± 0.15": half of the interval's width.
  std::string text(int digits) const;
};

// Of one number over the pictures of one task and method. None where no picture has it.
std::optional<Mean> mean_of(const Results& results, const std::string& task, const std::string& method,
                            const std::string& value);
// Whether mean_of gives anything; costs no bootstrap.
bool has_mean(const Results& results, const std::string& task, const std::string& method,
              const std::string& value);
// Of a set; none where it is unavailable.
// A set's standard error, where it has one.
std::optional<double> set_error(const Results& results, const std::string& task, const std::string& method,
                                const std::string& metric);
std::optional<double> set_value(const Results& results, const std::string& task, const std::string& method,
                                const std::string& metric);
// Why a set's metric could not be had; empty where it could.
std::string set_missing(const Results& results, const std::string& metric);
// What to know about the values of a set's metric (too few pictures, say); empty where there is nothing.
std::string set_note(const Results& results, const std::string& metric);
// Why the method does not do the task; empty where it does.
std::string cannot_because(const Results& results, const std::string& task, const std::string& method);

// One line for each picture, without what a clock measured: the same bytes on every run.
std::string results_csv(const Results& results, const std::vector<std::string>& metrics);
// One line for each task, method and number: its mean and interval.
std::string summary_csv(const Results& results, const Plan& plan);
// The seconds of each picture.
std::string runtime_csv(const Results& results);
Json results_json(const Results& results, const Plan& plan);

}  // namespace dpg::evaluate
