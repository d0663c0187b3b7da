#include "dpg/solve/catalog.h"

#include <algorithm>
#include <cmath>

#include "dpg/core/bundled.h"
#include "dpg/core/error.h"
#include "dpg/core/file.h"
#include "dpg/measure/spec.h"
#include "dpg/solve/method_entry.h"

namespace dpg {
namespace {

namespace fs = std::filesystem;

const std::vector<MethodEntry>& entries() {
  static const std::vector<MethodEntry> all = {
      dpg_entry(),  dps_entry(),  mcg_entry(),       lgd_mc_entry(),  pigdm_entry(),    enkg_entry(),
      ddrm_entry(), ddnm_entry(), ddnm_plus_entry(), diffpir_entry(), red_diff_entry(), daps_entry()};
  return all;
}

const MethodEntry& entry(const std::string& method) {
  std::vector<std::string> names;
  for (const MethodEntry& candidate : entries()) {
    if (candidate.info.name == method) return candidate;
    names.push_back(candidate.info.name);
  }
  fail("there is no method called \"", method, "\"; did you mean \"", nearest(method, names),
       "\"? The methods are ", join(names, ", "));
}

}  // namespace

std::span<const MethodInfo> method_catalog() {
  static const std::vector<MethodInfo> infos = [] {
    std::vector<MethodInfo> list;
    for (const MethodEntry& method : entries()) list.push_back(method.info);
    return list;
  }();
  return infos;
}

bool takes(const MethodInfo& method, const std::string& kind) {
  static const std::vector<std::string> ranks = {"black box", "differentiable", "linear", "spectral"};
  const auto rank = [](const std::string& name) {
    return std::find(ranks.begin(), ranks.end(), name) - ranks.begin();
  };
  const bool ranked = std::find(ranks.begin(), ranks.end(), kind) != ranks.end();
  const std::string separator = ", or ";
  for (std::size_t from = 0; from < method.needs.size();) {
    const std::size_t to = std::min(method.needs.find(separator, from), method.needs.size());
    const std::string need = method.needs.substr(from, to - from);
    if (need == kind || (ranked && rank(need) <= rank(kind))) return true;
    from = to + separator.size();
  }
  return false;
}

Json default_settings(const std::string& method) {
  return entry(method).complete(Json::object());
}

Json complete_settings(const std::string& method, const Json& settings) {
  return entry(method).complete(settings);
}

std::unique_ptr<Solver> make_solver(const std::string& method, const Json& settings) {
  return entry(method).make(settings);
}

std::int64_t network_calls(const std::string& method, const Json& settings) {
  return entry(method).network_calls(settings);
}

fs::path presets_folder() {
  return bundled("presets", "DPG_PRESETS", "the folder of presets");
}

std::vector<std::string> preset_names() {
  std::vector<std::string> names;
  for (const auto& file : fs::directory_iterator(presets_folder()))
    if (file.path().extension() == ".json") names.push_back(file.path().stem().string());
  std::sort(names.begin(), names.end());
  return names;
}

Preset load_preset(const std::string& name_or_file) {
  fs::path file = name_or_file;
  if (file.extension() != ".json") {
    const std::vector<std::string> names = preset_names();
    check(std::find(names.begin(), names.end(), name_or_file) != names.end(), "there is no preset called \"",
          name_or_file, "\"; did you mean \"", nearest(name_or_file, names),
          "\"? \"dpg presets\" lists them");
    file = presets_folder() / (name_or_file + ".json");
  }
  const Json json = Json::parse(read_text(file), nullptr, /*allow_exceptions=*/false);
  check(json.is_object() && json.contains("method") && json["method"].is_string() &&
            json.contains("settings") && json["settings"].is_object(),
        file.string(), " is no preset: it must be a JSON object with \"method\" and \"settings\"");
  Preset preset;
  preset.name = file.stem().string();
  preset.method = json["method"].get<std::string>();
  const auto text = [&](const char* key) {
    return json.contains(key) && json[key].is_string() ? json[key].get<std::string>() : std::string();
  };
  preset.about = text("about"), preset.op = text("op"), preset.noise = text("noise");
  preset.settings = json["settings"].dump();
  if (json["settings"].contains("strength") && json["settings"]["strength"].is_number()) {
    check(json.contains("strength_values") && json["strength_values"].is_number() &&
              json["strength_values"].get<double>() > 0,
          file.string(),
          " has a fixed strength; it must say in \"strength_values\" for how many values of a ",
          "picture (channels x height x width) that is");
    preset.strength_values = json["strength_values"].get<double>();
  }
  complete_settings(preset.method, json["settings"]);  // a wrong setting is told now
  return preset;
}

Json preset_settings(const Preset& preset, double values) {
  Json settings = Json::parse(preset.settings);
  if (preset.strength_values > 0)
    settings["strength"] = settings["strength"].get<double>() * std::sqrt(values / preset.strength_values);
  return settings;
}

}  // namespace dpg
