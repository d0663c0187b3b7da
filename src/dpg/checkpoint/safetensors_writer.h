// Writes safetensors files: atomically, tensors in the order given, the data from a multiple of 8 bytes on.
#pragma once

#include <map>

#include "dpg/checkpoint/state_dict.h"

namespace dpg {

struct TensorToWrite {
  std::string name;
  DType dtype = DType::f32;
  Shape shape;
  std::span<const std::byte> bytes;  // row-major; the caller keeps it alive
};

// Fails when a name comes twice or when shape, type and number of bytes do not fit together.
void write_safetensors(const std::filesystem::path& path, std::span<const TensorToWrite> tensors,
                       const std::map<std::string, std::string>& metadata = {});

}  // namespace dpg
