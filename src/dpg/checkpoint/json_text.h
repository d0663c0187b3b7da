// JSON from untrusted files: what nlohmann would let pass silently (repeated keys, any depth) is an error
// here.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace dpg::checkpoint {

inline constexpr std::size_t kMaxJsonText = 100'000'000;  // bytes; the limit of the safetensors format

// Parses `text`, which may nest arrays and objects `max_depth` deep. Fails with a sentence that names `file`.
nlohmann::json parse_json(std::string_view text, int max_depth, const std::string& file);

}  // namespace dpg::checkpoint
