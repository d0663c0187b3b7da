// A method's options as JSON, and back: presets, manifests and the command line all speak of them by name.
//
// A method lists its fields once, in `void fields(Visitor&, Options&)`, as visit("name", field); the visitors
// below read and write them.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "dpg/sample/sample.h"

namespace dpg {

using Json = nlohmann::ordered_json;

class SettingsWriter {
 public:
  template <class T>
  void operator()(const char* name, T& value) {
    json_[name] = value;
  }
  template <class T>
  void operator()(const char* name, std::optional<T>& value) {
    json_[name] = value ? Json(*value) : Json("auto");
  }
  Json take() { return std::move(json_); }

 private:
  Json json_ = Json::object();
};

class SettingsReader {
 public:
  SettingsReader(std::string what, Json json);
  void operator()(const char* name, int& value);
  void operator()(const char* name, std::int64_t& value);
  void operator()(const char* name, double& value);
  void operator()(const char* name, bool& value);
  void operator()(const char* name, std::string& value);
  void operator()(const char* name, std::optional<int>& value) { number_or_auto(name, value); }
  void operator()(const char* name, std::optional<double>& value) { number_or_auto(name, value); }
  void finish() const;  // throws when a name was given that the method does not have

 private:
  const Json* find(const char* name);
  template <class T>
  void number_or_auto(const char* name, std::optional<T>& value) {  // "auto" is none
    const Json* json = find(name);
    if (!json) return;
    if (*json == "auto") return value.reset();
    if (!json->is_number()) wrong(name, "a number or \"auto\"");
    (*this)(name, value.emplace());
  }
  [[noreturn]] void wrong(const char* name, const char* wanted) const;
  std::string what_;
  Json json_;
  std::vector<std::string> known_;
};

// The sampler's fields, the same in every method that has one.
template <class Visitor>
void sampler_fields(Visitor& visit, SamplerOptions& sampler) {
  visit("sampler", sampler.sampler);
  visit("steps", sampler.steps);
  visit("spacing", sampler.spacing);
  visit("variance", sampler.variance);
  visit("eta", sampler.eta);
}

// "key=value" as a member of a JSON object: a number or true/false where the text is one, otherwise a string.
void set_from_text(Json& settings, const std::string& assignment);

}  // namespace dpg
