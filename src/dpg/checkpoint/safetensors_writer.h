// Writes safetensors files: atomically, tensors in the order given, data aligned to 8 bytes.
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

void write_safetensors(const std::filesystem::path& path, std::span<const TensorToWrite> tensors,
                       const std::map<std::string, std::string>& metadata = {});

}  // namespace dpg
