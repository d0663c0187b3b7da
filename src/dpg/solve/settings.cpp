#include "dpg/solve/settings.h"

#include <algorithm>

#include "dpg/core/error.h"
#include "dpg/measure/spec.h"

namespace dpg {

SettingsReader::SettingsReader(std::string what, Json json) : what_(std::move(what)), json_(std::move(json)) {
  check(json_.is_object(), "the settings of ", what_, " must be a JSON object");
}

const Json* SettingsReader::find(const char* name) {
  known_.push_back(name);
  const auto at = json_.find(name);
  return at == json_.end() ? nullptr : &*at;
}

void SettingsReader::wrong(const char* name, const char* wanted) const {
  fail(what_, ": the setting ", name, " = ", json_.at(name).dump(), " must be ", wanted);
}

void SettingsReader::operator()(const char* name, int& value) {
  std::int64_t wide = value;
  (*this)(name, wide);
  if (wide < INT32_MIN || wide > INT32_MAX) wrong(name, "a smaller whole number");
  value = static_cast<int>(wide);
}

void SettingsReader::operator()(const char* name, std::int64_t& value) {
  const Json* json = find(name);
  if (!json) return;
  if (!json->is_number_integer()) wrong(name, "a whole number");
  value = json->get<std::int64_t>();
}

void SettingsReader::operator()(const char* name, double& value) {
  const Json* json = find(name);
  if (!json) return;
  if (!json->is_number()) wrong(name, "a number");
  value = json->get<double>();
}

void SettingsReader::operator()(const char* name, bool& value) {
  const Json* json = find(name);
  if (!json) return;
  if (!json->is_boolean()) wrong(name, "true or false");
  value = json->get<bool>();
}

void SettingsReader::operator()(const char* name, std::string& value) {
  const Json* json = find(name);
  if (!json) return;
  if (!json->is_string()) wrong(name, "a text");
  value = json->get<std::string>();
}

void SettingsReader::finish() const {
  for (const auto& [key, value] : json_.items())
    check(std::find(known_.begin(), known_.end(), key) != known_.end(), what_, " has no setting called \"",
          key, "\"; did you mean \"", nearest(key, known_), "\"?");
}

void set_from_text(Json& settings, const std::string& assignment) {
  const std::size_t equals = assignment.find('=');
  check(equals != std::string::npos && equals > 0, "\"", assignment,
        "\" is no setting; write it as NAME=VALUE");
  const std::string value = assignment.substr(equals + 1);
  Json parsed = Json::parse(value, nullptr, /*allow_exceptions=*/false);
  const bool plain = parsed.is_number() || parsed.is_boolean();
  settings[assignment.substr(0, equals)] = plain ? parsed : Json(value);
}

}  // namespace dpg
