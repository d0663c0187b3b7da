#include "dpg/checkpoint/zip_directory.h"

#include <algorithm>

namespace dpg::checkpoint {
namespace {

constexpr std::uint32_t kLocalHeader = 0x04034b50, kCentralHeader = 0x02014b50, kEnd = 0x06054b50,
                        kEnd64 = 0x06064b50, kEnd64Locator = 0x07064b50;
constexpr std::size_t kEndSize = 22, kEnd64Size = 56, kEnd64LocatorSize = 20, kLongestComment = 0xffff;
constexpr std::uint16_t kIn64 = 0xffff;          // "the real value is in the zip64 record", 16 bits
constexpr std::uint32_t kIn64Wide = 0xffffffff;  // the same, 32 bits
constexpr std::uint64_t kMaxEntries = 1u << 20;
constexpr std::uint16_t kEncrypted = 1, kSizesFollowData = 1 << 3;

// Where the central directory lies.
struct Extent {
  std::uint64_t entries, size, offset;
};

// One line of the central directory, zip64 fields resolved.
struct CentralEntry {
  std::string_view name;
  std::uint64_t size, local_offset;
};

// The end record is the last thing in the file; only a comment may follow it.
std::size_t find_end_record(Bytes bytes, const std::string& file) {
  const std::size_t furthest = std::min(bytes.size(), kEndSize + kLongestComment);
  for (std::size_t back = kEndSize; back <= furthest; ++back) {
    const std::byte* record = bytes.data() + bytes.size() - back;
    if (load<std::uint32_t>(record) == kEnd && load<std::uint16_t>(record + 20) == back - kEndSize)
      return bytes.size() - back;
  }
  fail(file, " is a zip file without its end; it is incomplete, fetch it again");
}

Extent read_end64(Bytes bytes, std::size_t locator_at, const Extent& narrow, const std::string& file) {
  ByteReader locator(bytes, file, locator_at + 4);
  const auto first_disk = locator.read<std::uint32_t>("the zip64 locator");
  const auto record_at = locator.read<std::uint64_t>("the zip64 locator");
  const auto disks = locator.read<std::uint32_t>("the zip64 locator");
  check(first_disk == 0 && disks <= 1, file, " is one part of a zip in several parts, which is not read");
  check(record_at <= locator_at && locator_at - record_at >= kEnd64Size, file,
        " has a zip64 end record outside of the file; it is damaged, fetch it again");
  const std::byte* record = bytes.data() + record_at;
  check(load<std::uint32_t>(record) == kEnd64, file, " has no zip64 end record where it should be");
  const Extent wide{load<std::uint64_t>(record + 32), load<std::uint64_t>(record + 40),
                    load<std::uint64_t>(record + 48)};
  const bool agree = load<std::uint32_t>(record + 16) == 0 && load<std::uint32_t>(record + 20) == 0 &&
                     load<std::uint64_t>(record + 24) == wide.entries &&
                     (narrow.entries == kIn64 || narrow.entries == wide.entries) &&
                     (narrow.size == kIn64Wide || narrow.size == wide.size) &&
                     (narrow.offset == kIn64Wide || narrow.offset == wide.offset);
  check(agree, file, " has two zip end records that contradict each other; it is damaged, fetch it again");
  check(wide.offset <= record_at && wide.size <= record_at - wide.offset, file,
        " has a zip directory outside of the file; it is damaged, fetch it again");
  return wide;
}

Extent read_extent(Bytes bytes, const std::string& file) {
  const std::size_t end_at = find_end_record(bytes, file);
  const std::byte* record = bytes.data() + end_at;
  const Extent narrow{load<std::uint16_t>(record + 10), load<std::uint32_t>(record + 12),
                      load<std::uint32_t>(record + 16)};
  if (end_at >= kEnd64LocatorSize && load<std::uint32_t>(record - kEnd64LocatorSize) == kEnd64Locator)
    return read_end64(bytes, end_at - kEnd64LocatorSize, narrow, file);
  check(load<std::uint16_t>(record + 4) == 0 && load<std::uint16_t>(record + 6) == 0 &&
            load<std::uint16_t>(record + 8) == narrow.entries,
        file, " is one part of a zip in several parts, which is not read");
  check(narrow.offset <= end_at && narrow.size <= end_at - narrow.offset, file,
        " has a zip directory outside of the file; it is damaged, fetch it again");
  return narrow;
}

// Fills in the 64-bit values for the 32-bit fields that say so, in the order the format prescribes.
void read_extra64(Bytes extra, std::initializer_list<std::uint64_t*> fields, const std::string& file) {
  ByteReader reader(extra, file);
  while (reader.remaining() >= 4) {
    const auto id = reader.read<std::uint16_t>("an extra field");
    const auto size = reader.read<std::uint16_t>("an extra field");
    const Bytes content = reader.take(size, "an extra field in the zip directory");
    if (id != 1) continue;
    ByteReader values(content, file);
    for (std::uint64_t* field : fields)
      if (*field == kIn64Wide) *field = values.read<std::uint64_t>("a zip64 size in the zip directory");
    return;
  }
}

CentralEntry read_central_entry(ByteReader& reader) {
  const std::string& file = reader.file();
  const Bytes fixed = reader.take(46, "an entry of the zip directory");
  const std::byte* record = fixed.data();
  check(load<std::uint32_t>(record) == kCentralHeader, file,
        " has a damaged zip directory; fetch the file again");
  const auto flags = load<std::uint16_t>(record + 8), method = load<std::uint16_t>(record + 10);
  std::uint64_t packed = load<std::uint32_t>(record + 20), size = load<std::uint32_t>(record + 24),
                local_offset = load<std::uint32_t>(record + 42);
  const std::string_view name =
      as_text(reader.take(load<std::uint16_t>(record + 28), "a name in the zip directory"));
  const Bytes extra = reader.take(load<std::uint16_t>(record + 30), "an extra field in the zip directory");
  reader.take(load<std::uint16_t>(record + 32), "a comment in the zip directory");
  read_extra64(extra, {&size, &packed, &local_offset}, file);
  check((flags & kEncrypted) == 0, file, " has the encrypted entry ", printable(name), ", which is not read");
  check(method == 0, file, " has the compressed entry ", printable(name),
        "; only stored entries are read, and torch.save(model.state_dict(), ...) writes no others");
  check(packed == size, file, " has the entry ", printable(name),
        " with two sizes that contradict each other");
  return {name, size, local_offset};
}

// The entry's data, after its local header was found to say the same as the directory.
Bytes locate_data(Bytes files, const CentralEntry& entry, const std::string& file) {
  check(entry.local_offset <= files.size(), file, " has the entry ", printable(entry.name),
        " outside of the file; it is damaged, fetch it again");
  ByteReader reader(files, file, static_cast<std::size_t>(entry.local_offset));
  const std::byte* header = reader.take(30, "a zip entry's header").data();
  const std::string_view name = as_text(reader.take(load<std::uint16_t>(header + 26), "a zip entry's name"));
  const Bytes extra = reader.take(load<std::uint16_t>(header + 28), "a zip entry's extra field");
  const Bytes data = reader.take(entry.size, "a zip entry's data");
  bool agree = load<std::uint32_t>(header) == kLocalHeader && load<std::uint16_t>(header + 8) == 0 &&
               name == entry.name;
  if ((load<std::uint16_t>(header + 6) & kSizesFollowData) == 0) {
    std::uint64_t packed = load<std::uint32_t>(header + 18), size = load<std::uint32_t>(header + 22);
    read_extra64(extra, {&size, &packed}, file);
    agree = agree && size == entry.size && packed == entry.size;
  }
  check(agree, file, " has the entry ", printable(entry.name),
        " whose own header contradicts the zip directory; it is damaged, fetch it again");
  return data;
}

// A range of the file that one entry occupies: header, name and data.
struct Occupied {
  std::uint64_t begin, end;
};

void check_no_overlap(std::vector<Occupied> ranges, const std::string& file) {
  std::sort(ranges.begin(), ranges.end(),
            [](const Occupied& a, const Occupied& b) { return a.begin < b.begin; });
  for (std::size_t i = 1; i < ranges.size(); ++i)
    check(ranges[i - 1].end <= ranges[i].begin, file,
          " has zip entries that overlap; it is damaged or made to mislead, fetch it again from a source you "
          "trust");
}

}  // namespace

ZipDirectory::ZipDirectory(Bytes bytes, const std::string& file) {
  const Extent extent = read_extent(bytes, file);
  // Each entry takes at least 46 bytes, so that a lying count cannot make the reservations below large.
  check(extent.entries <= kMaxEntries && extent.entries <= extent.size / 46, file, " announces ",
        extent.entries, " zip entries, more than its directory can hold");
  const Bytes files = bytes.first(static_cast<std::size_t>(extent.offset));
  ByteReader directory(bytes.subspan(files.size(), static_cast<std::size_t>(extent.size)), file);
  std::vector<Occupied> occupied;
  occupied.reserve(static_cast<std::size_t>(extent.entries));
  entries_.reserve(static_cast<std::size_t>(extent.entries));
  for (std::uint64_t i = 0; i < extent.entries; ++i) {
    const CentralEntry entry = read_central_entry(directory);
    const Bytes data = locate_data(files, entry, file);
    check(by_name_.emplace(entry.name, entries_.size()).second, file, " has the zip entry ",
          printable(entry.name), " twice");
    entries_.push_back({entry.name, data});
    occupied.push_back(
        {entry.local_offset, static_cast<std::uint64_t>(data.data() + data.size() - bytes.data())});
  }
  check_no_overlap(std::move(occupied), file);
}

std::optional<Bytes> ZipDirectory::find(std::string_view name) const {
  const auto found = by_name_.find(name);
  if (found == by_name_.end()) return std::nullopt;
  return entries_[found->second].data;
}

}  // namespace dpg::checkpoint
