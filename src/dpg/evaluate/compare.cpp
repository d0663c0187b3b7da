#include "dpg/evaluate/compare.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <utility>

#include "dpg/core/error.h"
#include "dpg/core/file.h"
#include "dpg/core/jackknife.h"
#include "dpg/core/text.h"

namespace dpg::evaluate {
namespace {

// The numbers of one picture, each the mean over its rows.
class PictureNumbers {
 public:
  void add(const std::string& metric, double value) {
    auto& [sum, count] = sums_[metric];
    sum += value, ++count;
  }
  std::optional<double> find(const std::string& metric) const {
    const auto found = sums_.find(metric);
    if (found == sums_.end()) return {};
    return found->second.first / found->second.second;
  }

 private:
  std::map<std::string, std::pair<double, int>> sums_;
};

using TaskAndMethod = std::pair<std::string, std::string>;

struct Side {
  std::vector<TaskAndMethod> order;  // as in the file
  std::map<TaskAndMethod, std::map<std::string, PictureNumbers>> pictures;
  std::map<TaskAndMethod, Json> sets;
  std::vector<std::string> metrics;  // as in the file

  bool has(const TaskAndMethod& key) const { return pictures.contains(key); }
};

// What tells rows apart, and what says nothing of how good a picture is.
bool is_metric(const std::string& name) {
  static const std::set<std::string> others = {"task", "method", "image", "number", "seed", "noise_floor"};
  return !others.contains(name);
}

TaskAndMethod key_of(const Json& entry) {
  const auto text = [&](const char* name) {
    check(entry.is_object() && entry.contains(name) && entry[name].is_string(),
          "an entry of the results has no ", name, ": ", printable(entry.dump()), "; run dpg eval again");
    return entry[name].get<std::string>();
  };
  return {text("task"), text("method")};
}

Side read_side(const Json& results) {
  Side side;
  for (const Json& row : results.at("rows")) {
    const TaskAndMethod key = key_of(row);
    check(row.contains("image") && row["image"].is_string(),
          "a row of the results has no image: ", printable(row.dump()), "; run dpg eval again");
    if (!side.has(key)) side.order.push_back(key);
    PictureNumbers& numbers = side.pictures[key][row["image"].get<std::string>()];
    for (const auto& [name, value] : row.items()) {
      // An infinite PSNR is written as text, a metric without weights as null: no numbers to subtract.
      if (!is_metric(name) || !value.is_number()) continue;
      numbers.add(name, value.get<double>());
      if (std::find(side.metrics.begin(), side.metrics.end(), name) == side.metrics.end())
        side.metrics.push_back(name);
    }
  }
  if (results.contains("sets"))
    for (const Json& set : results["sets"]) side.sets[key_of(set)] = set;
  return side;
}

std::string verdict_of(const std::string& metric, double difference) {
  const Direction direction = direction_of(metric);
  if (direction == Direction::none) return "differs";
  return (difference > 0) == (direction == Direction::higher_is_better) ? "better" : "worse";
}

std::string verdict_of(const std::string& metric, const PairedDifference& difference) {
  if (difference.pairs == 1) return "one picture";
  return difference.beyond_noise ? verdict_of(metric, difference.mean) : "within noise";
}

double mean_of(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return sum / static_cast<double>(values.size());
}

std::optional<double> number_in(const Json& set, const std::string& name) {
  if (!set.contains(name) || !set[name].is_number()) return {};
  return set[name].get<double>();
}

std::vector<double> numbers_in(const Json& set, const std::string& name) {
  std::vector<double> numbers;
  if (!set.contains(name) || !set[name].is_array()) return {};
  for (const Json& one : set[name]) {
    if (!one.is_number()) return {};
    numbers.push_back(one.get<double>());
  }
  return numbers;
}

// Both sets are compared with the same truth and show the same pictures: their errors have much in common.
// Where it is known what becomes of both without the same parts of the pictures, the difference is looked at
// part by part. Otherwise its error is at most what it would be if they had nothing in common.
std::optional<double> error_of_difference(const std::string& metric, const Json& a, const Json& b) {
  const std::vector<double> without_a = numbers_in(a, metric + " leaving out"),
                            without_b = numbers_in(b, metric + " leaving out");
  if (without_a.size() == without_b.size() && without_a.size() >= 2) {
    std::vector<double> differences;
    for (std::size_t i = 0; i < without_a.size(); ++i) differences.push_back(without_b[i] - without_a[i]);
    return jackknife_error(differences);
  }
  const auto error_a = number_in(a, metric + " standard error"),
             error_b = number_in(b, metric + " standard error");
  if (!error_a || !error_b) return {};
  return std::hypot(*error_a, *error_b);
}

std::string set_verdict(const SetComparison& set, const Json& a, const Json& b, bool same_pictures) {
  if (!set.a && !set.b) return "unavailable in both";
  if (!set.a || !set.b) return set.a ? "unavailable in B" : "unavailable in A";
  if (!same_pictures) return "sets of different pictures: not comparable";
  const double difference = *set.b - *set.a;
  if (difference == 0) return "equal";
  const auto error = error_of_difference(set.metric, a, b);
  if (!error) return verdict_of(set.metric, difference) + ", without an interval";
  const bool beyond_noise = std::abs(difference) > kOf95Percent * *error;
  return beyond_noise ? verdict_of(set.metric, difference) : "within noise";
}

std::vector<SetComparison> compare_sets(const Json& a, const Json& b, bool same_pictures) {
  std::vector<SetComparison> sets;
  for (const auto& [name, value] : a.items()) {
    if (direction_of(name) == Direction::none || !b.contains(name)) continue;
    SetComparison set{name, number_in(a, name), number_in(b, name), {}};
    set.verdict = set_verdict(set, a, b, same_pictures);
    sets.push_back(std::move(set));
  }
  return sets;
}

MethodComparison compare_pictures(const Side& a, const TaskAndMethod& key_a, const Side& b,
                                  const TaskAndMethod& key_b, std::uint64_t seed) {
  MethodComparison result{key_a.first, key_a.second, key_b.second, 0, {}, {}, {}, {}};
  const auto &of_a = a.pictures.at(key_a), &of_b = b.pictures.at(key_b);
  std::vector<std::pair<const PictureNumbers*, const PictureNumbers*>> pairs;
  for (const auto& [image, numbers] : of_a) {
    const auto other = of_b.find(image);
    if (other == of_b.end())
      result.only_in_a.push_back(image);
    else
      pairs.emplace_back(&numbers, &other->second);
  }
  for (const auto& [image, numbers] : of_b)
    if (!of_a.contains(image)) result.only_in_b.push_back(image);
  result.pictures = pairs.size();

  for (const std::string& metric : a.metrics) {
    std::vector<double> values_a, values_b;
    for (const auto& [one, other] : pairs) {
      const auto value_a = one->find(metric), value_b = other->find(metric);
      if (value_a && value_b) values_a.push_back(*value_a), values_b.push_back(*value_b);
    }
    if (values_a.empty()) continue;
    MetricComparison comparison{
        metric, mean_of(values_a), mean_of(values_b), paired_difference(values_a, values_b, seed), {}};
    comparison.verdict = verdict_of(metric, comparison.difference);
    result.metrics.push_back(std::move(comparison));
  }
  if (a.sets.contains(key_a) && b.sets.contains(key_b))
    result.sets = compare_sets(a.sets.at(key_a), b.sets.at(key_b),
                               result.only_in_a.empty() && result.only_in_b.empty());
  return result;
}

std::string named(const TaskAndMethod& key) {
  return key.first + ", " + key.second;
}

std::string listed(const std::vector<TaskAndMethod>& keys) {
  std::string text;
  for (const TaskAndMethod& key : keys) text += (text.empty() ? "" : "; ") + named(key);
  return text.empty() ? "nothing" : text;
}

// A task of the same name may be another task: other pictures, another noise, another seed.
std::vector<std::string> plan_differences(const Json& a, const Json& b) {
  std::vector<std::string> notes;
  if (!a.contains("plan") || !b.contains("plan") || !a["plan"].is_object() || !b["plan"].is_object())
    return notes;
  static const std::set<std::string> harmless = {"methods", "metrics", "name", "title", "about"};
  std::set<std::string> names;
  for (const Json* plan : {&a["plan"], &b["plan"]})
    for (const auto& [name, value] : plan->items())
      if (!harmless.contains(name)) names.insert(name);
  for (const std::string& name : names)
    if (a["plan"].value(name, Json()) != b["plan"].value(name, Json()))
      notes.push_back("the plans differ in \"" + printable(name) +
                      "\"; the same name may stand for different tasks");
  return notes;
}

}  // namespace

Direction direction_of(const std::string& metric) {
  static const std::set<std::string> costs = {"seconds", "network_calls", "reverse_passes", "operator_calls"};
  // "KID standard error", "FID note": about a metric, and none.
  if (metric.find(' ') != std::string::npos) return Direction::none;
  if (metric == "psnr" || metric == "ssim") return Direction::higher_is_better;
  if (costs.contains(metric) || metric == "FID" || metric == "KID") return Direction::lower_is_better;
  for (const char* start : {"lpips", "FD-", "KD-"})
    if (metric.starts_with(start)) return Direction::lower_is_better;
  return Direction::none;
}

Json read_results(const std::filesystem::path& path) {
  const MappedFile file(path);  // of any size: a large evaluation has many rows
  const auto* text = reinterpret_cast<const char*>(file.bytes().data());
  const Json results = Json::parse(text, text + file.bytes().size(), nullptr, false);
  check(results.is_object() && results.value("format", Json()) == "dpg-results-1" &&
            results.contains("rows") && results["rows"].is_array() &&
            (!results.contains("sets") || results["sets"].is_array()),
        path.string(), " does not hold results of dpg eval (format dpg-results-1); give a results.json");
  return results;
}

Comparison compare_results(const Json& a, const Json& b, const std::optional<MethodPair>& methods,
                           std::uint64_t seed) {
  const Side side_a = read_side(a), side_b = read_side(b);
  Comparison comparison;
  std::set<TaskAndMethod> used_b;
  for (const TaskAndMethod& key : side_a.order) {
    if (methods && key.second != methods->a) continue;
    const TaskAndMethod other = {key.first, methods ? methods->b : key.second};
    if (side_b.has(other)) {
      comparison.methods.push_back(compare_pictures(side_a, key, side_b, other, seed));
      used_b.insert(other);
    } else {
      comparison.only_in_a.push_back(named(key));
    }
  }
  for (const TaskAndMethod& key : side_b.order)
    if (!used_b.contains(key) && (!methods || key.second == methods->b))
      comparison.only_in_b.push_back(named(key));
  check(std::any_of(comparison.methods.begin(), comparison.methods.end(),
                    [](const MethodComparison& method) { return method.pictures > 0; }),
        "nothing is in both results: A has ", listed(side_a.order), " and B has ", listed(side_b.order),
        methods ? ", and --methods names none of A and B that share a task and a picture"
                : "; compare different methods with --methods A,B");
  comparison.notes = plan_differences(a, b);
  return comparison;
}

}  // namespace dpg::evaluate
