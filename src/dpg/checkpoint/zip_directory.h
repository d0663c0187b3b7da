// The files inside a zip, as torch writes it: stored, not compressed, so that their data can be used in
// place. Checked: all offsets and sizes, the local headers against the central directory, that no two entries
// overlap and that no name comes twice. Checksums are not: that would read the whole file only to open it.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "dpg/checkpoint/byte_reader.h"

namespace dpg::checkpoint {

struct ZipEntry {
  std::string_view name;
  Bytes data;
};

class ZipDirectory {
 public:
  ZipDirectory(Bytes bytes, const std::string& file);

  const std::vector<ZipEntry>& entries() const { return entries_; }  // in the central directory's order
  std::optional<Bytes> find(std::string_view name) const;

 private:
  std::vector<ZipEntry> entries_;
  std::unordered_map<std::string_view, std::size_t> by_name_;
};

}  // namespace dpg::checkpoint
