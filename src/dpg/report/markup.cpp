#include "dpg/report/markup.h"

#include <array>
#include <charconv>
#include <cmath>
#include <cstdint>

namespace dpg::markup {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";  // U+FFFD

bool continues(char c) {
  return (static_cast<unsigned char>(c) & 0xC0) == 0x80;
}

// Bytes of the character of several bytes at the front; 0 where it is no UTF-8.
std::size_t multibyte_length(std::string_view text) {
  const auto lead = static_cast<unsigned char>(text[0]);
  const std::size_t size = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : lead >= 0xC2 ? 2 : 0;
  if (size == 0 || lead > 0xF4 || text.size() < size) return 0;
  std::uint32_t code = lead & (0x7Fu >> size);
  for (std::size_t i = 1; i < size; ++i) {
    if (!continues(text[i])) return 0;
    code = code << 6 | (static_cast<unsigned char>(text[i]) & 0x3Fu);
  }
  constexpr std::array<std::uint32_t, 5> kLeast = {0, 0, 0x80, 0x800, 0x10000};  // below: an overlong form
  const bool surrogate = code >= 0xD800 && code <= 0xDFFF;
  const bool no_character = (code & 0xFFFE) == 0xFFFE || code > 0x10FFFF;
  return code < kLeast[size] || surrogate || no_character ? 0 : size;
}

template <class... Format>
std::string number(double value, Format... format) {
  std::array<char, 400> buffer;  // the longest: 309 digits before the point
  const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value, format...).ptr;
  std::string text(buffer.data(), end);
  if (text[0] == '-' && text.find_first_of("123456789") == std::string::npos) text.erase(0, 1);
  return text;
}

}  // namespace

std::string escape(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t i = 0; i < text.size();) {
    const char c = text[i];
    std::size_t size = 1;
    if (c == '&') {
      out += "&amp;";
    } else if (c == '<') {
      out += "&lt;";
    } else if (c == '>') {
      out += "&gt;";
    } else if (c == '"') {
      out += "&quot;";
    } else if (c == '\'') {
      out += "&#39;";
    } else if ((c >= ' ' && c <= '~') || c == '\t' || c == '\n' || c == '\r') {
      out += c;
    } else if (const std::size_t bytes = multibyte_length(text.substr(i)); bytes > 0) {
      out += text.substr(i, bytes);
      size = bytes;
    } else {
      out += kReplacement;
    }
    i += size;
  }
  return out;
}

std::string base64(std::span<const std::byte> bytes) {
  constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  out.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    const std::size_t count = std::min<std::size_t>(3, bytes.size() - i);
    std::uint32_t group = 0;
    for (std::size_t k = 0; k < 3; ++k)
      group = group << 8 | (k < count ? std::to_integer<std::uint32_t>(bytes[i + k]) : 0u);
    for (std::size_t k = 0; k < 4; ++k) out += k <= count ? kDigits[group >> (18 - 6 * k) & 63] : '=';
  }
  return out;
}

std::string fixed(double value, int decimals) {
  return number(value, std::chars_format::fixed, decimals);
}

std::string significant(double value, int digits) {
  if (std::isnan(value)) return "not a number";
  if (std::isinf(value)) return "infinite";
  return number(value, std::chars_format::general, digits);
}

int length(std::string_view text) {
  int count = 0;
  for (const char c : text) count += !continues(c);
  return count;
}

}  // namespace dpg::markup
