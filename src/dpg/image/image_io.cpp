// Which codec reads or writes a file, and what all of them have in common.
#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <new>

#include "dpg/core/file.h"
#include "dpg/image/codecs.h"
#include "dpg/image/image.h"
#include "dpg/image/transform.h"

namespace dpg {
namespace {

using codec::Bytes;

bool starts_with(Bytes bytes, std::string_view magic, std::size_t offset = 0) {
  if (bytes.size() < offset + magic.size()) return false;
  return std::equal(
      magic.begin(), magic.end(), bytes.begin() + static_cast<std::ptrdiff_t>(offset),
      [](char a, std::byte b) { return static_cast<unsigned char>(a) == std::to_integer<unsigned char>(b); });
}

bool is_png(Bytes bytes) {
  return starts_with(bytes, "\x89PNG\r\n\x1a\n");
}
bool is_jpeg(Bytes bytes) {
  return starts_with(bytes, "\xFF\xD8\xFF");
}
bool is_webp(Bytes bytes) {
  return starts_with(bytes, "RIFF") && starts_with(bytes, "WEBP", 8);
}
bool is_npy(Bytes bytes) {
  return starts_with(bytes, "\x93NUMPY");
}
bool is_pnm(Bytes bytes) {
  if (bytes.size() < 3 || !starts_with(bytes, "P")) return false;
  const int kind = std::to_integer<int>(bytes[1]);
  const int space = std::to_integer<int>(bytes[2]);
  return kind >= '1' && kind <= '6' && (std::isspace(space) != 0 || space == '#');
}

struct Codec {
  const char* name;     // for codec_available
  const char* title;    // for messages
  const char* library;  // what to install where the codec is missing
  bool (*matches)(Bytes);
  codec::Decoded (*decode)(const codec::Input&);  // null where the build lacks the codec
};

#ifdef DPG_HAVE_PNG
constexpr Codec kPng{"png", "PNG", "libpng", is_png, codec::decode_png};
constexpr auto kEncodePng = codec::encode_png;
#else
constexpr Codec kPng{"png", "PNG", "libpng", is_png, nullptr};
constexpr std::vector<std::byte> (*kEncodePng)(const codec::Output&) = nullptr;
#endif
#ifdef DPG_HAVE_JPEG
constexpr Codec kJpeg{"jpeg", "JPEG", "libjpeg", is_jpeg, codec::decode_jpeg};
constexpr auto kEncodeJpeg = codec::encode_jpeg;
#else
constexpr Codec kJpeg{"jpeg", "JPEG", "libjpeg", is_jpeg, nullptr};
constexpr std::vector<std::byte> (*kEncodeJpeg)(const codec::Output&) = nullptr;
#endif
#ifdef DPG_HAVE_WEBP
constexpr Codec kWebp{"webp", "WebP", "libwebp", is_webp, codec::decode_webp};
constexpr auto kEncodeWebp = codec::encode_webp;
#else
constexpr Codec kWebp{"webp", "WebP", "libwebp", is_webp, nullptr};
constexpr std::vector<std::byte> (*kEncodeWebp)(const codec::Output&) = nullptr;
#endif
constexpr Codec kPnm{"pnm", "PPM/PGM", "", is_pnm, codec::decode_pnm};
constexpr Codec kNpy{"npy", "NPY", "", is_npy, codec::decode_npy_image};
constexpr std::array kCodecs = {&kPng, &kJpeg, &kWebp, &kPnm, &kNpy};

struct Extension {
  const char* extension;
  const Codec* codec;
  std::vector<std::byte> (*encode)(const codec::Output&);  // null where this build cannot write it
};
constexpr std::array<Extension, 8> kExtensions = {{{".png", &kPng, kEncodePng},
                                                   {".jpg", &kJpeg, kEncodeJpeg},
                                                   {".jpeg", &kJpeg, kEncodeJpeg},
                                                   {".webp", &kWebp, kEncodeWebp},
                                                   {".ppm", &kPnm, codec::encode_ppm},
                                                   {".pgm", &kPnm, codec::encode_pgm},
                                                   {".pnm", &kPnm, nullptr},
                                                   {".npy", &kNpy, codec::encode_npy_image}}};

std::string missing(const Codec& codec) {
  return str("this build has no ", codec.title, " support; install the development files of ", codec.library,
             " and build again, or use PPM or NPY");
}

// A kinder word for pictures that people do have but that are not read here.
const char* foreign_format(Bytes bytes) {
  if (starts_with(bytes, "GIF8")) return "a GIF";
  if (starts_with(bytes, "BM")) return "a BMP";
  if (starts_with(bytes, std::string_view("II*\0", 4)) || starts_with(bytes, std::string_view("MM\0*", 4)))
    return "a TIFF";
  if (starts_with(bytes, "ftypavif", 4)) return "an AVIF";
  if (starts_with(bytes, "ftyphei", 4)) return "a HEIC";
  return nullptr;
}

codec::Decoded decode(const codec::Input& input) {
  if (input.bytes.empty()) codec::fail_reading(input, "the file is empty");
  for (const Codec* codec : kCodecs) {
    if (!codec->matches(input.bytes)) continue;
    if (codec->decode == nullptr) codec::fail_reading(input, missing(*codec));
    return codec->decode(input);
  }
  if (const char* format = foreign_format(input.bytes)) {
    codec::fail_reading(input, "it looks like ", format, " file, which is not read here; convert it to PNG");
  }
  codec::fail_reading(input, "it is not an image of a known format (PNG, JPEG, WebP, PPM/PGM, NPY)");
}

void check_writable(const Image& image, const WriteOptions& options, const std::string& name) {
  check(image.channels >= 1 && image.channels <= 4, "cannot write ", name, ": the picture has ",
        image.channels, " channels and must have 1 to 4");
  check(image.height > 0 && image.width > 0, "cannot write ", name, ": the picture is empty (", image.width,
        " x ", image.height, ")");
  const auto expected = static_cast<std::size_t>(image.channels) * static_cast<std::size_t>(image.pixels());
  check(image.data.size() == expected, "cannot write ", name, ": the picture has ", image.data.size(),
        " values and its size says ", expected);
  check(options.bit_depth == 8 || options.bit_depth == 16, "cannot write ", name, ": bit_depth is ",
        options.bit_depth, " and must be 8 or 16");
  check(options.jpeg_quality >= 1 && options.jpeg_quality <= 100, "cannot write ", name, ": jpeg_quality is ",
        options.jpeg_quality, " and must be 1 to 100");
  const bool has_nan =
      std::any_of(image.data.begin(), image.data.end(), [](float v) { return std::isnan(v); });
  check(!has_nan, "cannot write ", name, ": the picture holds values that are not numbers (NaN)");
}

std::string lower_case(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) { return std::tolower(c); });
  return text;
}

std::vector<std::byte> encode(const Image& image, const std::string& extension, const std::string& name,
                              const WriteOptions& options) {
  const codec::Output output{image, name, options};
  const std::string wanted = lower_case(extension);
  const auto* known = std::find_if(kExtensions.begin(), kExtensions.end(),
                                   [&](const Extension& e) { return wanted == e.extension; });
  if (known != kExtensions.end() && known->codec->decode == nullptr)
    codec::fail_writing(output, missing(*known->codec));
  if (known == kExtensions.end() || known->encode == nullptr) {
    codec::fail_writing(output, "its name must end in .png, .jpg, .jpeg, .webp, .ppm, .pgm or .npy");
  }
  check_writable(image, options, name);
  return known->encode(output);
}

}  // namespace

Image decode_image(std::span<const std::byte> bytes, const std::string& name, const ReadLimits& limits) {
  const codec::Input input{bytes, name, limits};
  try {
    codec::Decoded decoded = decode(input);
    return oriented(std::move(decoded.image), decoded.orientation);
  } catch (const std::bad_alloc&) {
    codec::fail_reading(input, "there is not enough memory to decode it");
  }
}

Image read_image(const std::filesystem::path& path, const ReadLimits& limits) {
  const MappedFile file(path);
  return decode_image(file.bytes(), path.string(), limits);
}

std::vector<std::byte> encode_image(const Image& image, const std::string& extension,
                                    const WriteOptions& options) {
  return encode(image, extension, str("a ", extension, " picture"), options);
}

void write_image(const std::filesystem::path& path, const Image& image, const WriteOptions& options) {
  const std::vector<std::byte> bytes = encode(image, path.extension().string(), path.string(), options);
  AtomicFile file(path);
  file.write(bytes.data(), bytes.size());
  file.commit();
}

bool codec_available(const std::string& codec) {
  return std::any_of(kCodecs.begin(), kCodecs.end(),
                     [&](const Codec* c) { return c->name == codec && c->decode != nullptr; });
}

std::vector<std::string> readable_extensions() {
  std::vector<std::string> extensions;
  for (const Extension& e : kExtensions) {
    if (e.codec->decode != nullptr) extensions.emplace_back(e.extension);
  }
  return extensions;
}

}  // namespace dpg
