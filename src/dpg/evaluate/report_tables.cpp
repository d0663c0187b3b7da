// The tables of an evaluation's report.
#include <algorithm>
#include <cmath>
#include <map>

#include "dpg/core/error.h"
#include "dpg/evaluate/report_page.h"
#include "dpg/evaluate/statistics.h"
#include "dpg/report/markup.h"

namespace dpg::evaluate {
namespace {

const std::string kUp = "\u00a0\u2191", kDown = "\u00a0\u2193";  // arrows: which way is better

bool wanted(const Plan& plan, const std::string& metric) {
  return std::find(plan.metrics.begin(), plan.metrics.end(), metric) != plan.metrics.end();
}

bool is_set_metric(const std::string& metric) {
  return std::find(set_metrics().begin(), set_metrics().end(), metric) != set_metrics().end();
}

// Whether any task and method has it.
bool available(const Plan& plan, const Results& results, const std::string& metric) {
  for (const PlannedTask& task : plan.tasks)
    for (const PlannedMethod& method : plan.methods)
      if (is_set_metric(metric) ? set_value(results, task.name, method.name, metric).has_value()
                                : has_mean(results, task.name, method.name, metric))
        return true;
  return false;
}

std::string first_available(const Plan& plan, const Results& results, const std::vector<std::string>& order) {
  for (const std::string& metric : order)
    if (wanted(plan, metric) && available(plan, results, metric)) return metric;
  return "";
}

std::string column_title(const std::string& metric) {
  const MetricStyle style = metric_style(metric);
  return style.title + (style.better > 0 ? kUp : style.better < 0 ? kDown : "");
}

struct Value {
  double number = std::nan("");
  std::string text = "\u2013";
};

Value value_of(const Results& results, const std::string& task, const std::string& method,
               const std::string& metric) {
  const int digits = metric_style(metric).digits;
  if (is_set_metric(metric)) {
    const auto value = set_value(results, task, method, metric);
    if (!value) return {};
    const auto error = set_error(results, task, method, metric);
    const std::string width = error ? " \u00b1 " + markup::fixed(kOf95Percent * *error, digits) : "";
    return {*value, markup::fixed(*value, digits) + width};
  }
  const auto mean = mean_of(results, task, method, metric);
  return mean ? Value{mean->mean, mean->text(digits)} : Value{};
}

// The cells of these metrics in one task, one row for each method; the best of each column marked.
std::vector<std::vector<TableCell>> cells_of(const Plan& plan, const Results& results,
                                             const PlannedTask& task,
                                             const std::vector<std::string>& metrics) {
  std::vector<std::vector<TableCell>> rows(plan.methods.size(), std::vector<TableCell>(metrics.size()));
  for (std::size_t c = 0; c < metrics.size(); ++c) {
    std::vector<TableCell*> column;
    std::vector<double> numbers;
    for (std::size_t m = 0; m < plan.methods.size(); ++m) {
      const Value value = value_of(results, task.name, plan.methods[m].name, metrics[c]);
      rows[m][c].text = value.text;
      column.push_back(&rows[m][c]);
      numbers.push_back(value.number);
    }
    const MetricStyle style = metric_style(metrics[c]);
    emphasise(column, numbers, style.digits, style.better);
  }
  return rows;
}

void append(std::vector<TableCell>& row, const std::vector<TableCell>& more) {
  row.insert(row.end(), more.begin(), more.end());
}

}  // namespace

MetricStyle metric_style(const std::string& metric) {
  static const std::map<std::string, MetricStyle> styles = {
      {"psnr", {"PSNR", 2, 1}},
      {"ssim", {"SSIM", 3, 1}},
      {"lpips_squeeze", {"LPIPS squeeze", 4, -1}},
      {"lpips_vgg", {"LPIPS VGG", 4, -1}},
      {"lpips_alex", {"LPIPS Alex", 4, -1}},
      {"FID", {"FID", 2, -1}},
      {"KID", {"KID", 5, -1}},
      {"FD-googlenet", {"FD GoogLeNet", 2, -1}},
      {"KD-googlenet", {"KD GoogLeNet", 5, -1}},
      {"residual_ratio", {"residual / floor", 3, 0}},
      {"seconds", {"seconds", 2, -1}},
      {"network_calls", {"network calls", 0, 0}},
  };
  const auto found = styles.find(metric);
  return found == styles.end() ? MetricStyle{metric, 3, 0} : found->second;
}

void emphasise(std::vector<TableCell*> cells, const std::vector<double>& values, int digits, int better) {
  if (better == 0) return;
  // Compared as they are shown: what a reader cannot tell apart must not be ranked.
  const double unit = std::pow(10.0, digits);
  std::vector<double> shown;
  for (const double value : values)
    if (!std::isnan(value)) shown.push_back(std::isinf(value) ? value : std::round(value * unit));
  std::sort(shown.begin(), shown.end());
  shown.erase(std::unique(shown.begin(), shown.end()), shown.end());
  if (better > 0) std::reverse(shown.begin(), shown.end());
  if (shown.size() < 2) return;  // one value, or all alike: nothing is best
  for (std::size_t i = 0; i < cells.size(); ++i) {
    if (std::isnan(values[i])) continue;
    const double value = std::isinf(values[i]) ? values[i] : std::round(values[i] * unit);
    if (value == shown[0]) cells[i]->emphasis = Emphasis::best;
    if (value == shown[1]) cells[i]->emphasis = Emphasis::second;
  }
}

void add_overview(Page& page, const Plan& plan, const Results& results) {
  std::vector<std::string> metrics;
  for (const auto& order : {std::vector<std::string>{"FID", "FD-googlenet"},
                            {"lpips_vgg", "lpips_squeeze", "lpips_alex"},
                            {"psnr"}})
    if (const std::string metric = first_available(plan, results, order); !metric.empty())
      metrics.push_back(metric);
  if (metrics.empty()) return;
  std::vector<ColumnGroup> groups = {{"", {"Method"}}};
  std::vector<std::vector<TableCell>> rows;
  for (const PlannedMethod& method : plan.methods) rows.push_back({{method.title}});
  for (const PlannedTask& task : plan.tasks) {
    ColumnGroup group{task.title, {}};
    for (const std::string& metric : metrics) group.columns.push_back(column_title(metric));
    groups.push_back(std::move(group));
    const auto cells = cells_of(plan, results, task, metrics);
    for (std::size_t m = 0; m < rows.size(); ++m) {
      if (cannot_because(results, task.name, plan.methods[m].name).empty())
        append(rows[m], cells[m]);
      else
        append(rows[m], std::vector<TableCell>(metrics.size(), TableCell{"N/A"}));
    }
  }
  page.heading("All tasks");
  page.text(
      "Means over the pictures, \u00b1 half of the 95 % interval (bootstrap over pictures; of distances "
      "between sets the jackknife, where there are six pictures or more). The best of a column is bold, the "
      "second underlined. N/A: the method cannot do the "
      "task; why is said below.");
  page.grouped_table(groups, rows);
}

void add_task_table(Page& page, const Plan& plan, const Results& results, const PlannedTask& task) {
  std::vector<std::string> metrics;
  for (const std::string& metric : plan.metrics)
    if (available(plan, results, metric)) metrics.push_back(metric);
  metrics.emplace_back("residual_ratio");
  ColumnGroup group{"", {}};
  for (const std::string& metric : metrics) group.columns.push_back(column_title(metric));
  const auto cells = cells_of(plan, results, task, metrics);
  std::vector<std::vector<TableCell>> rows;
  for (std::size_t m = 0; m < plan.methods.size(); ++m) {
    if (!plan.methods[m].takes(task)) continue;
    rows.push_back({{plan.methods[m].title}});
    const std::string why = cannot_because(results, task.name, plan.methods[m].name);
    if (why.empty())
      append(rows.back(), cells[m]);
    else if (metrics.size() > 1)
      rows.back().push_back({"cannot: " + why, Emphasis::none, static_cast<int>(metrics.size())});
    else
      rows.back().push_back({"cannot"});
  }
  page.text("Operator: " + task.op + ". Noise: " + task.noise +
            ". The residual ||y - A(x)|| is given as a share of what it is expected to be at the truth.");
  page.grouped_table({{"", {"Method"}}, group}, rows);
}

void add_runtime(Page& page, const Plan& plan, const Results& results) {
  std::vector<std::vector<std::string>> rows;
  for (const PlannedMethod& method : plan.methods)
    for (const PlannedTask& task : plan.tasks) {
      const auto seconds = mean_of(results, task.name, method.name, "seconds");
      if (!seconds) continue;
      const auto mean = [&](const char* what) {
        return markup::significant(mean_of(results, task.name, method.name, what)->mean, 6);
      };
      rows.push_back({method.title, task.title, seconds->text(2), mean("network_calls"),
                      mean("reverse_passes"), mean("operator_calls")});
    }
  if (rows.empty()) return;
  page.heading("Running time");
  page.text("For each picture, without reading, scoring and writing it. A batch's time is divided evenly.");
  page.table({"method", "task", "seconds", "network calls", "reverse passes", "applications of A"}, rows);
}

}  // namespace dpg::evaluate
