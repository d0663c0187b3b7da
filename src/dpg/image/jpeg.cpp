// JPEG through libjpeg: grey, colour and CMYK, baseline and progressive, with EXIF orientation.
//
// libjpeg reports errors by longjmp. Each `guarded` step therefore makes no object with a destructor;
// everything that must be released lives outside, in Reader and Writer.
#include <cstdio>
// libjpeg's headers use FILE and size_t without including what declares them, and jerror.h needs jpeglib.h.
#include <jpeglib.h>
//
#include <jerror.h>

#include <csetjmp>
#include <cstdlib>
#include <cstring>

#include "dpg/image/codecs.h"
#include "dpg/image/exif.h"

namespace dpg::codec {
namespace {

// Encoders write about ten scans; each one more makes the decoder walk the whole picture again.
constexpr int kMaxScans = 100;
constexpr int kExifMarker = JPEG_APP0 + 1;

struct ErrorManager : jpeg_error_mgr {
  std::jmp_buf escape;
  char message[JMSG_LENGTH_MAX] = "";
};

[[noreturn]] void on_error(j_common_ptr info) {
  auto* errors = static_cast<ErrorManager*>(info->err);
  errors->format_message(info, errors->message);
  std::longjmp(errors->escape, 1);
}

// libjpeg only warns where it makes up missing pixels; for us such a picture is damaged.
bool means_lost_pixels(int code) {
  return code == JWRN_JPEG_EOF || code == JWRN_HIT_MARKER || code == JWRN_HUFF_BAD_CODE ||
         code == JWRN_ARITH_BAD_CODE || code == JWRN_MUST_RESYNC;
}

void on_message(j_common_ptr info, int level) {
  if (level < 0 && means_lost_pixels(info->err->msg_code)) on_error(info);
}

void on_progress(j_common_ptr info) {
  if (reinterpret_cast<j_decompress_ptr>(info)->input_scan_number <= kMaxScans) return;
  auto* errors = static_cast<ErrorManager*>(info->err);
  std::snprintf(errors->message, sizeof errors->message, "more than %d scans", kMaxScans);
  std::longjmp(errors->escape, 1);
}

void start(ErrorManager& errors) {
  jpeg_std_error(&errors);
  errors.error_exit = on_error;
  errors.emit_message = on_message;
}

// Runs `step`; false when libjpeg gave up in it.
template <class Step>
bool guarded(ErrorManager& errors, const Step& step) {
  if (setjmp(errors.escape) != 0) return false;
  step();
  return true;
}

struct Reader {
  Reader() {
    start(errors);
    info.err = &errors;
    monitor.progress_monitor = on_progress;
  }
  Reader(const Reader&) = delete;
  Reader& operator=(const Reader&) = delete;
  ~Reader() { jpeg_destroy_decompress(&info); }

  jpeg_decompress_struct info{};
  ErrorManager errors;
  jpeg_progress_mgr monitor{};
};

[[noreturn]] void fail_decoding(const Input& input, const Reader& reader) {
  fail_reading(input, "the JPEG data is truncated, damaged or of an unsupported kind (",
               reader.errors.message, ")");
}

int orientation(const jpeg_decompress_struct& info) {
  for (const auto* marker = info.marker_list; marker != nullptr; marker = marker->next) {
    const bool exif = marker->marker == kExifMarker && marker->data_length >= 6 &&
                      std::memcmp(marker->data, "Exif\0", 6) == 0;
    if (exif) return exif_orientation(std::as_bytes(std::span(marker->data, marker->data_length)));
  }
  return 1;
}

bool is_cmyk(const jpeg_decompress_struct& info) {
  return info.jpeg_color_space == JCS_CMYK || info.jpeg_color_space == JCS_YCCK;
}

// Ink to light, in place, without a colour profile. Adobe's files hold 255 - ink.
void cmyk_to_rgb(std::uint8_t* row, int width, bool inverted) {
  for (int x = 0; x < width; ++x) {
    const std::uint8_t* ink = row + 4 * static_cast<std::size_t>(x);
    const auto light = [inverted](std::uint8_t v) { return inverted ? int{v} : 255 - v; };
    const int black = light(ink[3]);
    for (int c = 0; c < 3; ++c) {
      row[3 * static_cast<std::size_t>(x) + c] =
          static_cast<std::uint8_t>((light(ink[c]) * black + 127) / 255);
    }
  }
}

}  // namespace

Decoded decode_jpeg(const Input& input) {
  Reader reader;
  auto& info = reader.info;
  const bool header_read = guarded(reader.errors, [&] {
    jpeg_create_decompress(&info);
    info.progress = &reader.monitor;
    jpeg_mem_src(&info, as_u8(input.bytes), input.bytes.size());
    jpeg_save_markers(&info, kExifMarker, 0xFFFF);
    jpeg_read_header(&info, TRUE);
  });
  if (!header_read) fail_decoding(input, reader);
  check_size(input, info.image_width, info.image_height);

  const bool started = guarded(reader.errors, [&] {
    if (info.jpeg_color_space != JCS_GRAYSCALE) info.out_color_space = is_cmyk(info) ? JCS_CMYK : JCS_RGB;
    jpeg_start_decompress(&info);
  });
  if (!started) fail_decoding(input, reader);
  Decoded decoded;
  decoded.orientation = orientation(info);
  decoded.image = blank_image(info.out_color_space == JCS_GRAYSCALE ? 1 : 3,
                              static_cast<int>(info.output_height), static_cast<int>(info.output_width));
  std::vector<std::uint8_t> row(static_cast<std::size_t>(info.output_width) * info.output_components);
  const bool finished = guarded(reader.errors, [&] {
    for (int y = 0; y < decoded.image.height; ++y) {
      JSAMPROW samples = row.data();
      jpeg_read_scanlines(&info, &samples, 1);
      if (is_cmyk(info)) cmyk_to_rgb(row.data(), decoded.image.width, info.saw_Adobe_marker != 0);
      store_row8(decoded.image, y, row.data());
    }
    // False: scans follow that were not announced and that nobody can show.
    if (jpeg_finish_decompress(&info) == FALSE) ERREXIT(&info, JERR_EOI_EXPECTED);
  });
  if (!finished) fail_decoding(input, reader);
  return decoded;
}

namespace {

struct Writer {
  Writer() {
    start(errors);
    info.err = &errors;
  }
  Writer(const Writer&) = delete;
  Writer& operator=(const Writer&) = delete;
  ~Writer() {
    jpeg_destroy_compress(&info);
    std::free(data);
  }

  jpeg_compress_struct info{};
  ErrorManager errors;
  unsigned char* data = nullptr;  // libjpeg allocates it by malloc
  unsigned long size = 0;
};

void configure(jpeg_compress_struct& info, const Image& image, int quality) {
  info.image_width = static_cast<JDIMENSION>(image.width);
  info.image_height = static_cast<JDIMENSION>(image.height);
  info.input_components = image.channels;
  info.in_color_space = image.channels == 1 ? JCS_GRAYSCALE : JCS_RGB;
  jpeg_set_defaults(&info);
  jpeg_set_quality(&info, quality, TRUE);
  info.optimize_coding = TRUE;
  // Colour at full resolution: these pictures are looked at closely and measured.
  for (int c = 0; c < info.num_components; ++c)
    info.comp_info[c].h_samp_factor = info.comp_info[c].v_samp_factor = 1;
}

}  // namespace

std::vector<std::byte> encode_jpeg(const Output& output) {
  const Image& image = output.image;
  if (image.channels == 2 || image.channels == 4) {
    fail_writing(output, "JPEG has no alpha channel; write PNG or WebP, or drop the alpha first");
  }
  Writer writer;
  auto& info = writer.info;
  std::vector<std::uint8_t> row(static_cast<std::size_t>(image.width) * image.channels);
  const bool written = guarded(writer.errors, [&] {
    jpeg_create_compress(&info);
    jpeg_mem_dest(&info, &writer.data, &writer.size);
    configure(info, image, output.options.jpeg_quality);
    jpeg_start_compress(&info, TRUE);
    for (int y = 0; y < image.height; ++y) {
      load_row8(image, y, row.data());
      JSAMPROW samples = row.data();
      jpeg_write_scanlines(&info, &samples, 1);
    }
    jpeg_finish_compress(&info);
  });
  if (!written) fail_writing(output, "libjpeg says: ", writer.errors.message);
  return to_bytes(writer.data, writer.size);
}

}  // namespace dpg::codec
