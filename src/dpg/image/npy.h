// NumPy's .npy files: arrays of any shape as float.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "dpg/image/image.h"

namespace dpg {

// What the file's numbers were; it decides how they are scaled when the array is taken as a picture.
enum class NpyKind { boolean, unsigned8, unsigned16, integer, floating };

struct NpyArray {
  std::vector<std::int64_t> shape;
  std::vector<float> data;  // C order, whatever the file's order; 64-bit values are rounded to float
  NpyKind kind = NpyKind::floating;
};

// Versions 1 to 3; |b1 |u1 u2 i4 i8 f2 f4 f8 in either byte order; C or Fortran order; up to 8 axes. The
// header is read by our own strict reader: nothing in it is evaluated. An array may have 4 values for each
// pixel of the limit.
NpyArray read_npy(const std::filesystem::path& path, const ReadLimits& limits = {});
// The same from memory; `name` stands for the file in messages.
NpyArray decode_npy(std::span<const std::byte> bytes, const std::string& name, const ReadLimits& limits = {});

// As <f4 in C order. `data` must have as many values as `shape` says.
std::vector<std::byte> encode_npy(std::span<const std::int64_t> shape, std::span<const float> data);
// The same into a file, written under a temporary name and renamed.
void write_npy(const std::filesystem::path& path, std::span<const std::int64_t> shape,
               std::span<const float> data);

}  // namespace dpg
