// A short name for the contents of a file, to tell whether it is still the same one. Not for secrets: anyone
// can make two files with equal fingerprints if they want to.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>

namespace dpg {

// XXH64 (Collet) with seed 0: as fast as memory is read.
std::uint64_t xxh64(std::span<const std::byte> bytes);

// "xxh64:" and 16 hexadecimal digits.
std::string fingerprint(std::span<const std::byte> bytes);
std::string file_fingerprint(const std::filesystem::path& path);

}  // namespace dpg
