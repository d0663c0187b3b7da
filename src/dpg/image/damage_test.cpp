// Untrusted files: whatever is cut off, claimed or changed, the answer is a picture or one sentence.
#include <gtest/gtest.h>

#include <chrono>
#include <map>
#include <random>

#include "dpg/core/error.h"
#include "dpg/image/image.h"
#include "dpg/image/test_files.h"

namespace dpg {
namespace {

using test::bytes_of;
using test::ByteVector;
using test::noise_image;
using test::smooth_image;

// Small files of every format that this build reads. Of none of them is a prefix a whole picture.
std::map<std::string, ByteVector> small_files() {
  std::map<std::string, ByteVector> files;
  files["grey.pgm"] = encode_image(noise_image(1, 3, 5, 256), ".pgm");
  files["deep.ppm"] = encode_image(noise_image(3, 3, 5, 65536), ".ppm", {.bit_depth = 16});
  files["text.ppm"] = bytes_of("P3\n2 1\n# comment\n7\n1 2 3\n4 5 6");
  files["float.npy"] = encode_image(noise_image(3, 3, 5, 256), ".npy");
  if (codec_available("png")) {
    files["rgb.png"] = encode_image(noise_image(3, 3, 5, 256), ".png");
    files["deep.png"] = encode_image(noise_image(4, 3, 5, 65536), ".png", {.bit_depth = 16});
  }
  if (codec_available("jpeg")) {
    files["grey.jpg"] = encode_image(smooth_image(1, 9, 12), ".jpg");
    files["exif.jpg"] =
        test::with_exif(encode_image(smooth_image(3, 9, 12), ".jpg"), test::make_exif(8, true));
  }
  if (codec_available("webp")) {
    files["lossless.webp"] = encode_image(noise_image(4, 3, 5, 256), ".webp");
    files["lossy.webp"] = encode_image(smooth_image(3, 9, 12), ".webp", {.webp_lossy = true});
  }
  return files;
}

TEST(Damage, EveryPrefixOfEveryFormatIsRefusedByName) {
  for (const auto& [name, bytes] : small_files()) {
    ASSERT_NO_THROW(decode_image(bytes, name)) << name;
    for (std::size_t length = 0; length < bytes.size(); ++length) {
      // Each prefix lives in its own allocation, so that the address sanitizer sees a read behind its end.
      const ByteVector prefix(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(length));
      try {
        decode_image(prefix, name);
        ADD_FAILURE() << name << " cut to " << length << " of " << bytes.size()
                      << " bytes was taken for a picture";
      } catch (const Error& error) {
        ASSERT_NE(std::string(error.what()).find(name), std::string::npos) << error.what();
      }
    }
  }
}

TEST(Damage, ChangedBytesGiveAPictureOrASentence) {
  std::mt19937 random(7);
  int refused = 0;
  for (const auto& [name, bytes] : small_files()) {
    for (int trial = 0; trial < 300; ++trial) {
      ByteVector changed = bytes;
      for (int flips = 0; flips <= trial % 4; ++flips) {
        changed[random() % changed.size()] ^= static_cast<std::byte>(1u << random() % 8);
      }
      try {
        const Image image = decode_image(changed, name, {.max_pixels = 1'000'000});
        EXPECT_EQ(image.data.size(), static_cast<std::size_t>(image.channels * image.pixels()));
      } catch (const Error&) {
        ++refused;
      }
    }
  }
  EXPECT_GT(refused, 100);
}

std::string message_of(const ByteVector& bytes, const ReadLimits& limits = {}) {
  try {
    decode_image(bytes, "bomb", limits);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

// Files whose headers claim 60000 x 60000 or more and that hold next to nothing.
std::map<std::string, ByteVector> bombs() {
  std::map<std::string, ByteVector> files;
  files["pgm"] = bytes_of("P5 100000 100000 255\n");
  files["text"] = bytes_of("P2 100000 100000 255\n1 2 3");
  std::string header = "{'descr': '|u1', 'fortran_order': False, 'shape': (100000, 100000)}";
  header.resize(118, ' ');
  files["npy"] = bytes_of(std::string("\x93NUMPY\x01\x00\x76\x00", 10) + header);
  if (codec_available("png")) {
    files["png"] = bytes_of(test::make_png({.width = 100000, .height = 100000, .scanlines = "x"}));
    // Beyond libpng's own limit of a million a side.
    files["wide png"] =
        bytes_of(test::make_png({.width = 0x7FFFFFFF, .height = 0x7FFFFFFF, .scanlines = "x"}));
  }
  if (codec_available("jpeg")) {
    ByteVector jpeg = encode_image(smooth_image(1, 8, 8), ".jpg");
    for (std::size_t i = 0; i + 8 < jpeg.size(); ++i) {
      if (jpeg[i] != std::byte{0xFF} || jpeg[i + 1] != std::byte{0xC0}) continue;
      for (const std::size_t at : {i + 5, i + 7})
        jpeg[at] = std::byte{60000 >> 8}, jpeg[at + 1] = std::byte{60000 & 255};
    }
    files["jpeg"] = jpeg;
  }
  return files;
}

TEST(Damage, BombsAreRefusedByTheLimitBeforeAnythingIsDecoded) {
  for (const auto& [format, bytes] : bombs()) {
    const auto start = std::chrono::steady_clock::now();
    const std::string message = message_of(bytes);
    const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
    EXPECT_NE(message.find("bomb"), std::string::npos) << format;
    EXPECT_NE(message.find("limit"), std::string::npos) << format << ": " << message;
    EXPECT_LT(taken.count(), 0.1) << format;
  }
}

TEST(Damage, TheLimitIsExact) {
  for (const std::string extension : {".png", ".jpg", ".webp", ".ppm", ".npy"}) {
    if (std::string e = extension.substr(1); !codec_available(e == "jpg" ? "jpeg" : e == "ppm" ? "pnm" : e))
      continue;
    const ByteVector bytes = encode_image(smooth_image(3, 10, 11), extension);
    EXPECT_EQ(message_of(bytes, {.max_pixels = 110}), "") << extension;
    EXPECT_NE(message_of(bytes, {.max_pixels = 109}).find("109"), std::string::npos) << extension;
  }
}

TEST(Damage, APngTooShortForItsSizeIsRefusedBeforeMemoryIsTaken) {
  if (!codec_available("png")) GTEST_SKIP() << "built without libpng";
  const auto bytes = bytes_of(test::make_png({.width = 8000, .height = 8000, .colour = 6, .scanlines = "x"}));
  EXPECT_NE(message_of(bytes).find("too short"), std::string::npos);
}

TEST(Damage, AnimatedWebpIsRefused) {
  if (!codec_available("webp")) GTEST_SKIP() << "built without libwebp";
  // RIFF with a VP8X chunk whose animation flag is set, a canvas of 1 x 1, and an ANIM chunk.
  const std::string body = std::string("WEBPVP8X\x0A\0\0\0\x02\0\0\0\0\0\0\0\0\0", 22) +
                           std::string("ANIM\x06\0\0\0\0\0\0\0\0\0", 14);
  const std::string file = std::string("RIFF") + static_cast<char>(body.size()) + std::string(3, '\0') + body;
  EXPECT_NE(message_of(bytes_of(file)).find("animated"), std::string::npos) << message_of(bytes_of(file));
}

TEST(Damage, JpegWithItsLowerHalfMissingIsNoPicture) {
  if (!codec_available("jpeg")) GTEST_SKIP() << "built without libjpeg";
  ByteVector bytes = encode_image(noise_image(3, 64, 64, 256), ".jpg");
  bytes.resize(bytes.size() / 2);
  EXPECT_NE(message_of(bytes).find("truncated"), std::string::npos);
  bytes.push_back(std::byte{0xFF});  // even when the end is marked as one
  bytes.push_back(std::byte{0xD9});
  EXPECT_NE(message_of(bytes).find("truncated"), std::string::npos);
}

}  // namespace
}  // namespace dpg
