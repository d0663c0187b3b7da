#include "dpg/evaluate/plan.h"

#include <algorithm>
#include <set>

#include "dpg/core/error.h"
#include "dpg/core/file.h"
#include "dpg/evaluate/plan_fields.h"

namespace dpg::evaluate {
namespace {

namespace fs = std::filesystem;

constexpr int kMostSamples = 255;

template <class Named>
std::string names_of(const std::vector<Named>& list) {
  std::string names;
  for (const Named& one : list) names += (names.empty() ? "" : ", ") + one.name;
  return names;
}

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : ", ") + word;
  return text;
}

// Tasks and methods are folders.
void check_name(const std::string& name, const std::string& where) {
  const bool plain = !name.empty() && name[0] != '.' && std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '+' || c == '_' || c == '.';
  });
  check(plain, where, ": the name \"", name, "\" becomes a folder; make it of letters, digits, - + _ and .");
  check(name != "truth" && name != "inputs", where, ": \"", name,
        "\" is a folder of dpg's own; choose another name");
}

template <class Named>
void check_unlike(const std::vector<Named>& list, const std::string& where) {
  std::set<std::string> seen;
  for (const Named& one : list)
    check(seen.insert(one.name).second, where, " has two entries called \"", one.name, "\"");
}

std::string with_folder(std::string op, const std::string& there) {
  static const std::string mark = "{plan}";
  for (std::size_t at = op.find(mark); at != std::string::npos; at = op.find(mark, at + there.size()))
    op.replace(at, mark.size(), there);
  return op;
}

std::vector<PlannedTask> read_tasks(PlanFields& plan, const std::string& folder) {
  const Json noises = plan.object("noises");
  std::vector<PlannedTask> tasks;
  for (const auto& [item, where] : plan.items("tasks")) {
    PlanFields fields(item, where);
    PlannedTask task;
    task.family = task.name = fields.required_text("name", "\"name\": \"sr4\"");
    task.title = fields.text("title", task.name);
    task.op_text = fields.required_text("operator", "\"operator\": \"sr:4\"");
    task.op = with_folder(task.op_text, folder);
    task.noise = fields.text("noise", "");
    fields.finish();
    check(!task.noise.empty() || !noises.empty(), where,
          " needs a \"noise\", as in \"gaussian:0.05\" or \"none\" (or the plan a list of \"noises\")");
    if (!task.noise.empty())
      tasks.push_back(task);
    else
      for (const auto& [name, noise] : noises.items()) {
        check(noise.is_string(), plan.where(), ": noises.", name, " must be a text, as in \"poisson:1\"");
        PlannedTask one = task;
        one.name += "-" + name, one.title += ", " + name, one.noise = noise.get<std::string>();
        tasks.push_back(one);
      }
    check_name(tasks.back().name, where);
  }
  check_unlike(tasks, plan.where() + ", tasks");
  return tasks;
}

void check_preset(const Json& preset, const std::string& where) {
  const auto is_side = [](const std::string& text) {
    return !text.empty() && text.size() < 6 &&
           std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
  };
  bool fine = preset.is_string();
  if (preset.is_object() && !preset.empty()) {
    fine = true;
    for (const auto& [side, name] : preset.items()) fine = fine && is_side(side) && name.is_string();
  }
  check(fine, where,
        ": a preset is a name, or names by the pictures' side, as in {\"128\": \"faces128-sr4\"}");
}

// What a method says of itself or of itself in one task.
void check_base(const Json& base, const std::string& where, bool whole) {
  PlanFields fields(base, where);
  fields.text("method", "");
  if (const auto* preset = fields.find("preset")) check_preset(*preset, where);
  fields.object("settings");
  const auto samples = fields.integer("samples", 1, 1, kMostSamples);
  const auto best = fields.integer("best_of", 1, 1, kMostSamples);
  check(samples == 1 || best == 1, where, " has both \"samples\" and \"best_of\"; give one of them");
  check(!whole || base.contains("method"), where, " needs \"method\", one of those of \"dpg methods\"");
  fields.finish();
}

// `tasks` may name tasks, or families of them.
void check_tasks(const std::vector<std::string>& names, const std::vector<PlannedTask>& tasks,
                 const std::string& where) {
  for (const std::string& name : names)
    check(std::any_of(tasks.begin(), tasks.end(),
                      [&](const PlannedTask& task) { return task.name == name || task.family == name; }),
          where, " speaks of a task \"", name, "\"; the tasks are ", names_of(tasks));
}

std::vector<std::string> keys_of(const Json& object) {
  std::vector<std::string> keys;
  for (const auto& [key, value] : object.items()) keys.push_back(key);
  return keys;
}

std::vector<PlannedMethod> read_methods(PlanFields& plan, const std::vector<PlannedTask>& tasks) {
  std::vector<PlannedMethod> methods;
  for (const auto& [item, where] : plan.items("methods")) {
    PlanFields fields(item, where);
    PlannedMethod method;
    for (const char* key : {"method", "preset", "settings", "samples", "best_of"})
      if (const auto* value = fields.find(key)) method.base[key] = *value;
    method.name = fields.text("name", fields.text("method", ""));
    method.title = fields.text("title", method.name);
    method.presets = fields.object("presets");
    method.overrides = fields.object("overrides");
    method.in_tasks = fields.texts("tasks");
    fields.finish();
    check_base(method.base, where, true);
    check_name(method.name, where);
    check_tasks(method.in_tasks, tasks, where + ".tasks");
    check_tasks(keys_of(method.presets), tasks, where + ".presets");
    check_tasks(keys_of(method.overrides), tasks, where + ".overrides");
    for (const auto& [task, preset] : method.presets.items())
      check_preset(preset, where + ".presets." + task);
    for (const auto& [task, base] : method.overrides.items())
      check_base(base, where + ".overrides." + task, false);
    methods.push_back(std::move(method));
  }
  check_unlike(methods, plan.where() + ", methods");
  return methods;
}

Evolution read_evolution(PlanFields& plan, const std::vector<PlannedTask>& tasks,
                         const std::vector<PlannedMethod>& methods) {
  Evolution evolution;
  const Json object = plan.object("evolution");
  PlanFields fields(object, plan.where() + ", evolution");
  evolution.runs = static_cast<int>(fields.integer("runs", 1, 1, 1000));
  evolution.picture = static_cast<int>(fields.integer("picture", 0, 0, 1 << 20));
  evolution.tasks = fields.texts("tasks"), evolution.methods = fields.texts("methods");
  fields.finish();
  for (const std::string& name : evolution.tasks)
    check(std::any_of(tasks.begin(), tasks.end(), [&](const auto& one) { return one.name == name; }),
          fields.where(), " speaks of a task \"", name, "\"; the tasks are ", names_of(tasks));
  for (const std::string& name : evolution.methods)
    check(std::any_of(methods.begin(), methods.end(), [&](const auto& one) { return one.name == name; }),
          fields.where(), " speaks of a method \"", name, "\"; the methods are ", names_of(methods));
  return evolution;
}

}  // namespace

const std::vector<std::string>& picture_metrics() {
  static const std::vector<std::string> names = {"psnr", "ssim", "lpips_squeeze", "lpips_vgg", "lpips_alex"};
  return names;
}

const std::vector<std::string>& set_metrics() {
  static const std::vector<std::string> names = {"FID", "KID", "FD-googlenet", "KD-googlenet"};
  return names;
}

const PlannedTask& Plan::task(const std::string& wanted) const {
  for (const PlannedTask& one : tasks)
    if (one.name == wanted) return one;
  fail("the plan has no task \"", wanted, "\"; its tasks are ", names_of(tasks));
}

const PlannedMethod& Plan::method(const std::string& wanted) const {
  for (const PlannedMethod& one : methods)
    if (one.name == wanted) return one;
  fail("the plan has no method \"", wanted, "\"; its methods are ", names_of(methods));
}

Plan parse_plan(const std::string& text, const fs::path& file) {
  const Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false, /*ignore_comments=*/true);
  check(!json.is_discarded(), file.string(),
        " is not JSON; see docs/evaluation.md for what a plan looks like");
  const fs::path folder = file.parent_path();
  PlanFields fields(json, file.string());
  Plan plan;
  plan.folder = fs::absolute(folder.empty() ? "." : folder).lexically_normal().string();
  plan.name = fields.text("name", file.stem().string());
  plan.title = fields.text("title", plan.name);
  plan.about = fields.text("about", "");
  const std::string images = fields.text("images", "");
  if (!images.empty()) plan.images = (folder / images).lexically_normal();
  plan.first = static_cast<int>(fields.integer("first", 0, 0, 1 << 23));
  plan.count = static_cast<int>(fields.integer("count", 0, 0, 1 << 23));
  plan.size = static_cast<int>(fields.integer("size", 0, 0, 16384));
  plan.seed = static_cast<std::uint64_t>(fields.integer("seed", 0, 0, std::int64_t{1} << 53));
  plan.batch = static_cast<int>(fields.integer("batch", 0, 0, 4096));
  plan.shown = static_cast<int>(fields.integer("shown", 4, 0, 64));
  plan.tasks = read_tasks(fields, plan.folder);
  plan.methods = read_methods(fields, plan.tasks);
  plan.evolution = read_evolution(fields, plan.tasks, plan.methods);
  plan.metrics = fields.texts("metrics");
  if (plan.metrics.empty()) plan.metrics = {"psnr", "ssim", "lpips_squeeze", "FID", "KID", "FD-googlenet"};
  fields.finish();
  std::vector<std::string> known = picture_metrics();
  known.insert(known.end(), set_metrics().begin(), set_metrics().end());
  for (const std::string& metric : plan.metrics)
    check(std::find(known.begin(), known.end(), metric) != known.end(), file.string(),
          ": there is no metric \"", metric, "\"; there are ", joined(known));
  return plan;
}

Plan part_of(Plan plan, const std::vector<std::string>& tasks, const std::vector<std::string>& methods) {
  check_tasks(tasks, plan.tasks, "the list of tasks");
  for (const std::string& name : methods) plan.method(name);
  std::erase_if(plan.tasks, [&](const PlannedTask& one) { return !among(tasks, one); });
  std::erase_if(plan.methods, [&](const PlannedMethod& one) {
    return !methods.empty() && std::find(methods.begin(), methods.end(), one.name) == methods.end();
  });
  const bool any = std::any_of(plan.methods.begin(), plan.methods.end(), [&](const PlannedMethod& method) {
    return std::any_of(plan.tasks.begin(), plan.tasks.end(),
                       [&](const PlannedTask& task) { return method.takes(task); });
  });
  check(any, "the plan runs none of the methods ", names_of(plan.methods), " in any of the tasks ",
        names_of(plan.tasks), "; name others");
  return plan;
}

Plan read_plan(const fs::path& file) {
  check(fs::exists(file), "there is no plan ", file.string(),
        "; plans that come with the project are in its folder plans");
  return parse_plan(read_text(file), file);
}

}  // namespace dpg::evaluate
