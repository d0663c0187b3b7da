#include "dpg/report/trace.h"

#include <cmath>
#include <nlohmann/json.hpp>

namespace dpg {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kVersion = 1;

Json number(double value) {
  return std::isfinite(value) ? Json(value) : Json(nullptr);
}

// File names need not be UTF-8; JSON must be.
std::string compact(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace

std::string trace_json(const Trace& trace) {
  const std::pair<const char*, Json> fields[] = {
      {"format", "dpg trace"},
      {"version", kVersion},
      {"title", trace.title},
      {"method", trace.method},
      {"operator", trace.op},
      {"noise", trace.noise},
      {"noise_floor", number(trace.noise_floor)},
  };
  std::string out = "{\n";
  for (const auto& [name, value] : fields)
    out += "  \"" + std::string(name) + "\": " + compact(value) + ",\n";
  out += "  \"steps\": [";
  for (std::size_t i = 0; i < trace.steps.size(); ++i) {
    const TraceStep& step = trace.steps[i];
    const Json line = {
        {"t", step.t}, {"residual", number(step.residual)}, {"strength", number(step.strength)}};
    out += (i == 0 ? "\n    " : ",\n    ") + compact(line);
  }
  Json frames = Json::array();
  for (const TraceFrame& frame : trace.frames) frames.push_back(frame.t);
  return out + (trace.steps.empty() ? "" : "\n  ") + "],\n  \"frames\": " + compact(frames) + "\n}\n";
}

}  // namespace dpg
