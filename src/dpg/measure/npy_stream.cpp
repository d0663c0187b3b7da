#include "dpg/measure/npy_stream.h"

#include <algorithm>
#include <charconv>
#include <string>
#include <string_view>

#include "dpg/core/error.h"

namespace dpg {
namespace {

constexpr std::string_view kMagic = "\x93NUMPY";
constexpr std::size_t kMaxHeader = 65536;
constexpr std::size_t kMaxAxes = 8;

// The start of something unexpected, fit for a message.
std::string shown(std::string_view text) {
  std::string result(text.substr(0, 60));
  std::replace_if(
      result.begin(), result.end(), [](char c) { return c < ' ' || c > '~'; }, '?');
  return result;
}

std::string_view skip_space(std::string_view text) {
  text.remove_prefix(std::min(text.find_first_not_of(" \n"), text.size()));
  return text;
}

// What follows 'key': in the header's dictionary.
std::string_view value_of(std::string_view header, std::string_view key) {
  for (const char quote : {'\'', '"'}) {
    const std::string label = quote + std::string(key) + quote;
    const std::size_t at = header.find(label);
    if (at == std::string_view::npos) continue;
    const std::string_view rest = skip_space(header.substr(at + label.size()));
    if (rest.starts_with(':')) return skip_space(rest.substr(1));
  }
  fail("an NPY header without \"", key, "\": ", shown(header));
}

std::vector<std::int64_t> parse_shape(std::string_view text) {
  check(text.starts_with('('), "an NPY header whose shape is no tuple: ", shown(text));
  text = skip_space(text.substr(1));
  std::vector<std::int64_t> shape;
  while (!text.starts_with(')')) {
    std::int64_t axis = -1;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), axis);
    check(error == std::errc{} && axis >= 0 && shape.size() < kMaxAxes, "an NPY header with a damaged shape");
    shape.push_back(axis);
    text = skip_space(text.substr(static_cast<std::size_t>(end - text.data())));
    if (text.starts_with(',')) {
      text = skip_space(text.substr(1));
    } else {
      check(text.starts_with(')'), "an NPY header with a damaged shape");
    }
  }
  return shape;
}

}  // namespace

std::optional<NpyStreamHeader> parse_npy_start(std::span<const std::byte> bytes) {
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  const std::size_t seen = std::min(text.size(), kMagic.size());
  check(text.substr(0, seen) == kMagic.substr(0, seen), "something that is no NPY array: \"", shown(text),
        "\"");
  if (text.size() < kMagic.size() + 2) return std::nullopt;
  const int version = static_cast<unsigned char>(text[6]);
  check(version >= 1 && version <= 3, "an NPY array of version ", version, " (1 to 3 are read)");
  const std::size_t length_bytes = version == 1 ? 2 : 4, start = 8 + length_bytes;
  if (text.size() < start) return std::nullopt;
  std::size_t length = 0;
  for (std::size_t i = length_bytes; i-- > 0;) length = length << 8 | static_cast<unsigned char>(text[8 + i]);
  check(length <= kMaxHeader, "an NPY header of ", length, " bytes (at most ", kMaxHeader, " are read)");
  if (text.size() < start + length) return std::nullopt;

  const std::string_view header = text.substr(start, length);
  const std::string_view type = value_of(header, "descr");
  check(type.starts_with("'<f4'") || type.starts_with("\"<f4\""), "numbers of type ",
        shown(type.substr(0, 5)), " where float32 ('<f4') is needed");
  check(value_of(header, "fortran_order").starts_with("False"),
        "an array in Fortran order where C order is needed");
  return NpyStreamHeader{parse_shape(value_of(header, "shape")), start + length};
}

}  // namespace dpg
