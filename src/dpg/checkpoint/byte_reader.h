// Reads little-endian values from bytes that nobody vouches for: every read is checked against the end.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>

#include "dpg/core/error.h"

namespace dpg::checkpoint {

static_assert(std::endian::native == std::endian::little, "the readers map little-endian files as they are");

using Bytes = std::span<const std::byte>;

// The value at `from`, which need not be aligned.
template <class T>
T load(const std::byte* from) {
  T value;
  std::memcpy(&value, from, sizeof(T));
  return value;
}

inline std::string_view as_text(Bytes bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// Text from a file as it may stand in a message: control and non-ASCII characters escaped, long text cut.
std::string printable(std::string_view text);

class ByteReader {
 public:
  // `file` is the name for messages; it must outlive the reader.
  ByteReader(Bytes bytes, const std::string& file, std::size_t position = 0)
      : bytes_(bytes), file_(file), position_(position) {
    check(position <= bytes.size(), file, " points to byte ", position, ", beyond its end");
  }

  std::size_t position() const { return position_; }
  std::size_t remaining() const { return bytes_.size() - position_; }
  Bytes rest() const { return bytes_.subspan(position_); }
  const std::string& file() const { return file_; }

  Bytes take(std::uint64_t count, const char* what) {
    check(count <= remaining(), file_, " is damaged or incomplete: ", what, " at byte ", position_, " needs ",
          count, " bytes and ", remaining(), " are left; fetch the file again");
    const Bytes taken = bytes_.subspan(position_, static_cast<std::size_t>(count));
    position_ += taken.size();
    return taken;
  }

  template <class T>
  T read(const char* what) {
    return load<T>(take(sizeof(T), what).data());
  }

  // The text up to the next newline, which is skipped.
  std::string_view line(const char* what) {
    const std::string_view text = as_text(rest());
    const std::size_t end = text.find('\n');
    check(end != text.npos, file_, " is damaged or incomplete: ", what, " at byte ", position_,
          " has no end; fetch the file again");
    position_ += end + 1;
    return text.substr(0, end);
  }

 private:
  Bytes bytes_;
  const std::string& file_;
  std::size_t position_;
};

}  // namespace dpg::checkpoint
