// One HTML page of an evaluation that stands alone: tables, plots, pictures, and what computed them.
#pragma once

#include <string>
#include <vector>

#include "dpg/evaluate/plan.h"
#include "dpg/evaluate/results.h"
#include "dpg/evaluate/store.h"
#include "dpg/report/html.h"

namespace dpg::evaluate {

// What a number is called in tables, how many digits it is shown with, and which way is better.
struct MetricStyle {
  std::string title;
  int digits = 3;
  int better = 0;  // 1: more, -1: less, 0: neither
};
MetricStyle metric_style(const std::string& metric);

// Marks the best value bold and the second underlined, as they are shown: equal texts are equally good.
// values[i] belongs to cells[i]; NaN is no value.
void emphasise(std::vector<TableCell*> cells, const std::vector<double>& values, int digits, int better);

// Methods down, tasks across with a distribution distance, LPIPS and PSNR for each: the layout of the paper's
// Table 1.
void add_overview(Page& page, const Plan& plan, const Results& results);
// One task with every metric: the layout of its Table 2.
void add_task_table(Page& page, const Plan& plan, const Results& results, const PlannedTask& task);
// Seconds and network calls for each picture.
void add_runtime(Page& page, const Plan& plan, const Results& results);
// The residual at each step: its mean over repetitions (or pictures, where there are none) with a band.
void add_evolution(Page& page, const Plan& plan, const std::vector<std::string>& pictures,
                   const RunFolder& folder, const Results& results);
// Input, each method, truth.
void add_pictures(Page& page, const Plan& plan, const std::vector<std::string>& pictures,
                  const RunFolder& folder, const Results& results, const PlannedTask& task);

// All of it. `pictures`: names without extension, in the plan's order.
std::string report_page(const Plan& plan, const std::vector<std::string>& pictures, const RunFolder& folder,
                        const Results& results);

}  // namespace dpg::evaluate
