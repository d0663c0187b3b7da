#include <algorithm>
#include <cstdio>

#include "dpg/core/error.h"
#include "dpg/evaluate/compare.h"

namespace dpg::evaluate {
namespace {

constexpr std::size_t kNamedAtMost = 10;

std::string number(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.5g", value);
  return text;
}

std::string change(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%+.3g", value);
  return text;
}

std::string line(const std::string& metric, const std::string& a, const std::string& b,
                 const std::string& difference, const std::string& interval, const std::string& verdict) {
  const auto left = [](const std::string& text, std::size_t width) {
    return text + std::string(text.size() < width ? width - text.size() : 0, ' ');
  };
  const auto right = [](const std::string& text, std::size_t width) {
    return std::string(text.size() < width ? width - text.size() : 0, ' ') + text;
  };
  return str("  ", left(metric, 16), right(a, 11), right(b, 11), right(difference, 11), "  ",
             left(interval, 22), verdict, "\n");
}

std::string line(const MetricComparison& metric, std::size_t pictures) {
  const PairedDifference& difference = metric.difference;
  std::string verdict = metric.verdict;
  if (static_cast<std::size_t>(difference.pairs) < pictures)
    verdict += str(" (", difference.pairs, " of ", pictures, " pictures have it)");
  const std::string interval =
      difference.pairs < 2 ? "" : str("[", change(difference.low), ", ", change(difference.high), "]");
  return line(metric.metric, number(metric.mean_a), number(metric.mean_b), change(difference.mean), interval,
              verdict);
}

std::string line(const SetComparison& set) {
  const auto text = [](const std::optional<double>& value) { return value ? number(*value) : "-"; };
  return line(set.metric, text(set.a), text(set.b), set.a && set.b ? change(*set.b - *set.a) : "", "",
              set.verdict);
}

// "only in A (2): x, y"; nothing where there are none.
std::string only(const char* where, const std::vector<std::string>& names, const char* indent) {
  if (names.empty()) return "";
  std::string text = str(indent, "only in ", where, " (", names.size(), "): ");
  for (std::size_t i = 0; i < std::min(names.size(), kNamedAtMost); ++i) text += (i ? "; " : "") + names[i];
  return text + (names.size() > kNamedAtMost ? "; ..." : "") + "\n";
}

Json as_json(const MetricComparison& metric) {
  return {{"metric", metric.metric},
          {"mean_a", metric.mean_a},
          {"mean_b", metric.mean_b},
          {"difference", metric.difference.mean},
          {"low", metric.difference.low},
          {"high", metric.difference.high},
          {"pictures", metric.difference.pairs},
          {"verdict", metric.verdict}};
}

Json as_json(const SetComparison& set) {
  const auto value = [](const std::optional<double>& number) { return number ? Json(*number) : Json(); };
  return {{"metric", set.metric}, {"a", value(set.a)}, {"b", value(set.b)}, {"verdict", set.verdict}};
}

}  // namespace

std::string comparison_text(const Comparison& comparison) {
  std::string text;
  for (const MethodComparison& method : comparison.methods) {
    text += method.task + ": " + method.method_a;
    if (method.method_b != method.method_a) text += " (A) against " + method.method_b + " (B)";
    text += str(", ", method.pictures, method.pictures == 1 ? " picture\n" : " pictures\n");
    if (method.pictures > 0) text += line("", "A", "B", "B - A", "95 % interval", "B is");
    for (const MetricComparison& metric : method.metrics) text += line(metric, method.pictures);
    for (const SetComparison& set : method.sets) text += line(set);
    text += only("A", method.only_in_a, "  ") + only("B", method.only_in_b, "  ") + "\n";
  }
  text += only("A", comparison.only_in_a, "") + only("B", comparison.only_in_b, "");
  for (const std::string& note : comparison.notes) text += "note: " + note + "\n";
  return text;
}

Json comparison_json(const Comparison& comparison) {
  Json methods = Json::array();
  for (const MethodComparison& method : comparison.methods) {
    Json metrics = Json::array(), sets = Json::array();
    for (const MetricComparison& metric : method.metrics) metrics.push_back(as_json(metric));
    for (const SetComparison& set : method.sets) sets.push_back(as_json(set));
    methods.push_back({{"task", method.task},
                       {"method_a", method.method_a},
                       {"method_b", method.method_b},
                       {"pictures", method.pictures},
                       {"metrics", metrics},
                       {"sets", sets},
                       {"only_in_a", method.only_in_a},
                       {"only_in_b", method.only_in_b}});
  }
  return {{"format", "dpg-comparison-1"},
          {"methods", methods},
          {"only_in_a", comparison.only_in_a},
          {"only_in_b", comparison.only_in_b},
          {"notes", comparison.notes}};
}

}  // namespace dpg::evaluate
