#include "dpg/checkpoint/state_dict.h"

#include <algorithm>
#include <unordered_map>

#include "dpg/checkpoint/json_text.h"
#include "dpg/checkpoint/readers.h"

namespace dpg {
namespace {

using checkpoint::as_text;
using checkpoint::Bytes;
using checkpoint::printable;
using checkpoint::Tensors;

CheckpointFormat detect_format(Bytes bytes, const std::string& file) {
  const std::string_view text = as_text(bytes);
  check(!text.empty(), file, " is empty");
  check(!text.starts_with("version https://git-lfs"), file,
        " is only a Git LFS pointer to the checkpoint; run git lfs pull to fetch the file itself");
  if (text.starts_with("PK")) return CheckpointFormat::torch_zip;
  if (text.size() >= 2 && text[0] == '\x80' && text[1] >= 2 && text[1] <= 5)
    return CheckpointFormat::torch_legacy;
  // A JSON text starts with '{' as well, and its first eight letters would be a monstrous header length.
  if (text.size() > 8 && text[8] == '{' &&
      (text[0] != '{' || checkpoint::load<std::uint64_t>(bytes.data()) <= checkpoint::kMaxJsonText))
    return CheckpointFormat::safetensors;
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  if (first != text.npos && text[first] == '{') return CheckpointFormat::safetensors_sharded;
  fail(file,
       " is no checkpoint: expected a torch file (.pt, .pth), a .safetensors file or the .json index of a"
       " sharded one");
}

// Data-parallel training puts "module." before every name.
void strip_module_prefix(std::vector<TensorView>& tensors) {
  constexpr std::string_view kPrefix = "module.";
  const auto prefixed = [&](const TensorView& tensor) { return tensor.name.starts_with(kPrefix); };
  if (!std::all_of(tensors.begin(), tensors.end(), prefixed)) return;
  for (TensorView& tensor : tensors) tensor.name.erase(0, kPrefix.size());
}

}  // namespace

const char* format_name(CheckpointFormat format) {
  switch (format) {
    case CheckpointFormat::torch_zip:
      return "torch zip";
    case CheckpointFormat::torch_legacy:
      return "torch legacy";
    case CheckpointFormat::safetensors:
      return "safetensors";
    case CheckpointFormat::safetensors_sharded:
      return "safetensors, sharded";
  }
  fail("there is no checkpoint format number ", static_cast<int>(format));
}

struct StateDict::Contents {
  CheckpointFormat format = CheckpointFormat::torch_zip;
  std::string source;
  std::vector<MappedFile> maps;  // keep the tensors' data alive
  Tensors tensors;
  std::unordered_map<std::string_view, std::size_t> by_name;
  std::int64_t parameters = 0;

  void read(Bytes bytes, const std::filesystem::path* path) {
    format = detect_format(bytes, source);
    switch (format) {
      case CheckpointFormat::torch_zip:
        tensors = checkpoint::read_torch_zip(bytes, source);
        break;
      case CheckpointFormat::torch_legacy:
        tensors = checkpoint::read_torch_legacy(bytes, source);
        break;
      case CheckpointFormat::safetensors:
        tensors = checkpoint::read_safetensors(bytes, source);
        break;
      case CheckpointFormat::safetensors_sharded:
        check(path != nullptr, source,
              " is JSON; the index of a sharded checkpoint can only be opened as a file");
        tensors = checkpoint::read_safetensors_sharded(bytes, *path, maps);
        break;
    }
    check(!tensors.views.empty(), source, " holds no tensors");
    strip_module_prefix(tensors.views);
    index();
  }

  void index() {
    by_name.reserve(tensors.views.size());
    for (std::size_t i = 0; i < tensors.views.size(); ++i) {
      const TensorView& tensor = tensors.views[i];
      check(by_name.emplace(tensor.name, i).second, source, " holds two tensors named ",
            printable(tensor.name));
      check(!__builtin_add_overflow(parameters, tensor.elements(), &parameters), source,
            " holds more elements than can be counted");
    }
  }
};

StateDict StateDict::open(const std::filesystem::path& path) {
  auto contents = std::make_shared<Contents>();
  contents->source = path.string();
  contents->maps.emplace_back(path);
  // The bytes stay where they are when a sharded checkpoint adds its maps to the list.
  contents->read(contents->maps.front().bytes(), &path);
  return StateDict(std::move(contents));
}

StateDict StateDict::parse(std::span<const std::byte> bytes, const std::string& name) {
  auto contents = std::make_shared<Contents>();
  contents->source = name;
  contents->read(bytes, nullptr);
  return StateDict(std::move(contents));
}

const std::vector<TensorView>& StateDict::tensors() const {
  return contents_->tensors.views;
}

const TensorView* StateDict::find(std::string_view name) const {
  const auto found = contents_->by_name.find(name);
  return found == contents_->by_name.end() ? nullptr : &contents_->tensors.views[found->second];
}

std::int64_t StateDict::parameters() const {
  return contents_->parameters;
}
CheckpointFormat StateDict::format() const {
  return contents_->format;
}
const std::map<std::string, std::string>& StateDict::metadata() const {
  return contents_->tensors.metadata;
}
const std::string& StateDict::source() const {
  return contents_->source;
}

}  // namespace dpg
