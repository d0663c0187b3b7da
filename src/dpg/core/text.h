// Text from untrusted files in messages.
#pragma once

#include <string>
#include <string_view>

namespace dpg {

// Fit for a message: control characters and bytes outside ASCII become '?', long text is cut.
inline std::string printable(std::string_view text, std::size_t limit = 100) {
  std::string out(text.substr(0, limit));
  for (char& c : out)
    if (c < ' ' || c > '~') c = '?';
  return text.size() > limit ? out + "..." : out;
}

}  // namespace dpg
