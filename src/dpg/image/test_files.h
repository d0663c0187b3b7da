// For the tests and the fuzzers' seeds: pictures to write and files that our own encoders do not make.
#pragma once

#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "dpg/image/image.h"

namespace dpg::test {

using ByteVector = std::vector<std::byte>;

inline ByteVector bytes_of(std::string_view text) {
  const auto* first = reinterpret_cast<const std::byte*>(text.data());
  return {first, first + text.size()};
}

// Noise on the grid of `levels` values (256: 8 bit, 65536: 16 bit), so that lossless files give it back
// exactly.
inline Image noise_image(int channels, int height, int width, int levels, unsigned seed = 1) {
  std::mt19937 random(seed);
  Image image = blank_image(channels, height, width);
  const float half = static_cast<float>(levels - 1) * 0.5f;
  for (float& value : image.data)
    value = static_cast<float>(random() % static_cast<unsigned>(levels)) / half - 1.0f;
  return image;
}

// Smooth, and different in every corner and channel: for lossy codecs and for orientations.
inline Image smooth_image(int channels, int height, int width) {
  Image image = blank_image(channels, height, width);
  for (int c = 0; c < channels; ++c) {
    for (int y = 0; y < height; ++y) {
      for (int x = 0; x < width; ++x) {
        const float u = (static_cast<float>(x) + 0.5f) / static_cast<float>(width);
        const float v = (static_cast<float>(y) + 0.5f) / static_cast<float>(height);
        image.at(c, y, x) = -0.8f + 1.0f * u + 0.5f * v + 0.05f * static_cast<float>(c);
      }
    }
  }
  return image;
}

// Big-endian numbers, as PNG and JPEG have them.
inline void put(std::string& out, std::uint32_t value, int size) {
  for (int shift = 8 * (size - 1); shift >= 0; shift -= 8)
    out.push_back(static_cast<char>(value >> shift & 0xFF));
}

inline std::string png_chunk(std::string_view type, std::string_view data) {
  std::string checked = std::string(type) + std::string(data);
  std::uint32_t crc = 0xFFFFFFFFu;
  for (const char c : checked) {
    crc ^= static_cast<unsigned char>(c);
    for (int bit = 0; bit < 8; ++bit) crc = crc >> 1 ^ ((crc & 1u) != 0 ? 0xEDB88320u : 0u);
  }
  std::string chunk;
  put(chunk, static_cast<std::uint32_t>(data.size()), 4);
  chunk += checked;
  put(chunk, ~crc, 4);
  return chunk;
}

// A zlib stream of one stored block.
inline std::string zlib_stored(std::string_view raw) {
  std::uint32_t a = 1, b = 0;
  for (const char c : raw) {
    a = (a + static_cast<unsigned char>(c)) % 65521;
    b = (b + a) % 65521;
  }
  const auto size = static_cast<std::uint32_t>(raw.size());
  std::string out("\x78\x01\x01", 3);
  for (const std::uint32_t word : {size, ~size}) {
    out.push_back(static_cast<char>(word & 0xFF));
    out.push_back(static_cast<char>(word >> 8 & 0xFF));
  }
  out += raw;
  put(out, b << 16 | a, 4);
  return out;
}

struct PngSpec {
  std::uint32_t width = 1, height = 1;
  int depth = 8;
  int colour = 0;  // PNG's colour type: 0 grey, 2 RGB, 3 palette, 4 grey + alpha, 6 RGBA
  bool interlaced = false;
  std::string before_pixels{};  // further chunks
  std::string scanlines{};      // each with its filter byte
};

inline std::string make_png(const PngSpec& spec) {
  std::string header;
  put(header, spec.width, 4);
  put(header, spec.height, 4);
  put(header, static_cast<std::uint32_t>(spec.depth << 24 | spec.colour << 16), 4);
  header.push_back(static_cast<char>(spec.interlaced));
  return std::string("\x89PNG\r\n\x1a\n", 8) + png_chunk("IHDR", header) + spec.before_pixels +
         png_chunk("IDAT", zlib_stored(spec.scanlines)) + png_chunk("IEND", "");
}

// An EXIF block (from its TIFF header on) with one entry before the orientation.
inline std::string make_exif(int orientation, bool little_endian) {
  std::string out = little_endian ? "II" : "MM";
  const auto number = [&](std::uint32_t value, int size) {
    std::string big;
    put(big, value, size);
    out += little_endian ? std::string(big.rbegin(), big.rend()) : big;
  };
  number(42, 2);
  number(8, 4);
  number(2, 2);  // entries
  for (const std::uint32_t tag : {0x0100u, 0x0112u}) {
    number(tag, 2);
    number(3, 2);  // SHORT
    number(1, 4);
    number(tag == 0x0112u ? static_cast<std::uint32_t>(orientation) : 7u, 2);
    number(0, 2);
  }
  number(0, 4);
  return out;
}

// The JPEG with an APP1 segment put in behind its start marker.
inline ByteVector with_exif(const ByteVector& jpeg, const std::string& exif) {
  std::string segment("\xFF\xE1", 2);
  put(segment, static_cast<std::uint32_t>(exif.size() + 8), 2);
  segment += std::string("Exif\0\0", 6) + exif;
  ByteVector out(jpeg.begin(), jpeg.begin() + 2);
  const ByteVector middle = bytes_of(segment);
  out.insert(out.end(), middle.begin(), middle.end());
  out.insert(out.end(), jpeg.begin() + 2, jpeg.end());
  return out;
}

}  // namespace dpg::test
