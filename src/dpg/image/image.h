// Images in memory, and to and from files. A picture is float, CHW, range [-1, 1] everywhere in this project.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

namespace dpg {

struct Image {
  int channels = 0;  // 1 grey, 2 grey + alpha, 3 RGB, 4 RGB + alpha
  int height = 0;
  int width = 0;
  std::vector<float> data;  // channels x height x width, [-1, 1]

  std::int64_t pixels() const { return static_cast<std::int64_t>(height) * width; }
  float& at(int c, int y, int x) { return data[(static_cast<std::size_t>(c) * height + y) * width + x]; }
  float at(int c, int y, int x) const { return data[(static_cast<std::size_t>(c) * height + y) * width + x]; }
};

Image blank_image(int channels, int height, int width, float value = 0.0f);

struct ReadLimits {
  std::int64_t max_pixels = 64'000'000;  // checked from the header, before anything is decoded
};

// The format is told from the file's first bytes, never from its name. EXIF orientation is applied.
Image read_image(const std::filesystem::path& path, const ReadLimits& limits = {});
// The same from memory; `name` stands for the file in messages. This is what the fuzzers call.
Image decode_image(std::span<const std::byte> bytes, const std::string& name, const ReadLimits& limits = {});

struct WriteOptions {
  int bit_depth = 8;      // PNG, PPM and PGM: 8 or 16
  int jpeg_quality = 95;  // JPEG and lossy WebP: 1 to 100; WebP is lossless unless `webp_lossy`
  bool webp_lossy = false;
};

// The format is told from the extension: .png .jpg .jpeg .webp .ppm .pgm .npy. Values outside [-1, 1] are
// clamped (except NPY, which keeps floats exactly as (C, H, W)); a NaN is an error. A .ppm takes RGB only, a
// .pgm grey only, JPEG no alpha; WebP stores grey as RGB. Written under a temporary name and renamed.
void write_image(const std::filesystem::path& path, const Image& image, const WriteOptions& options = {});

// The same into memory; `extension` is one of those above.
std::vector<std::byte> encode_image(const Image& image, const std::string& extension,
                                    const WriteOptions& options = {});

// Whether this build reads and writes the codec: "png", "jpeg", "webp", "pnm", "npy".
bool codec_available(const std::string& codec);
// Extensions (".png", ...) that read_image of this build understands; for listing folders.
std::vector<std::string> readable_extensions();

}  // namespace dpg
