// The one place where sizes that come from a file become a TensorView: all of them are checked here.
#pragma once

#include "dpg/checkpoint/byte_reader.h"
#include "dpg/checkpoint/state_dict.h"

namespace dpg::checkpoint {

inline constexpr std::size_t kMaxDimensions = 64;     // as in torch
inline constexpr std::size_t kMaxNameLength = 1024;   // bytes of a tensor's name
inline constexpr std::size_t kMaxTensors = 1u << 18;  // in one checkpoint

// The product of the sizes; fails when one is negative or when the product does not fit in 63 bits.
std::int64_t checked_elements(const Shape& shape, std::string_view tensor, const std::string& file);

// Strides of a row-major tensor of a shape that passed checked_elements.
Shape row_major_strides(const Shape& shape);

// Where a tensor lies inside its storage, as the file tells it.
struct Layout {
  DType dtype = DType::f32;
  Shape shape;
  Shape strides;
  std::int64_t offset = 0;  // elements from the start of the storage
};

// Fails unless all elements lie inside `storage`. An expanded tensor (stride 0) may have more elements than
// its storage, up to a bound: a few bytes of file must not ask for terabytes.
TensorView checked_view(std::string name, Layout layout, Bytes storage, const std::string& file);

}  // namespace dpg::checkpoint
