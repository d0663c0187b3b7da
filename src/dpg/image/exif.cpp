#include "dpg/image/exif.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>

namespace dpg {
namespace {

constexpr std::array<std::uint8_t, 6> kExifPrefix = {'E', 'x', 'i', 'f', 0, 0};
constexpr std::uint16_t kOrientationTag = 0x0112;
constexpr std::uint16_t kShortType = 3;
constexpr std::size_t kEntrySize = 12;  // tag 2, type 2, count 4, value 4

// Numbers of a TIFF block in its own byte order; nothing where the block is too short.
class TiffReader {
 public:
  explicit TiffReader(std::span<const std::byte> bytes) : bytes_(bytes) {}
  void set_little_endian(bool little) { little_ = little; }

  std::optional<std::uint16_t> u16(std::size_t offset) const {
    const auto value = number(offset, 2);
    if (!value) return std::nullopt;
    return static_cast<std::uint16_t>(*value);
  }
  std::optional<std::uint32_t> u32(std::size_t offset) const { return number(offset, 4); }

 private:
  std::optional<std::uint32_t> number(std::size_t offset, std::size_t size) const {
    if (offset > bytes_.size() || bytes_.size() - offset < size) return std::nullopt;
    std::uint32_t value = 0;
    for (std::size_t i = 0; i < size; ++i) {
      const std::size_t at = little_ ? offset + size - 1 - i : offset + i;
      value = value << 8 | std::to_integer<std::uint32_t>(bytes_[at]);
    }
    return value;
  }

  std::span<const std::byte> bytes_;
  bool little_ = false;
};

std::span<const std::byte> without_prefix(std::span<const std::byte> exif) {
  const bool prefixed =
      exif.size() >= kExifPrefix.size() &&
      std::equal(kExifPrefix.begin(), kExifPrefix.end(), exif.begin(),
                 [](std::uint8_t a, std::byte b) { return a == std::to_integer<std::uint8_t>(b); });
  return prefixed ? exif.subspan(kExifPrefix.size()) : exif;
}

}  // namespace

int exif_orientation(std::span<const std::byte> exif) {
  constexpr int kAsStored = 1;
  TiffReader tiff(without_prefix(exif));
  const auto order = tiff.u16(0);
  if (order != 0x4949 && order != 0x4D4D) return kAsStored;  // "II", "MM"
  tiff.set_little_endian(order == 0x4949);
  if (tiff.u16(2) != 42) return kAsStored;
  const auto directory = tiff.u32(4);
  if (!directory) return kAsStored;
  const auto entries = tiff.u16(*directory);
  for (std::size_t i = 0; i < entries.value_or(0); ++i) {
    const std::size_t entry = std::size_t{*directory} + 2 + i * kEntrySize;
    const auto tag = tiff.u16(entry);
    if (!tag) break;
    if (tag != kOrientationTag) continue;
    const auto value = tiff.u16(entry + 8);
    const bool valid =
        tiff.u16(entry + 2) == kShortType && tiff.u32(entry + 4) == 1u && value >= 1 && value <= 8;
    return valid ? *value : kAsStored;
  }
  return kAsStored;
}

}  // namespace dpg
