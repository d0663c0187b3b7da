#include "dpg/checkpoint/safetensors_writer.h"

#include <cctype>
#include <nlohmann/json.hpp>
#include <set>

#include "dpg/checkpoint/view_bounds.h"
#include "dpg/core/file.h"

namespace dpg {
namespace {

using Json = nlohmann::ordered_json;

std::string dtype_label(DType dtype) {
  std::string label = dtype_name(dtype);
  for (char& letter : label) letter = static_cast<char>(std::toupper(static_cast<unsigned char>(letter)));
  return label;
}

std::string to_text(const Json& json, const std::string& file) {
  try {
    return json.dump();
  } catch (const Json::exception&) {
    fail("cannot write ", file, ": a tensor's name or the metadata is not valid UTF-8");
  }
}

// The header, padded by blanks so that the data behind it starts at a multiple of 8 bytes.
std::string make_header(std::span<const TensorToWrite> tensors,
                        const std::map<std::string, std::string>& metadata, const std::string& file) {
  // Put together as text: nlohmann's ordered objects search all earlier keys for each new one.
  std::string header = "{";
  const auto add = [&](const std::string& key, const Json& value) {
    if (header.size() > 1) header += ',';
    header += to_text(Json(key), file) + ":" + to_text(value, file);
  };
  if (!metadata.empty()) add("__metadata__", metadata);
  std::set<std::string_view> names;
  std::uint64_t offset = 0;
  for (const TensorToWrite& tensor : tensors) {
    check(tensor.name != "__metadata__" && names.insert(tensor.name).second, "cannot write ", file,
          ": two tensors are named ", checkpoint::printable(tensor.name));
    const auto elements =
        static_cast<std::uint64_t>(checkpoint::checked_elements(tensor.shape, tensor.name, file));
    check(tensor.bytes.size() / dtype_size(tensor.dtype) == elements &&
              tensor.bytes.size() % dtype_size(tensor.dtype) == 0,
          "cannot write ", file, ": tensor ", checkpoint::printable(tensor.name), " has ", elements,
          " elements of type ", dtype_name(tensor.dtype), " but ", tensor.bytes.size(), " bytes");
    const std::uint64_t end = offset + tensor.bytes.size();
    add(tensor.name,
        {{"dtype", dtype_label(tensor.dtype)}, {"shape", tensor.shape}, {"data_offsets", {offset, end}}});
    offset = end;
  }
  header += '}';
  header.resize((header.size() + 7) / 8 * 8, ' ');
  return header;
}

}  // namespace

void write_safetensors(const std::filesystem::path& path, std::span<const TensorToWrite> tensors,
                       const std::map<std::string, std::string>& metadata) {
  const std::string header = make_header(tensors, metadata, path.string());
  const std::uint64_t header_size = header.size();
  AtomicFile file(path);
  file.write(&header_size, sizeof(header_size));
  file.write(header);
  for (const TensorToWrite& tensor : tensors) file.write(tensor.bytes.data(), tensor.bytes.size());
  file.commit();
}

}  // namespace dpg
