// PNG through libpng: every colour type and depth, interlaced or not. Gamma and colour profiles are ignored:
// the samples are taken as sRGB, as every other codec here does.
//
// libpng reports errors by longjmp. Each `guarded` step therefore makes no object with a destructor;
// everything that must be released lives outside, in Reader and Writer.
#include <png.h>

#include <csetjmp>
#include <cstdio>
#include <cstring>

#include "dpg/image/codecs.h"
#include "dpg/image/exif.h"

namespace dpg::codec {
namespace {

struct Failure {
  char message[128] = "";
};

[[noreturn]] void on_error(png_structp png, png_const_charp message) {
  auto* failure = static_cast<Failure*>(png_get_error_ptr(png));
  std::snprintf(failure->message, sizeof failure->message, "%s", message);
  png_longjmp(png, 1);
}

void on_warning(png_structp, png_const_charp) {
}  // damage that libpng repairs: the pixels are not touched by it

// Runs `step`; false when libpng gave up in it.
template <class Step>
bool guarded(png_structp png, const Step& step) {
  if (setjmp(png_jmpbuf(png)) != 0) return false;
  step();
  return true;
}

struct Reader {
  explicit Reader(const Input& input) : rest(input.bytes) {
    png = png_create_read_struct(PNG_LIBPNG_VER_STRING, &failure, on_error, on_warning);
    if (png != nullptr) info = png_create_info_struct(png);
    if (info == nullptr) {
      png_destroy_read_struct(&png, nullptr, nullptr);
      fail_reading(input, "libpng could not be started");
    }
    png_set_read_fn(png, this, [](png_structp self, png_bytep out, std::size_t size) {
      auto& bytes = static_cast<Reader*>(png_get_io_ptr(self))->rest;
      if (size > bytes.size()) png_error(self, "the file ends too early");
      std::memcpy(out, bytes.data(), size);
      bytes = bytes.subspan(size);
    });
  }
  Reader(const Reader&) = delete;
  Reader& operator=(const Reader&) = delete;
  ~Reader() { png_destroy_read_struct(&png, &info, nullptr); }

  Failure failure;
  Bytes rest;
  png_structp png = nullptr;
  png_infop info = nullptr;
};

[[noreturn]] void fail_decoding(const Input& input, const Reader& reader) {
  fail_reading(input, "the PNG data is truncated or damaged (", reader.failure.message, ")");
}

// Deflate shrinks at most 1032 times: a smaller file cannot hold the pixels that it claims.
void check_plausible(const Input& input, std::size_t row_bytes, std::size_t height) {
  constexpr double kBestRatio = 1032;
  const double raw_size = static_cast<double>(row_bytes) * static_cast<double>(height);
  if (static_cast<double>(input.bytes.size()) * kBestRatio < raw_size) {
    fail_reading(input, "the PNG data is truncated or damaged (too short for the size it claims)");
  }
}

// Text and profiles are not wanted, and each may hold megabytes once inflated: libpng passes over them
// unread.
void skip_side_data(png_structp png) {
#ifdef PNG_SET_UNKNOWN_CHUNKS_SUPPORTED
  constexpr int kNameSize = 5;  // each with a zero byte
  static const png_byte kNames[] = "tEXt\0zTXt\0iTXt\0iCCP\0sPLT";
  png_set_keep_unknown_chunks(png, PNG_HANDLE_CHUNK_NEVER, kNames, sizeof kNames / kNameSize);
#else
  (void)png;
#endif
}

// Grey, grey + alpha, RGB or RGBA, of 8 or 16 bit, whatever the file holds.
void normalise(png_structp png, png_infop info) {
  png_set_expand(png);  // palettes to RGB, 1, 2 and 4 bit to 8, transparent colours to alpha
  png_set_interlace_handling(png);
  png_read_update_info(png, info);
}

int orientation(png_structp png, png_infop info) {
#ifdef PNG_eXIf_SUPPORTED
  png_uint_32 size = 0;
  png_bytep exif = nullptr;
  if (png_get_eXIf_1(png, info, &size, &exif) != 0)
    return exif_orientation(std::as_bytes(std::span(exif, size)));
#else
  (void)png;
  (void)info;
#endif
  return 1;
}

}  // namespace

Decoded decode_png(const Input& input) {
  Reader reader(input);
  png_structp png = reader.png;
  png_infop info = reader.info;
  const bool header_read = guarded(png, [=] {
    png_set_user_limits(png, PNG_UINT_31_MAX, PNG_UINT_31_MAX);  // our own limit follows, and names the file
    skip_side_data(png);
    png_read_info(png, info);
  });
  if (!header_read) fail_decoding(input, reader);
  check_size(input, png_get_image_width(png, info), png_get_image_height(png, info));
  const std::size_t height = png_get_image_height(png, info);
  check_plausible(input, png_get_rowbytes(png, info), height);
  if (!guarded(png, [=] { normalise(png, info); })) fail_decoding(input, reader);

  const std::size_t row_bytes = png_get_rowbytes(png, info);
  std::vector<std::uint8_t> raster(row_bytes * height);
  std::vector<png_bytep> rows(height);
  for (std::size_t y = 0; y < height; ++y) rows[y] = raster.data() + y * row_bytes;
  const bool pixels_read = guarded(png, [&] {
    png_read_image(png, rows.data());
    png_read_end(png, info);
  });
  if (!pixels_read) fail_decoding(input, reader);

  Decoded decoded;
  decoded.orientation = orientation(png, info);
  decoded.image = blank_image(png_get_channels(png, info), static_cast<int>(height),
                              static_cast<int>(png_get_image_width(png, info)));
  const bool deep = png_get_bit_depth(png, info) == 16;
  for (int y = 0; y < decoded.image.height; ++y) {
    deep ? store_row16(decoded.image, y, rows[y]) : store_row8(decoded.image, y, rows[y]);
  }
  return decoded;
}

namespace {

struct Writer {
  explicit Writer(const Output& output) {
    png = png_create_write_struct(PNG_LIBPNG_VER_STRING, &failure, on_error, on_warning);
    if (png != nullptr) info = png_create_info_struct(png);
    if (info == nullptr) {
      png_destroy_write_struct(&png, nullptr);
      fail_writing(output, "libpng could not be started");
    }
    png_set_write_fn(png, this, &Writer::append, nullptr);
  }
  Writer(const Writer&) = delete;
  Writer& operator=(const Writer&) = delete;
  ~Writer() { png_destroy_write_struct(&png, &info); }

  static void append(png_structp self, png_bytep data, std::size_t size) {
    // No exception may pass through libpng's frames.
    bool appended = true;
    try {
      auto& bytes = static_cast<Writer*>(png_get_io_ptr(self))->bytes;
      const auto* first = reinterpret_cast<const std::byte*>(data);
      bytes.insert(bytes.end(), first, first + size);
    } catch (...) {
      appended = false;
    }
    if (!appended) png_error(self, "out of memory");
  }

  Failure failure;
  std::vector<std::byte> bytes;
  png_structp png = nullptr;
  png_infop info = nullptr;
};

int colour_type(int channels) {
  constexpr int kTypes[] = {PNG_COLOR_TYPE_GRAY, PNG_COLOR_TYPE_GRAY_ALPHA, PNG_COLOR_TYPE_RGB,
                            PNG_COLOR_TYPE_RGB_ALPHA};
  return kTypes[channels - 1];
}

}  // namespace

std::vector<std::byte> encode_png(const Output& output) {
  const Image& image = output.image;
  const int depth = output.options.bit_depth;
  Writer writer(output);
  png_structp png = writer.png;
  png_infop info = writer.info;
  std::vector<std::uint8_t> row(static_cast<std::size_t>(image.width) * image.channels * (depth / 8));
  const bool written = guarded(png, [&] {
    png_set_user_limits(png, PNG_UINT_31_MAX, PNG_UINT_31_MAX);
    png_set_IHDR(png, info, static_cast<png_uint_32>(image.width), static_cast<png_uint_32>(image.height),
                 depth, colour_type(image.channels), PNG_INTERLACE_NONE, PNG_COMPRESSION_TYPE_BASE,
                 PNG_FILTER_TYPE_BASE);
    png_write_info(png, info);
    for (int y = 0; y < image.height; ++y) {
      depth == 16 ? load_row16(image, y, row.data()) : load_row8(image, y, row.data());
      png_write_row(png, row.data());
    }
    png_write_end(png, info);
  });
  if (!written) fail_writing(output, "libpng says: ", writer.failure.message);
  return std::move(writer.bytes);
}

}  // namespace dpg::codec
