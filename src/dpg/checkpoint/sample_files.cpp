#include "dpg/checkpoint/sample_files.h"

#include <cstring>

namespace dpg::checkpoint::sample {
namespace {

std::string join(const std::vector<std::string>& items) {
  std::string joined;
  for (const std::string& item : items) joined += item;
  return joined;
}

std::string numbers(const std::vector<std::int64_t>& values) {
  std::vector<std::string> items;
  for (const std::int64_t value : values) items.push_back(number(value));
  return tuple(items);
}

std::string end_records(std::size_t entries, std::size_t size, std::size_t offset, bool zip64) {
  std::string out;
  if (zip64) {
    const auto count = static_cast<std::uint64_t>(entries);
    out += raw(0x06064b50u) + raw(std::uint64_t{44}) + raw(std::uint16_t{45}) + raw(std::uint16_t{45}) +
           raw(0u) + raw(0u) + raw(count) + raw(count) + raw(static_cast<std::uint64_t>(size)) +
           raw(static_cast<std::uint64_t>(offset));
    out += raw(0x07064b50u) + raw(0u) + raw(static_cast<std::uint64_t>(offset + size)) + raw(1u);
  }
  const auto count = static_cast<std::uint16_t>(entries);
  return out + raw(0x06054b50u) + raw(std::uint16_t{0}) + raw(std::uint16_t{0}) + raw(count) + raw(count) +
         raw(static_cast<std::uint32_t>(size)) + raw(static_cast<std::uint32_t>(offset)) +
         raw(std::uint16_t{0});
}

std::vector<std::pair<std::string, std::string>> good_items() {
  Tensor weight{.key = "0", .storage_elements = 6, .shape = {2, 3}, .strides = {3, 1}};
  Tensor tied{.key = "0", .storage_elements = 6, .shape = {3, 2}, .strides = {1, 3}};
  Tensor step{.key = "1", .storage_elements = 1, .shape = {}, .strides = {}};
  return {{"weight", tensor(weight)}, {"tied", parameter(tied)}, {"step", tensor(step)}};
}

Storages good_storages() {
  return {{"0", floats({1, 2, 3, 4, 5, 6})}, {"1", floats({7})}};
}

}  // namespace

std::string floats(const std::vector<float>& values) {
  std::string bytes(values.size() * sizeof(float), '\0');
  std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

std::string text(std::string_view value) {
  return std::string("X") + raw(static_cast<std::uint32_t>(value.size())) + std::string(value);
}

std::string number(std::int64_t value) {
  return std::string("\x8a\x08") + raw(value);
}

std::string global(std::string_view module, std::string_view name) {
  return std::string("c").append(module) + "\n" + std::string(name) + "\n";
}

std::string tuple(const std::vector<std::string>& items) {
  return std::string("(") + join(items) + "t";
}
std::string list(const std::vector<std::string>& items) {
  return std::string("](") + join(items) + "e";
}

std::string dict(const std::vector<std::pair<std::string, std::string>>& items) {
  std::string out = "}(";
  for (const auto& [key, value] : items) out += text(key) + value;
  return out + "u";
}

std::string call(const std::string& callable, const std::string& arguments) {
  return callable + arguments + "R";
}
std::string pickle(const std::string& body) {
  return std::string("\x80\x02") + body + ".";
}

std::string tensor(const Tensor& tensor) {
  std::vector<std::string> id = {text("storage"), global("torch", tensor.storage_class), text(tensor.key),
                                 text("cpu"), number(tensor.storage_elements)};
  if (!tensor.legacy_view.empty()) id.push_back(tensor.legacy_view);
  const std::string hooks = call(global("collections", "OrderedDict"), ")");
  return call(global("torch._utils", "_rebuild_tensor_v2"),
              tuple({tuple(id) + "Q", number(tensor.offset), numbers(tensor.shape), numbers(tensor.strides),
                     "\x89", hooks}));
}

std::string parameter(const Tensor& data) {
  const std::string hooks = call(global("collections", "OrderedDict"), ")");
  return call(global("torch._utils", "_rebuild_parameter"), tuple({tensor(data), "\x88", hooks}));
}

std::string zip(const std::vector<ZipPart>& parts, bool zip64) {
  std::string out, directory;
  for (const ZipPart& part : parts) {
    const auto offset = static_cast<std::uint32_t>(out.size());
    const auto size = static_cast<std::uint32_t>(part.data.size());
    const std::string common =
        raw(std::uint16_t{20}) + raw(part.flags) + raw(part.method) + raw(0u) + raw(0u);
    const std::string& local_name = part.local_name.value_or(part.name);
    out += raw(0x04034b50u) + common + raw(size) + raw(size) +
           raw(static_cast<std::uint16_t>(local_name.size())) + raw(std::uint16_t{0}) + local_name +
           part.data;
    directory += raw(0x02014b50u) + raw(std::uint16_t{20}) + common + raw(part.packed_size.value_or(size)) +
                 raw(part.size.value_or(size)) + raw(static_cast<std::uint16_t>(part.name.size())) +
                 std::string(12, '\0') + raw(part.local_offset.value_or(offset)) + part.name;
  }
  return out + directory + end_records(parts.size(), directory.size(), out.size(), zip64);
}

std::string torch_zip(const std::string& data_pickle, const Storages& storages, bool zip64) {
  std::vector<ZipPart> parts(1);
  parts[0].name = "archive/data.pkl";
  parts[0].data = data_pickle;
  for (const auto& [key, data] : storages) {
    parts.emplace_back();
    parts.back().name = "archive/data/" + key;
    parts.back().data = data;
  }
  return zip(parts, zip64);
}

std::string torch_legacy(const std::string& object_pickle, const Storages& storages, std::size_t element_size,
                         bool little_endian) {
  std::string out =
      pickle("\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19") + pickle(number(1001)) +
      pickle(dict({{"protocol_version", number(1001)}, {"little_endian", little_endian ? "\x88" : "\x89"}})) +
      object_pickle;
  std::vector<std::string> keys;
  for (const auto& [key, data] : storages) keys.push_back(text(key));
  out += pickle(list(keys));
  for (const auto& [key, data] : storages)
    out += raw(static_cast<std::int64_t>(data.size() / element_size)) + data;
  return out;
}

std::string safetensors(std::string_view header, std::string_view data) {
  return raw(static_cast<std::uint64_t>(header.size())) + std::string(header) + std::string(data);
}

std::string good_torch_zip() {
  return torch_zip(pickle(dict(good_items())), good_storages());
}
std::string good_torch_legacy() {
  return torch_legacy(pickle(dict(good_items())), good_storages());
}

std::string good_safetensors() {
  return safetensors(
      R"({"__metadata__":{"format":"pt"},"weight":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]},)"
      R"("tied":{"dtype":"F32","shape":[3,2],"data_offsets":[24,48]},)"
      R"("step":{"dtype":"F32","shape":[],"data_offsets":[48,52]}})",
      floats({1, 2, 3, 4, 5, 6, 1, 4, 2, 5, 3, 6, 7}));
}

}  // namespace dpg::checkpoint::sample
