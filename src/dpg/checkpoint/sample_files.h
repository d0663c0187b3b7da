// Builds small checkpoints byte by byte, good and bad ones: for the tests and for the fuzzers' first inputs.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "dpg/checkpoint/byte_reader.h"

namespace dpg::checkpoint::sample {

// The value's bytes, little-endian.
template <class T>
std::string raw(T value) {
  return {reinterpret_cast<const char*>(&value), sizeof(T)};
}
std::string floats(const std::vector<float>& values);
inline Bytes view(const std::string& text) {
  return std::as_bytes(std::span(text));
}

// Pieces of a pickle, to be joined by +.
std::string text(std::string_view value);
std::string number(std::int64_t value);
std::string global(std::string_view module, std::string_view name);
std::string tuple(const std::vector<std::string>& items);
std::string list(const std::vector<std::string>& items);
std::string dict(const std::vector<std::pair<std::string, std::string>>& items);  // keys are texts
std::string call(const std::string& callable, const std::string& arguments);
std::string pickle(const std::string& body);  // with protocol and STOP

struct Tensor {
  std::string storage_class = "FloatStorage";
  std::string key = "0";
  std::int64_t storage_elements = 0;
  std::int64_t offset = 0;
  std::vector<std::int64_t> shape = {};
  std::vector<std::int64_t> strides = {};
  std::string legacy_view = {};  // a pickled (key, offset, size)
};
std::string tensor(const Tensor& tensor);     // the call of _rebuild_tensor_v2
std::string parameter(const Tensor& tensor);  // the same as _rebuild_parameter

// What a zip entry says; the optional fields replace the truth.
struct ZipPart {
  std::string name, data;
  std::uint16_t method = 0, flags = 0;
  std::optional<std::uint32_t> local_offset = {}, size = {}, packed_size = {};  // in the central directory
  std::optional<std::string> local_name = {};
};
std::string zip(const std::vector<ZipPart>& parts, bool zip64 = true);

using Storages = std::vector<std::pair<std::string, std::string>>;  // key, data
std::string torch_zip(const std::string& data_pickle, const Storages& storages, bool zip64 = true);
std::string torch_legacy(const std::string& object_pickle, const Storages& storages,
                         std::size_t element_size = 4, bool little_endian = true);
std::string safetensors(std::string_view header, std::string_view data);

// One checkpoint in each format with the same tensors: "weight" 2x3, its transpose "tied" on the same storage
// (safetensors: a copy), and the scalar "step". All f32.
std::string good_torch_zip();
std::string good_torch_legacy();
std::string good_safetensors();

}  // namespace dpg::checkpoint::sample
