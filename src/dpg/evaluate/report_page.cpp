#include "dpg/evaluate/report_page.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "dpg/core/error.h"
#include "dpg/core/file.h"
#include "dpg/evaluate/statistics.h"
#include "dpg/image/transform.h"
#include "dpg/report/markup.h"
#include "dpg/report/plot.h"

namespace dpg::evaluate {
namespace {

namespace fs = std::filesystem;

constexpr int kPictureWidth = 160;
constexpr int kMostRuns = 10;  // pictures that stand for repetitions where the plan has none
constexpr std::uint64_t kBandSeed = 1;

struct Course {
  std::vector<double> t, residual;
  double floor = std::nan("");
};

bool read_course(const fs::path& file, Course& course) {
  if (!fs::exists(file)) return false;
  const Json json = Json::parse(read_text(file), nullptr, /*allow_exceptions=*/false);
  if (!json.is_object() || !json.contains("steps")) return false;
  for (const Json& step : json["steps"]) {
    course.t.push_back(step.value("t", 0.0));
    course.residual.push_back(step["residual"].is_number() ? step["residual"].get<double>() : std::nan(""));
  }
  if (json["noise_floor"].is_number()) course.floor = json["noise_floor"].get<double>();
  return !course.t.empty();
}

// The repetitions of one picture; where there are none, the first pictures.
std::vector<Course> courses_of(const Plan& plan, const std::vector<std::string>& pictures,
                               const RunFolder& folder, const PlannedTask& task, const PlannedMethod& method,
                               bool& repeated) {
  std::vector<Course> courses;
  const auto picture = static_cast<std::size_t>(plan.evolution.picture);
  for (int run = 0; picture < pictures.size() && run < plan.evolution.runs; ++run) {
    Course course;
    if (read_course(folder.file({task.name, method.name, pictures[picture], run}, ".trace.json"), course))
      courses.push_back(std::move(course));
  }
  repeated = courses.size() > 1;
  if (repeated) return courses;
  courses.clear();
  for (std::size_t i = 0; i < pictures.size() && courses.size() < kMostRuns; ++i) {
    Course course;
    if (read_course(folder.file({task.name, method.name, pictures[i], 0}, ".trace.json"), course))
      courses.push_back(std::move(course));
  }
  return courses;
}

PlotSeries series_of(const std::string& name, const std::vector<Course>& courses) {
  PlotSeries series;
  series.name = name;
  for (std::size_t k = 0; k < courses[0].t.size(); ++k) {
    std::vector<double> values;
    for (const Course& course : courses)
      if (k < course.residual.size() && std::isfinite(course.residual[k]))
        values.push_back(course.residual[k]);
    if (values.empty()) continue;
    const auto interval = bootstrap_mean(values, kBandSeed, 500);
    series.x.push_back(courses[0].t[k]);
    series.y.push_back(interval.mean);
    series.lower.push_back(interval.low);
    series.upper.push_back(interval.high);
  }
  return series;
}

Image picture_or_none(const fs::path& file) {
  return fs::exists(file) ? to_rgb(read_image(file)) : Image{};
}

Facts facts_of(const Json& object) {
  Facts facts;
  for (const auto& [name, value] : object.items())
    facts.emplace_back(name, value.is_string() ? value.get<std::string>()
                                               : value.dump(-1, ' ', false, Json::error_handler_t::replace));
  return facts;
}

// What could not be measured and why, and what to know about what was.
void add_remarks(Page& page, const Plan& plan, const Results& results) {
  Facts missing, notes;
  for (const std::string& metric : plan.metrics) {
    if (const std::string why = set_missing(results, metric); !why.empty()) missing.emplace_back(metric, why);
    if (const std::string note = set_note(results, metric); !note.empty()) notes.emplace_back(metric, note);
  }
  if (results.environment.contains("unavailable"))
    for (const auto& [metric, why] : results.environment["unavailable"].items())
      missing.emplace_back(metric, why.get<std::string>());
  if (!missing.empty()) page.heading("Not measured").facts(missing);
  if (!notes.empty()) page.heading("Remarks").facts(notes);
}

// As it was given: its members, and each method in a line of its own.
void add_plan(Page& page, const Json& plan) {
  Json rest = plan;
  for (const char* shown : {"title", "about", "tasks", "methods"}) rest.erase(shown);
  Facts facts = facts_of(rest);
  if (plan.contains("methods"))
    for (const Json& method : plan["methods"])
      facts.emplace_back(str("method ", method.value("name", method.value("method", ""))),
                         method.dump(-1, ' ', false, Json::error_handler_t::replace));
  page.heading("Plan").facts(facts);
}

}  // namespace

void add_evolution(Page& page, const Plan& plan, const std::vector<std::string>& pictures,
                   const RunFolder& folder, const Results& results) {
  const auto listed = [](const std::vector<std::string>& names, const std::string& name) {
    return names.empty() || std::find(names.begin(), names.end(), name) != names.end();
  };
  bool begun = false;
  for (const PlannedTask& task : plan.tasks) {
    if (!listed(plan.evolution.tasks, task.name)) continue;
    Plot plot;
    plot.title = "residual while restoring, " + task.title;
    plot.x_label = "time step t", plot.y_label = "||y - A(x0)||";
    plot.y_scale = AxisScale::log, plot.x_falls = true;
    std::size_t runs = 0;
    bool repeated = false;
    for (const PlannedMethod& method : plan.methods) {
      if (!listed(plan.evolution.methods, method.name) || !method.takes(task) ||
          !cannot_because(results, task.name, method.name).empty())
        continue;
      const std::vector<Course> courses = courses_of(plan, pictures, folder, task, method, repeated);
      if (courses.empty()) continue;
      runs = std::max(runs, courses.size());
      plot.series.push_back(series_of(method.title, courses));
      if (courses[0].floor > 0) plot.reference = PlotReference{courses[0].floor, "noise floor"};
    }
    if (plot.series.empty()) continue;
    if (!begun) page.heading("How the residual falls");
    begun = true;
    const std::string what = runs < 2 ? std::string("One run.")
                             : repeated
                                 ? str("Mean over ", runs, " runs on one picture with different seeds.")
                                 : str("Mean over the runs on ", runs, " pictures.");
    page.figure(plot_svg(plot), task.title + ". " + what +
                                    (runs < 2 ? "" : " The band is the mean's 95 % interval (bootstrap)."));
  }
}

void add_pictures(Page& page, const Plan& plan, const std::vector<std::string>& pictures,
                  const RunFolder& folder, const Results& results, const PlannedTask& task) {
  std::vector<std::string> header = {"input"};
  std::vector<const PlannedMethod*> methods;
  for (const PlannedMethod& method : plan.methods)
    if (method.takes(task) && cannot_because(results, task.name, method.name).empty()) {
      methods.push_back(&method);
      header.push_back(method.title);
    }
  header.emplace_back("truth");
  std::vector<PictureRow> rows;
  for (std::size_t i = 0; i < std::min(pictures.size(), static_cast<std::size_t>(plan.shown)); ++i) {
    const std::string& name = pictures[i];
    const Image truth = picture_or_none(folder.truth(name));
    if (truth.data.empty()) continue;
    Image input = picture_or_none(folder.input(task.name, name));
    // Measurements may be smaller than the picture: shown at its size.
    if (!input.data.empty() && (input.height != truth.height || input.width != truth.width))
      input = resize(input, truth.height, truth.width);
    PictureRow row{name, {{input, "input of " + name}}};
    for (const PlannedMethod* method : methods)
      row.pictures.push_back({picture_or_none(folder.file({task.name, method->name, name, 0}, ".png")),
                              str(name, " by ", method->title)});
    for (std::size_t m = 0; m < methods.size(); ++m)
      if (row.pictures[m + 1].picture.data.empty()) row.pictures[m + 1].caption = "not there yet";
    row.pictures.push_back({truth, "truth of " + name});
    rows.push_back(std::move(row));
  }
  page.picture_table(header, rows, kPictureWidth);
}

std::string report_page(const Plan& plan, const std::vector<std::string>& pictures, const RunFolder& folder,
                        const Results& results) {
  Page page(plan.title);
  if (!plan.about.empty()) page.text(plan.about);
  page.text(str(pictures.size(), pictures.size() == 1 ? " picture, " : " pictures, ", plan.tasks.size(),
                plan.tasks.size() == 1 ? " task, " : " tasks, ", plan.methods.size(),
                plan.methods.size() == 1 ? " method." : " methods."));
  if (results.missing > 0)
    page.text(str("Not finished: ", results.missing, " restorations are still to be done."));
  add_overview(page, plan, results);
  for (const PlannedTask& task : plan.tasks) {
    page.heading(task.title);
    add_task_table(page, plan, results, task);
    add_pictures(page, plan, pictures, folder, results, task);
  }
  add_runtime(page, plan, results);
  add_evolution(page, plan, pictures, folder, results);
  add_remarks(page, plan, results);
  Json environment = results.environment;
  environment.erase("unavailable");
  page.heading("Environment").facts(facts_of(environment));
  add_plan(page, results.plan);
  return page.html();
}

}  // namespace dpg::evaluate
