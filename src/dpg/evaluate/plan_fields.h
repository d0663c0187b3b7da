// Reads the members of one JSON object of a plan. Every failure says where in which file, and what is wanted.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "dpg/core/error.h"

namespace dpg::evaluate {

class PlanFields {
 public:
  // `where`: "plan.json", "plan.json, tasks[2]".
  PlanFields(const nlohmann::ordered_json& object, std::string where)
      : object_(object), where_(std::move(where)) {
    check(object.is_object(), where_, " must be a JSON object");
  }

  const nlohmann::ordered_json* find(const std::string& key) {
    known_.insert(key);
    const auto found = object_.find(key);
    return found == object_.end() || found->is_null() ? nullptr : &*found;
  }

  std::string text(const std::string& key, const std::string& fallback) {
    const auto* value = find(key);
    if (value == nullptr) return fallback;
    check(value->is_string(), where_, ": \"", key, "\" must be a text");
    return value->get<std::string>();
  }

  std::string required_text(const std::string& key, const std::string& example) {
    const std::string value = text(key, "");
    check(!value.empty(), where_, " needs \"", key, "\", as in ", example);
    return value;
  }

  std::int64_t integer(const std::string& key, std::int64_t fallback, std::int64_t least, std::int64_t most) {
    const auto* value = find(key);
    if (value == nullptr) return fallback;
    check(value->is_number_integer() && value->get<std::int64_t>() >= least &&
              value->get<std::int64_t>() <= most,
          where_, ": \"", key, "\" must be a whole number from ", least, " to ", most);
    return value->get<std::int64_t>();
  }

  std::vector<std::string> texts(const std::string& key) {
    const auto* value = find(key);
    if (value == nullptr) return {};
    std::vector<std::string> list;
    check(value->is_array(), where_, ": \"", key, "\" must be a list of texts");
    for (const auto& one : *value) {
      check(one.is_string(), where_, ": \"", key, "\" must be a list of texts");
      list.push_back(one.get<std::string>());
    }
    return list;
  }

  nlohmann::ordered_json object(const std::string& key) {
    const auto* value = find(key);
    if (value == nullptr) return nlohmann::ordered_json::object();
    check(value->is_object(), where_, ": \"", key, "\" must be a JSON object");
    return *value;
  }

  // The member's items with where each is; must be a list that is not empty.
  std::vector<std::pair<nlohmann::ordered_json, std::string>> items(const std::string& key) {
    const auto* value = find(key);
    check(value != nullptr && value->is_array() && !value->empty(), where_, " needs a list \"", key, "\"");
    std::vector<std::pair<nlohmann::ordered_json, std::string>> list;
    for (const auto& item : *value) list.emplace_back(item, str(where_, ", ", key, "[", list.size(), "]"));
    return list;
  }

  // A misspelt member must not be ignored.
  void finish() const {
    for (const auto& [key, value] : object_.items()) {
      if (known_.count(key) > 0) continue;
      std::string names;
      for (const std::string& name : known_) names += (names.empty() ? "" : ", ") + name;
      fail(where_, " has a member \"", key, "\" that means nothing here; there are: ", names);
    }
  }

  const std::string& where() const { return where_; }

 private:
  const nlohmann::ordered_json& object_;
  std::string where_;
  std::set<std::string> known_;
};

}  // namespace dpg::evaluate
