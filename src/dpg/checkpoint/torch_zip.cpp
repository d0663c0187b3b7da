// torch.save since 1.6: a zip with NAME/data.pkl, and NAME/data/KEY for each storage.
#include "dpg/checkpoint/readers.h"
#include "dpg/checkpoint/torch_tensors.h"
#include "dpg/checkpoint/zip_directory.h"

namespace dpg::checkpoint {
namespace {

// The one folder at the top, with its slash.
std::string find_folder(const ZipDirectory& zip, const std::string& file) {
  constexpr std::string_view kPickle = "/data.pkl";
  std::optional<std::string> folder;
  for (const ZipEntry& entry : zip.entries()) {
    if (!entry.name.ends_with(kPickle) || entry.name.find('/') != entry.name.size() - kPickle.size())
      continue;
    check(!folder, file, " is a zip with several checkpoints in it; only one is read");
    folder = entry.name.substr(0, entry.name.size() - kPickle.size() + 1);
  }
  check(folder.has_value(), file, " is a zip file but no torch checkpoint: it has no data.pkl");
  return *folder;
}

void check_readable(const ZipDirectory& zip, const std::string& folder, const std::string& file) {
  check(!zip.find(folder + "constants.pkl"), file,
        " is a TorchScript program; save its state_dict() with torch.save instead");
  const auto order = zip.find(folder + "byteorder");
  check(!order || as_text(*order) == "little", file,
        " was written in big-endian byte order, which is not read; load it in torch and save it again on a"
        " little-endian machine");
}

}  // namespace

Tensors read_torch_zip(Bytes bytes, const std::string& file) {
  const ZipDirectory zip(bytes, file);
  const std::string folder = find_folder(zip, file);
  check_readable(zip, folder, file);
  const PickleDocument document = read_pickle(*zip.find(folder + "data.pkl"), file);

  const FindStorage find_storage = [&](const StorageId& id) {
    const auto data = zip.find(str(folder, "data/", id.key));
    check(data.has_value(), file, " lacks the storage ", printable(id.key),
          "; it is damaged, fetch it again");
    check(id.bytes() <= data->size(), file, " has the storage ", printable(id.key), " with ", data->size(),
          " bytes where ", id.bytes(), " are needed");
    return data->first(static_cast<std::size_t>(id.bytes()));
  };
  return {collect_tensors(document, find_storage, file), {}};
}

}  // namespace dpg::checkpoint
