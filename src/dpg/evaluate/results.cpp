#include "dpg/evaluate/results.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>

#include "dpg/core/error.h"
#include "dpg/evaluate/statistics.h"
#include "dpg/report/markup.h"

namespace dpg::evaluate {
namespace {

constexpr std::uint64_t kBootstrapSeed = 0;

bool belongs(const Json& row, const std::string& task, const std::string& method) {
  return row["task"] == task && row["method"] == method;
}

// RFC 4180: quoted where it must be.
std::string field(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
  return quoted + "\"";
}

// The shortest text that reads back as exactly this number.
std::string number(double value) {
  if (std::isnan(value)) return "";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  char text[32];
  const auto end = std::to_chars(text, text + sizeof text, value).ptr;
  return {text, end};
}

std::string field(const Json& row, const std::string& key) {
  const auto found = row.find(key);
  if (found == row.end() || found->is_null()) return "";
  if (found->is_string()) return field(found->get<std::string>());
  if (found->is_number_float()) return number(found->get<double>());
  return found->dump();
}

std::string line(const std::vector<std::string>& fields) {
  std::string text;
  for (std::size_t i = 0; i < fields.size(); ++i) text += (i == 0 ? "" : ",") + fields[i];
  return text + "\n";
}

// An infinite PSNR (a perfect picture) is no JSON number; the record holds it as text.
double value_of(const Json& row, const std::string& key) {
  const auto found = row.find(key);
  if (found == row.end()) return std::nan("");
  if (found->is_string() && found->get<std::string>() == "inf")
    return std::numeric_limits<double>::infinity();
  return found->is_number() ? found->get<double>() : std::nan("");
}

std::vector<std::string> averaged(const Plan& plan) {
  std::vector<std::string> names;
  for (const std::string& metric : plan.metrics)
    if (std::find(picture_metrics().begin(), picture_metrics().end(), metric) != picture_metrics().end())
      names.push_back(metric);
  for (const char* name : {"residual", "residual_ratio", "network_calls", "reverse_passes", "operator_calls"})
    names.emplace_back(name);
  return names;
}

Json summary_json(const Results& results, const Plan& plan) {
  Json list = Json::array();
  std::vector<std::string> names = averaged(plan);
  names.emplace_back("seconds");
  for (const PlannedTask& task : plan.tasks)
    for (const PlannedMethod& method : plan.methods)
      for (const std::string& name : names)
        if (const auto mean = mean_of(results, task.name, method.name, name))
          list.push_back({{"task", task.name},
                          {"method", method.name},
                          {"metric", name},
                          {"mean", mean->mean},
                          {"low", mean->low},
                          {"high", mean->high},
                          {"pictures", mean->pictures}});
  return list;
}

}  // namespace

std::string Mean::text(int digits) const {
  if (!std::isfinite(mean)) return markup::significant(mean, digits);
  const std::string middle = markup::fixed(mean, digits);
  if (pictures < 2 || !std::isfinite(high - low)) return middle;
  return middle + " \u00b1 " + markup::fixed((high - low) / 2, digits);
}

std::optional<Mean> mean_of(const Results& results, const std::string& task, const std::string& method,
                            const std::string& value) {
  std::vector<double> values;
  for (const Json& row : results.rows)
    if (belongs(row, task, method)) values.push_back(value_of(row, value));
  values.erase(std::remove_if(values.begin(), values.end(), [](double v) { return std::isnan(v); }),
               values.end());
  if (values.empty()) return {};
  const auto interval = bootstrap_mean(values, kBootstrapSeed);
  return Mean{interval.mean, interval.low, interval.high, values.size()};
}

bool has_mean(const Results& results, const std::string& task, const std::string& method,
              const std::string& value) {
  return std::any_of(results.rows.begin(), results.rows.end(), [&](const Json& row) {
    return belongs(row, task, method) && !std::isnan(value_of(row, value));
  });
}

std::optional<double> set_value(const Results& results, const std::string& task, const std::string& method,
                                const std::string& metric) {
  for (const Json& set : results.sets)
    if (belongs(set, task, method) && set.contains(metric) && set[metric].is_number())
      return set[metric].get<double>();
  return {};
}

std::optional<double> set_error(const Results& results, const std::string& task, const std::string& method,
                                const std::string& metric) {
  return set_value(results, task, method, metric + " standard error");
}

std::string set_missing(const Results& results, const std::string& metric) {
  std::string why;
  for (const Json& set : results.sets) {
    if (!set.contains(metric)) continue;
    if (set[metric].is_number()) return "";
    if (set[metric].is_string()) why = set[metric].get<std::string>();
  }
  return why;
}

std::string set_note(const Results& results, const std::string& metric) {
  for (const Json& set : results.sets) {
    const auto note = set.find(metric + " note");
    if (note != set.end() && note->is_string()) return note->get<std::string>();
  }
  return "";
}

std::string cannot_because(const Results& results, const std::string& task, const std::string& method) {
  for (const Json& one : results.cannot)
    if (belongs(one, task, method)) return one["why"].get<std::string>();
  return "";
}

std::string results_csv(const Results& results, const std::vector<std::string>& metrics) {
  std::vector<std::string> columns = {"task", "method", "image", "number", "seed"};
  for (const std::string& metric : picture_metrics())
    if (std::find(metrics.begin(), metrics.end(), metric) != metrics.end()) columns.push_back(metric);
  for (const char* name : {"residual", "noise_floor", "residual_ratio", "network_calls", "reverse_passes",
                           "operator_calls", "cannot"})
    columns.emplace_back(name);
  std::string text = line(columns);
  const auto add = [&](const Json& row) {
    std::vector<std::string> fields;
    for (const std::string& column : columns) fields.push_back(field(row, column));
    text += line(fields);
  };
  for (const Json& row : results.rows) add(row);
  for (const Json& one : results.cannot)
    add({{"task", one["task"]}, {"method", one["method"]}, {"cannot", one["why"]}});
  return text;
}

// Why a number is unavailable names folders of this machine: results.json says it, a file to compare does
// not.
std::string summary_csv(const Results& results, const Plan& plan) {
  std::string text = line({"task", "method", "metric", "mean", "low", "high", "pictures", "unavailable"});
  for (const PlannedTask& task : plan.tasks)
    for (const PlannedMethod& method : plan.methods) {
      for (const std::string& name : averaged(plan))
        if (const auto mean = mean_of(results, task.name, method.name, name))
          text += line({field(task.name), field(method.name), name, number(mean->mean), number(mean->low),
                        number(mean->high), std::to_string(mean->pictures), ""});
      for (const Json& set : results.sets) {
        if (!belongs(set, task.name, method.name)) continue;
        for (const std::string& metric : set_metrics())
          if (set.contains(metric) && set[metric].is_number()) {
            const double value = set[metric].get<double>();
            const auto error = set_error(results, task.name, method.name, metric);
            const auto bound = [&](double sign) {
              return error ? number(value + sign * kOf95Percent * *error) : "";
            };
            text += line({field(task.name), field(method.name), metric, number(value), bound(-1), bound(1),
                          field(set, "pictures"), ""});
          } else if (set.contains(metric)) {
            text += line({field(task.name), field(method.name), metric, "", "", "", "", "unavailable"});
          }
      }
    }
  return text;
}

std::string runtime_csv(const Results& results) {
  std::string text = line({"task", "method", "image", "network_calls", "seconds"});
  for (const Json& row : results.rows)
    text += line({field(row, "task"), field(row, "method"), field(row, "image"), field(row, "network_calls"),
                  field(row, "seconds")});
  return text;
}

Json results_json(const Results& results, const Plan& plan) {
  return {{"format", "dpg-results-1"},
          {"plan", results.plan},
          {"environment", results.environment},
          {"missing", results.missing},
          {"rows", results.rows},
          {"sets", results.sets},
          {"summary", summary_json(results, plan)},
          {"cannot", results.cannot}};
}

}  // namespace dpg::evaluate
