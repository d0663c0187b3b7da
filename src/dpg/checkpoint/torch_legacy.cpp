// torch.save before 1.6: five pickles in a row (magic number, protocol, system, the object, the storages'
// keys), then the storages in the order of the keys, each as a 64-bit number of elements and its data. A
// storage that was on a GPU is written like any other.
#include <unordered_map>

#include "dpg/checkpoint/readers.h"
#include "dpg/checkpoint/torch_tensors.h"

namespace dpg::checkpoint {
namespace {

constexpr std::string_view kMagic = "\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19";
constexpr std::int64_t kProtocol = 1001;

PickleDocument next_pickle(ByteReader& reader) {
  PickleDocument document = read_pickle(reader.rest(), reader.file());
  reader.take(document.size, "a pickle");
  return document;
}

void check_magic(ByteReader& reader) {
  const PickleDocument document = next_pickle(reader);
  const auto* magic = document.get<WideInteger>(document.root);
  check(magic != nullptr && magic->digits == kMagic, reader.file(),
        " is a Python pickle but no torch checkpoint; save the weights with torch.save");
}

void check_protocol(ByteReader& reader) {
  const PickleDocument document = next_pickle(reader);
  const auto* protocol = document.get<std::int64_t>(document.root);
  check(protocol != nullptr && *protocol == kProtocol, reader.file(),
        " is a torch checkpoint of an unknown version; load it in torch and save it again");
}

void check_little_endian(ByteReader& reader) {
  const PickleDocument document = next_pickle(reader);
  const auto* system = document.get<Dict>(document.root);
  check(system != nullptr, reader.file(),
        " does not tell which system wrote it; it is damaged, fetch it again");
  for (const auto& [key, value] : system->items) {
    const auto* name = document.get<Text>(key);
    const auto* flag = document.get<bool>(value);
    check(name == nullptr || name->utf8 != "little_endian" || (flag != nullptr && *flag), reader.file(),
          " was written in big-endian byte order, which is not read; load it in torch and save it again on a"
          " little-endian machine");
  }
}

using StorageIds = std::unordered_map<std::string_view, StorageId>;
using Storages = std::unordered_map<std::string_view, Bytes>;

// All storages that the object mentions. The sizes of their elements are told nowhere else.
StorageIds mentioned_storages(const PickleDocument& object, const std::string& file) {
  StorageIds ids;
  for (Ref ref = 0; ref < object.values.size(); ++ref) {
    const auto* persistent = object.get<Persistent>(ref);
    if (persistent == nullptr) continue;
    const StorageId id = read_storage_id(object, persistent->id, file);
    const StorageId& first = ids.emplace(id.key, id).first->second;
    check(first.dtype == id.dtype && first.elements == id.elements, file, " describes the storage ",
          printable(id.key), " in two ways that contradict each other");
  }
  return ids;
}

Storages read_storages(ByteReader& reader, const PickleDocument& keys, const StorageIds& ids) {
  const std::string& file = reader.file();
  const auto* list = keys.get<Sequence>(keys.root);
  check(list != nullptr, file, " has no list of its storages; it is damaged, fetch it again");
  Storages storages;
  for (const Ref item : list->items) {
    const auto* key = keys.get<Text>(item);
    const auto id = key == nullptr ? ids.end() : ids.find(key->utf8);
    check(id != ids.end(), file, " lists a storage that no tensor describes; it is damaged, fetch it again");
    const auto elements = reader.read<std::int64_t>("a storage's size");
    check(elements == id->second.elements, file, " has the storage ", printable(key->utf8), " with ",
          elements, " elements where ", id->second.elements,
          " were announced; it is damaged, fetch it again");
    const bool first = storages.emplace(id->first, reader.take(id->second.bytes(), "a storage")).second;
    check(first, file, " lists the storage ", printable(key->utf8), " twice");
  }
  return storages;
}

}  // namespace

Tensors read_torch_legacy(Bytes bytes, const std::string& file) {
  ByteReader reader(bytes, file);
  check_magic(reader);
  check_protocol(reader);
  check_little_endian(reader);
  const PickleDocument object = next_pickle(reader);
  const PickleDocument keys = next_pickle(reader);
  const Storages storages = read_storages(reader, keys, mentioned_storages(object, file));
  check(reader.remaining() == 0, file, " has ", reader.remaining(),
        " bytes after its last storage; it is damaged, fetch it again");

  const FindStorage find_storage = [&](const StorageId& id) {
    const auto found = storages.find(id.key);
    check(found != storages.end(), file, " lacks the storage ", printable(id.key),
          "; it is damaged, fetch it again");
    if (!id.part) return found->second;
    const std::size_t element_size = dtype_size(id.dtype);
    return found->second.subspan(static_cast<std::size_t>(id.part->offset) * element_size,
                                 static_cast<std::size_t>(id.part->elements) * element_size);
  };
  return {collect_tensors(object, find_storage, file), {}};
}

}  // namespace dpg::checkpoint
