// The methods by name.
#pragma once

#include <filesystem>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>

#include "dpg/solve/solver.h"

namespace dpg {

struct MethodInfo {
  std::string name, summary, paper;
  // Of the operator: "black box", "differentiable", "linear" or "spectral", each more than the last; or
  // several that will do, as "linear, or encode and decode" (a picture in, one of the same size out).
  std::string needs;
};
std::span<const MethodInfo> method_catalog();
// Whether an operator of this kind (kind_name, or "encode and decode") gives the method what it needs.
bool takes(const MethodInfo& method, const std::string& kind);

// A method's settings with their defaults, as an object.
nlohmann::ordered_json default_settings(const std::string& method);
// The method with the settings named in `settings`, the others as by default.
std::unique_ptr<Solver> make_solver(const std::string& method, const nlohmann::ordered_json& settings);
// Every setting of the solver that would be made, filled in and checked.
nlohmann::ordered_json complete_settings(const std::string& method, const nlohmann::ordered_json& settings);

// Forward passes of the network for one picture.
std::int64_t network_calls(const std::string& method, const nlohmann::ordered_json& settings);

// A preset: tuned settings with what they are for.
struct Preset {
  std::string name, method, about;
  std::string op, noise;  // what it was tuned for; may be empty
  std::string settings;   // a JSON object as text
  // The picture's values (C*H*W) that a fixed strength belongs to; a step's norm grows with the root of this.
  double strength_values = 0;
};
// A file, or the name of one in the presets folder (without .json). Throws, naming near ones, when there is
// none.
Preset load_preset(const std::string& name_or_file);
std::vector<std::string> preset_names();
// Its settings for pictures with `values` values: a fixed strength is scaled by sqrt(values /
// strength_values).
nlohmann::ordered_json preset_settings(const Preset& preset, double values);

// Where presets are: $DPG_PRESETS, beside the installed program, or in the source tree.
std::filesystem::path presets_folder();

}  // namespace dpg
