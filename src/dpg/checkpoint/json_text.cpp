#include "dpg/checkpoint/json_text.h"

#include <unordered_set>
#include <vector>

#include "dpg/checkpoint/byte_reader.h"

namespace dpg::checkpoint {

nlohmann::json parse_json(std::string_view text, int max_depth, const std::string& file) {
  using Json = nlohmann::json;
  check(text.size() <= kMaxJsonText, "the JSON in ", file, " has ", text.size(), " bytes; at most ",
        kMaxJsonText, " are read");

  std::vector<std::unordered_set<std::string>> keys;  // of the objects that are open
  const auto guard = [&](int depth, Json::parse_event_t event, Json& parsed) {
    switch (event) {
      case Json::parse_event_t::object_start:
        keys.emplace_back();
        [[fallthrough]];
      case Json::parse_event_t::array_start:
        check(depth < max_depth, "the JSON in ", file, " is nested deeper than ", max_depth, " levels");
        break;
      case Json::parse_event_t::object_end:
        keys.pop_back();
        break;
      case Json::parse_event_t::key: {
        const auto& key = parsed.get_ref<const std::string&>();
        check(keys.back().insert(key).second, "the JSON in ", file, " has the key ", printable(key),
              " twice");
        break;
      }
      default:
        break;
    }
    return true;
  };
  try {
    return Json::parse(text.begin(), text.end(), guard);
  } catch (const Json::exception& error) {
    fail("the JSON in ", file, " cannot be read: ", printable(error.what()));
  }
}

}  // namespace dpg::checkpoint
