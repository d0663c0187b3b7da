// What a method's file gives to the catalogue. Only catalog.cpp and the methods include this.
#pragma once

#include "dpg/solve/catalog.h"
#include "dpg/solve/settings.h"

namespace dpg {

struct MethodEntry {
  MethodInfo info;
  Json (*complete)(const Json& settings);  // every setting, filled in; throws for a wrong one
  std::unique_ptr<Solver> (*make)(const Json& settings);
  std::int64_t (*network_calls)(const Json& settings);  // forward passes for one picture
};

// One for each step, unless the method's file says otherwise by an overload of its own.
template <class Options>
std::int64_t network_calls(const Options& options) {
  if constexpr (requires { options.sampler.steps; })
    return options.sampler.steps;
  else
    return options.steps;
}

template <class Options>
Options read_settings(const std::string& method, const Json& settings) {
  Options options;
  SettingsReader reader(method, settings);
  fields(reader, options);
  reader.finish();
  validate(options);
  return options;
}

// For a method with a struct Options, `fields(Visitor&, Options&)`, `validate(Options)`, a constructor from
// Options, and a `static constexpr const char* kName`.
template <class Method, class Options>
MethodEntry method_entry(MethodInfo info) {
  info.name = Method::kName;
  return {
      std::move(info),
      [](const Json& settings) {
        Options options = read_settings<Options>(Method::kName, settings);
        SettingsWriter writer;
        fields(writer, options);
        return writer.take();
      },
      [](const Json& settings) -> std::unique_ptr<Solver> {
        return std::make_unique<Method>(read_settings<Options>(Method::kName, settings));
      },
      [](const Json& settings) { return network_calls(read_settings<Options>(Method::kName, settings)); }};
}

// One for each method, defined in its file.
MethodEntry dpg_entry();
MethodEntry dps_entry();
MethodEntry mcg_entry();
MethodEntry lgd_mc_entry();
MethodEntry pigdm_entry();
MethodEntry enkg_entry();
MethodEntry ddrm_entry();
MethodEntry ddnm_entry();
MethodEntry ddnm_plus_entry();
MethodEntry diffpir_entry();
MethodEntry red_diff_entry();
MethodEntry daps_entry();

}  // namespace dpg
