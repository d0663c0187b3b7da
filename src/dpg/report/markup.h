// Text and numbers as HTML and SVG want them. Nothing here depends on the locale.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace dpg::markup {

// For element content and for attribute values in either quote: & < > " ' are written as references. What is
// not UTF-8, and control characters other than tab and line ends, become U+FFFD, so that XML readers take the
// result.
std::string escape(std::string_view text);

// RFC 4648, with padding.
std::string base64(std::span<const std::byte> bytes);

// A finite number with this many digits after the point: fixed(2.5, 2) is "2.50". Never "-0".
std::string fixed(double value, int decimals);
// With this many significant digits, without trailing zeros: significant(0.012345, 3) is "0.0123"; "not a
// number" and "infinite" where it is that.
std::string significant(double value, int digits);

// Characters, not bytes, of UTF-8.
int length(std::string_view text);

}  // namespace dpg::markup
