// WebP through libwebp: lossy and lossless still pictures, with alpha and EXIF orientation.
#include <webp/decode.h>
#include <webp/encode.h>

#include <cstring>
#include <optional>

#include "dpg/image/codecs.h"
#include "dpg/image/exif.h"

namespace dpg::codec {
namespace {

constexpr std::size_t kRiffHeader = 12;  // "RIFF", size, "WEBP"
constexpr std::size_t kChunkHeader = 8;  // name, size

std::size_t little_endian32(Bytes bytes, std::size_t offset) {
  std::size_t value = 0;
  for (std::size_t i = 4; i-- > 0;) value = value << 8 | std::to_integer<std::size_t>(bytes[offset + i]);
  return value;
}

// The file without what may follow its RIFF container; fails where the container ends too early. libwebp
// itself does not notice when only the chunks after the picture are missing.
Bytes riff_container(const Input& input) {
  const std::size_t size = input.bytes.size() < kRiffHeader ? 0 : little_endian32(input.bytes, 4);
  if (size < kRiffHeader - 8 || size > input.bytes.size() - 8)
    fail_reading(input, "the WebP file is truncated");
  return input.bytes.first(size + 8);
}

std::optional<Bytes> find_chunk(Bytes riff, const char* name) {
  std::size_t at = kRiffHeader;
  while (riff.size() - at >= kChunkHeader) {
    const std::size_t size = little_endian32(riff, at + 4);
    const std::size_t room = riff.size() - at - kChunkHeader;
    if (size > room) return std::nullopt;
    if (std::memcmp(&riff[at], name, 4) == 0) return riff.subspan(at + kChunkHeader, size);
    const std::size_t padded = size + size % 2;  // chunks start at even offsets
    if (padded > room) return std::nullopt;
    at += kChunkHeader + padded;
  }
  return std::nullopt;
}

void check_status(const Input& input, VP8StatusCode status) {
  if (status == VP8_STATUS_OK) return;
  if (status == VP8_STATUS_NOT_ENOUGH_DATA) fail_reading(input, "the WebP data is truncated");
  if (status == VP8_STATUS_OUT_OF_MEMORY) fail_reading(input, "there is not enough memory to decode it");
  fail_reading(input, "the WebP data is damaged (libwebp status ", static_cast<int>(status), ")");
}

}  // namespace

Decoded decode_webp(const Input& input) {
  const Bytes riff = riff_container(input);
  WebPDecoderConfig config;
  if (WebPInitDecoderConfig(&config) == 0)
    fail_reading(input, "libwebp is of another version than its headers");
  check_status(input, WebPGetFeatures(as_u8(riff), riff.size(), &config.input));
  if (config.input.has_animation != 0) {
    fail_reading(input, "it is an animated WebP; extract one frame as a still picture first");
  }
  const int width = config.input.width;
  const int height = config.input.height;
  check_size(input, width, height);

  const int channels = config.input.has_alpha != 0 ? 4 : 3;
  const std::size_t stride = static_cast<std::size_t>(width) * channels;
  std::vector<std::uint8_t> raster(stride * height);
  config.output.colorspace = channels == 4 ? MODE_RGBA : MODE_RGB;
  config.output.is_external_memory = 1;
  config.output.u.RGBA = {raster.data(), static_cast<int>(stride), raster.size()};
  check_status(input, WebPDecode(as_u8(riff), riff.size(), &config));

  Decoded decoded;
  if (const auto exif = find_chunk(riff, "EXIF")) decoded.orientation = exif_orientation(*exif);
  decoded.image = blank_image(channels, height, width);
  for (int y = 0; y < height; ++y) store_row8(decoded.image, y, raster.data() + y * stride);
  return decoded;
}

namespace {

// libwebp's picture and the bytes that it writes, released together.
struct Writer {
  explicit Writer(const Output& output) {
    WebPMemoryWriterInit(&memory);
    if (WebPPictureInit(&picture) == 0)
      fail_writing(output, "libwebp is of another version than its headers");
    picture.writer = WebPMemoryWrite;
    picture.custom_ptr = &memory;
  }
  Writer(const Writer&) = delete;
  Writer& operator=(const Writer&) = delete;
  ~Writer() {
    WebPPictureFree(&picture);
    WebPMemoryWriterClear(&memory);
  }

  WebPPicture picture;
  WebPMemoryWriter memory;
};

// WebP knows RGB and RGBA only: grey becomes three equal channels.
std::vector<std::uint8_t> rgb_or_rgba(const Image& image) {
  const bool grey = image.channels <= 2;
  const int channels = grey ? image.channels + 2 : image.channels;
  std::vector<std::uint8_t> row(static_cast<std::size_t>(image.width) * image.channels);
  std::vector<std::uint8_t> raster(static_cast<std::size_t>(image.pixels()) * channels);
  std::uint8_t* out = raster.data();
  for (int y = 0; y < image.height; ++y) {
    load_row8(image, y, row.data());
    for (int x = 0; x < image.width; ++x) {
      const std::uint8_t* pixel = row.data() + static_cast<std::size_t>(x) * image.channels;
      for (int c = 0; c < channels; ++c) *out++ = grey ? pixel[c < 3 ? 0 : 1] : pixel[c];
    }
  }
  return raster;
}

WebPConfig encoder_config(const Output& output) {
  WebPConfig config;
  if (WebPConfigPreset(&config, WEBP_PRESET_DEFAULT, static_cast<float>(output.options.jpeg_quality)) == 0) {
    fail_writing(output, "libwebp is of another version than its headers");
  }
  if (!output.options.webp_lossy) {
    WebPConfigLosslessPreset(&config, 6);
    config.exact = 1;  // keep the colour under transparent pixels
  }
  return config;
}

}  // namespace

std::vector<std::byte> encode_webp(const Output& output) {
  const Image& image = output.image;
  if (image.width > WEBP_MAX_DIMENSION || image.height > WEBP_MAX_DIMENSION) {
    fail_writing(output, "WebP holds at most ", WEBP_MAX_DIMENSION, " pixels a side and the picture is ",
                 image.width, " x ", image.height, "; write PNG");
  }
  const WebPConfig config = encoder_config(output);
  Writer writer(output);
  writer.picture.use_argb = output.options.webp_lossy ? 0 : 1;
  writer.picture.width = image.width;
  writer.picture.height = image.height;
  const std::vector<std::uint8_t> raster = rgb_or_rgba(image);
  const bool alpha = image.channels % 2 == 0;
  const int stride = image.width * (alpha ? 4 : 3);
  const int imported = alpha ? WebPPictureImportRGBA(&writer.picture, raster.data(), stride)
                             : WebPPictureImportRGB(&writer.picture, raster.data(), stride);
  if (imported == 0 || WebPEncode(&config, &writer.picture) == 0) {
    fail_writing(output, "libwebp could not encode it (error ", static_cast<int>(writer.picture.error_code),
                 ")");
  }
  return to_bytes(writer.memory.mem, writer.memory.size);
}

}  // namespace dpg::codec
