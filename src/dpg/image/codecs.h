// Internal to the image library: what each codec offers, and what the codecs share.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "dpg/core/error.h"
#include "dpg/image/image.h"

namespace dpg::codec {

using Bytes = std::span<const std::byte>;

// A file to decode. `name` stands for it in messages.
struct Input {
  Bytes bytes;
  const std::string& name;
  ReadLimits limits;
};

struct Decoded {
  Image image;
  int orientation = 1;  // EXIF, 1 to 8: how the picture is to be turned, see transform.h
};

Decoded decode_png(const Input& input);
Decoded decode_jpeg(const Input& input);
Decoded decode_webp(const Input& input);
Decoded decode_pnm(const Input& input);
Decoded decode_npy_image(const Input& input);

// An image to encode; already checked by check_writable.
struct Output {
  const Image& image;
  const std::string& name;
  WriteOptions options;
};

std::vector<std::byte> encode_png(const Output& output);
std::vector<std::byte> encode_jpeg(const Output& output);
std::vector<std::byte> encode_webp(const Output& output);
std::vector<std::byte> encode_ppm(const Output& output);
std::vector<std::byte> encode_pgm(const Output& output);
std::vector<std::byte> encode_npy_image(const Output& output);

template <class... Reason>
[[noreturn]] void fail_reading(const Input& input, const Reason&... reason) {
  fail("cannot read ", input.name, ": ", reason...);
}

template <class... Reason>
[[noreturn]] void fail_writing(const Output& output, const Reason&... reason) {
  fail("cannot write ", output.name, ": ", reason...);
}

// Every decoder calls this with what the header says, before it allocates or decodes.
void check_size(const Input& input, std::int64_t width, std::int64_t height);

// Interleaved samples of one row into row `y`. 8 bit: v / 127.5 - 1.
void store_row8(Image& image, int y, const std::uint8_t* samples);
// 16 bit, high byte first (PNG and PNM both): 2 v / max_value - 1.
void store_row16(Image& image, int y, const std::uint8_t* samples, int max_value = 65535);
// The inverse: row `y` as interleaved samples, clamped to [-1, 1] and rounded to nearest.
void load_row8(const Image& image, int y, std::uint8_t* samples);
void load_row16(const Image& image, int y, std::uint8_t* samples);

inline const std::uint8_t* as_u8(Bytes bytes) {
  return reinterpret_cast<const std::uint8_t*>(bytes.data());
}
std::vector<std::byte> to_bytes(const void* data, std::size_t size);

}  // namespace dpg::codec
