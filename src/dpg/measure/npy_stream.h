// An NPY array that arrives over a pipe: its header says where it ends.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace dpg {

struct NpyStreamHeader {
  std::vector<std::int64_t> shape;  // of float32 numbers, little endian, C order
  std::size_t data_offset = 0;      // bytes before the numbers
};

// The header at the start of `bytes`; empty while it is not complete. Throws (what is wrong, without naming
// who wrote it) as soon as the bytes cannot become a float32 array in C order. NPY versions 1 to 3.
std::optional<NpyStreamHeader> parse_npy_start(std::span<const std::byte> bytes);

}  // namespace dpg
