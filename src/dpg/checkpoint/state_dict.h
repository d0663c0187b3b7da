// State dicts from untrusted files: torch zip (.pt, .pth), torch legacy (before 1.6), safetensors (also
// sharded). Files are memory-mapped; tensors are views into the map. Nothing in a file is ever executed, and
// every offset, size and count is checked before use.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace dpg {

enum class DType { f64, f32, f16, bf16, i64, i32, i16, i8, u8, boolean };
std::size_t dtype_size(DType dtype);
const char* dtype_name(DType dtype);  // "f32", "bf16", ...
bool is_floating(DType dtype);

using Shape = std::vector<std::int64_t>;

// A tensor inside a file: element (i0, i1, ...) is at `data` + dtype_size * (i0 * strides[0] + i1 *
// strides[1] + ...). All those elements are known to lie inside the map.
struct TensorView {
  std::string name;
  DType dtype = DType::f32;
  Shape shape;
  Shape strides;  // in elements; not negative
  const std::byte* data = nullptr;

  std::int64_t elements() const;
  bool contiguous() const;
};

// Every element as float (booleans as 0 and 1), in row-major order. `out` has `elements()` places.
void copy_as_float(const TensorView& tensor, std::span<float> out);
// The elements' raw bytes in row-major order.
std::vector<std::byte> contiguous_bytes(const TensorView& tensor);

enum class CheckpointFormat { torch_zip, torch_legacy, safetensors, safetensors_sharded };
const char* format_name(CheckpointFormat format);

// The tensors of a checkpoint by name. Immutable once opened; copies share the maps.
//
// Which tensors of a torch file are taken, and their names:
//  - A dict that has one of the keys ema, ema_model, state_dict, model_state_dict, model, params, with a dict
//  of
//    tensors behind it, is a container: the first of these that is there is the state dict.
//  - Otherwise all tensors anywhere inside are taken.
//  - Names of nested dicts are joined by '.'; items of lists count from 0; a lone tensor is named "0".
//  - Values that are no tensors (step counts, settings) are passed over.
// In all formats: "module." before every name is removed. Two tensors of one name are an error, as is a file
// without tensors.
class StateDict {
 public:
  // Opens a checkpoint, or the JSON index of a sharded safetensors one. The format is told from the contents.
  static StateDict open(const std::filesystem::path& path);
  // The same from memory that the caller keeps alive; `name` stands for the file in messages. For the
  // fuzzers.
  static StateDict parse(std::span<const std::byte> bytes, const std::string& name);

  const std::vector<TensorView>& tensors()
      const;  // in the file's order; safetensors: by place, shard after shard
  const TensorView* find(std::string_view name) const;
  std::int64_t parameters() const;  // elements of all tensors
  CheckpointFormat format() const;
  const std::map<std::string, std::string>& metadata() const;  // safetensors' __metadata__
  const std::string& source() const;                           // the path, for messages

 private:
  struct Contents;
  explicit StateDict(std::shared_ptr<const Contents> contents) : contents_(std::move(contents)) {}
  std::shared_ptr<const Contents> contents_;
};

}  // namespace dpg
