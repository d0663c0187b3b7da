// dpg methods, dpg presets: what can stand after --method and --preset.
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "command.h"
#include "dpg/solve/catalog.h"

namespace dpg::cli {
namespace {

using Json = nlohmann::ordered_json;

void print_methods(bool json) {
  Json list = Json::array();
  for (const MethodInfo& info : method_catalog()) {
    const Json settings = default_settings(info.name);
    if (json) {
      list.push_back({{"name", info.name},
                      {"summary", info.summary},
                      {"needs", info.needs},
                      {"paper", info.paper},
                      {"steps", settings["steps"]},
                      {"network_calls", network_calls(info.name, settings)},
                      {"settings", settings}});
      continue;
    }
    std::printf(
        "%-10s %s\n%-10s needs of the operator: %s; %d steps, %lld network calls a picture\n%-10s %s\n"
        "%-10s settings: %s\n\n",
        info.name.c_str(), info.summary.c_str(), "", info.needs.c_str(), settings["steps"].get<int>(),
        static_cast<long long>(network_calls(info.name, settings)), "", info.paper.c_str(), "",
        settings.dump().c_str());
  }
  if (json) std::printf("%s\n", list.dump(2).c_str());
}

void print_presets(bool json) {
  Json list = Json::array();
  for (const std::string& name : preset_names()) {
    const Preset preset = load_preset(name);
    if (json)
      list.push_back({{"name", name},
                      {"method", preset.method},
                      {"about", preset.about},
                      {"operator", preset.op},
                      {"noise", preset.noise},
                      {"settings", Json::parse(preset.settings)}});
    else
      std::printf("%-32s %-8s %s\n", name.c_str(), preset.method.c_str(), preset.about.c_str());
  }
  if (json) std::printf("%s\n", list.dump(2).c_str());
}

void add_list(CLI::App& app, const char* name, const char* help, void (*print)(bool)) {
  CLI::App* command = app.add_subcommand(name, help);
  auto json = std::make_shared<bool>(false);
  command->add_flag("--json", *json, "For programs");
  command->callback([json, print] { print(*json); });
}

}  // namespace

void add_methods_command(CLI::App& app) {
  add_list(app, "methods", "list the methods that restore: needs, steps, network calls, settings, paper",
           print_methods);
  add_list(app, "presets", "list the tuned settings", print_presets);
}

}  // namespace dpg::cli
