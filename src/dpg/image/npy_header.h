// Internal to the image library: the header of a .npy file.
#pragma once

#include "dpg/image/codecs.h"
#include "dpg/image/npy.h"

namespace dpg::codec {

enum class NpyType { b1, u1, u2, i4, i8, f2, f4, f8 };

struct NpyHeader {
  NpyType type = NpyType::f4;
  bool big_endian = false;
  bool fortran_order = false;
  std::vector<std::int64_t> shape;
  std::size_t count = 0;  // product of the shape
  std::size_t data_offset =
      0;  // where the numbers start; exactly `count` of them follow, to the end of the file
};

std::size_t size_of(NpyType type);
NpyKind kind_of(NpyType type);

// Checks everything, also that the numbers are all there and nothing else.
NpyHeader read_npy_header(const Input& input);
// The numbers of a file whose header was read, in C order.
std::vector<float> read_npy_data(const Input& input, const NpyHeader& header);

}  // namespace dpg::codec
