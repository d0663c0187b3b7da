// What a method of a plan is run with in one task.
#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "dpg/evaluate/plan.h"

namespace dpg::evaluate {
namespace {

std::string preset_for(const Json& preset, int side) {
  if (preset.is_string()) return preset.get<std::string>();
  std::string nearest;
  double least = 0;
  for (const auto& [text, name] : preset.items()) {
    const double distance = std::abs(std::log2(std::max(1.0, std::strtod(text.c_str(), nullptr)) / side));
    if (!nearest.empty() && distance >= least) continue;
    nearest = name.get<std::string>(), least = distance;
  }
  return nearest;
}

// Settings are merged one by one; another method does not take the first one's.
void replace_members(Json& all, const Json& replacements) {
  if (replacements.contains("method") && replacements["method"] != all["method"]) {
    all.erase("preset");
    all.erase("settings");
  }
  for (const auto& [member, value] : replacements.items()) {
    if (member == "settings" && all.contains("settings"))
      all["settings"].update(value);
    else
      all[member] = value;
  }
}

}  // namespace

bool among(const std::vector<std::string>& names, const PlannedTask& task) {
  return names.empty() || std::any_of(names.begin(), names.end(), [&](const std::string& one) {
           return one == task.name || one == task.family;
         });
}

bool PlannedMethod::takes(const PlannedTask& task) const {
  return among(in_tasks, task);
}

MethodSettings PlannedMethod::in(const PlannedTask& task, int side) const {
  // What is said of one task is nearer to it than what is said of its family, and comes last.
  std::vector<std::string> keys = {task.family};
  if (task.name != task.family) keys.push_back(task.name);
  Json all = base;
  for (const std::string& key : keys)
    if (presets.contains(key)) all["preset"] = presets[key];
  for (const std::string& key : keys)
    if (overrides.contains(key)) replace_members(all, overrides[key]);
  MethodSettings result;
  result.method = all["method"].get<std::string>();
  if (all.contains("preset")) result.preset = preset_for(all["preset"], side);
  if (all.contains("settings")) result.settings = all["settings"];
  result.best = all.value("best_of", 1) > 1;
  result.samples = result.best ? all["best_of"].get<int>() : all.value("samples", 1);
  return result;
}

}  // namespace dpg::evaluate
