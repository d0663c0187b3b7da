// What the checkpoint targets share: parse any bytes, then read every element of what was accepted, so that a
// view that reaches too far shows under the address sanitizer. Only dpg::Error may come out of it.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <span>
#include <string_view>
#include <vector>

#include "dpg/checkpoint/state_dict.h"
#include "dpg/core/error.h"

namespace dpg::fuzz {

inline constexpr std::int64_t kMostElements = 1 << 16;  // of one tensor; an expanded one may have millions

inline void read_elements(const TensorView& tensor) {
  if (tensor.elements() > kMostElements) return;
  std::vector<float> values(static_cast<std::size_t>(tensor.elements()));
  copy_as_float(tensor, values);
  if (contiguous_bytes(tensor).size() != values.size() * dtype_size(tensor.dtype)) std::abort();
}

inline void parse_and_read(std::span<const std::byte> bytes) {
  constexpr std::size_t kMostTensors = 256;  // many tensors on one storage would only cost time
  try {
    const StateDict state = StateDict::parse(bytes, "input");
    std::size_t read = 0;
    for (const TensorView& tensor : state.tensors()) {
      if (state.find(tensor.name) != &tensor) std::abort();
      if (read++ < kMostTensors) read_elements(tensor);
    }
  } catch (const Error&) {
  }
}

inline std::string_view as_text(const std::uint8_t* data, std::size_t size) {
  return {reinterpret_cast<const char*>(data), size};
}

// What a target returns: inputs that belong to another target are kept out of its corpus.
inline constexpr int kKeep = 0, kDrop = -1;

}  // namespace dpg::fuzz
