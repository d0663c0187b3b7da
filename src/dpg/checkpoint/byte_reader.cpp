#include "dpg/checkpoint/byte_reader.h"

namespace dpg::checkpoint {

std::string printable(std::string_view text) {
  constexpr std::size_t kLongest = 120;
  constexpr char kHex[] = "0123456789abcdef";
  std::string shown;
  for (const char letter : text.substr(0, kLongest)) {
    const auto code = static_cast<unsigned char>(letter);
    if (code >= 0x20 && code < 0x7f) {
      shown += letter;
    } else {
      shown += {'\\', 'x', kHex[code >> 4], kHex[code & 15]};
    }
  }
  return text.size() > kLongest ? shown + "..." : shown;
}

}  // namespace dpg::checkpoint
