// The format readers behind StateDict. Each takes the whole file and its name for messages; the tensors it
// returns are views into the bytes given.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "dpg/checkpoint/byte_reader.h"
#include "dpg/checkpoint/state_dict.h"
#include "dpg/core/file.h"

namespace dpg::checkpoint {

struct Tensors {
  std::vector<TensorView> views;
  std::map<std::string, std::string> metadata;
};

Tensors read_torch_zip(Bytes bytes, const std::string& file);
Tensors read_torch_legacy(Bytes bytes, const std::string& file);
Tensors read_safetensors(Bytes bytes, const std::string& file);

// `index` is the text of model.safetensors.index.json, `path` where it lies. The shards' maps are added to
// `maps`.
Tensors read_safetensors_sharded(Bytes index, const std::filesystem::path& path,
                                 std::vector<MappedFile>& maps);

}  // namespace dpg::checkpoint
