// Round trips through every format, and the messages that do not belong to one codec.
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <limits>

#include "dpg/core/error.h"
#include "dpg/core/test_folder.h"
#include "dpg/image/image.h"
#include "dpg/image/test_files.h"
#include "dpg/image/transform.h"

namespace dpg {
namespace {

using test::bytes_of;
using test::ByteVector;
using test::noise_image;
using test::smooth_image;

Image round_trip(const Image& image, const std::string& extension, const WriteOptions& options = {}) {
  return decode_image(encode_image(image, extension, options), "round trip");
}

void expect_same(const Image& actual, const Image& expected) {
  ASSERT_EQ(actual.channels, expected.channels);
  ASSERT_EQ(actual.height, expected.height);
  ASSERT_EQ(actual.width, expected.width);
  EXPECT_EQ(actual.data, expected.data);
}

float largest_difference(const Image& a, const Image& b) {
  if (a.channels != b.channels || a.height != b.height || a.width != b.width) return INFINITY;
  float largest = 0;
  for (std::size_t i = 0; i < a.data.size(); ++i)
    largest = std::max(largest, std::abs(a.data[i] - b.data[i]));
  return largest;
}

std::string message_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

// Sizes that are no multiple of any block, and single rows and columns.
const std::vector<std::pair<int, int>> kSizes = {{1, 1}, {1, 17}, {13, 1}, {7, 9}, {33, 20}};

TEST(ImageRoundTrip, PngIsLosslessInEveryDepthAndChannelCount) {
  if (!codec_available("png")) GTEST_SKIP() << "built without libpng";
  for (const int depth : {8, 16}) {
    for (int channels = 1; channels <= 4; ++channels) {
      for (const auto& [height, width] : kSizes) {
        const Image image = noise_image(channels, height, width, 1 << depth);
        expect_same(round_trip(image, ".png", {.bit_depth = depth}), image);
      }
    }
  }
}

TEST(ImageRoundTrip, PnmIsLosslessInEveryDepth) {
  for (const int depth : {8, 16}) {
    for (const auto& [height, width] : kSizes) {
      const Image grey = noise_image(1, height, width, 1 << depth);
      expect_same(round_trip(grey, ".pgm", {.bit_depth = depth}), grey);
      const Image colour = noise_image(3, height, width, 1 << depth);
      expect_same(round_trip(colour, ".ppm", {.bit_depth = depth}), colour);
    }
  }
}

TEST(ImageRoundTrip, EveryValueOf8And16BitSurvives) {
  for (const int depth : {8, 16}) {
    Image image = blank_image(1, 1 << (depth / 2), 1 << (depth / 2));
    const double half = ((1 << depth) - 1) / 2.0;
    for (std::size_t i = 0; i < image.data.size(); ++i) image.data[i] = static_cast<float>(i / half - 1.0);
    const auto bytes = encode_image(image, ".pgm", {.bit_depth = depth});
    const std::size_t header = bytes.size() - image.data.size() * (depth / 8);
    for (std::size_t i = 0; i < image.data.size(); ++i) {
      const auto byte = [&](std::size_t at) { return std::to_integer<std::size_t>(bytes[header + at]); };
      ASSERT_EQ(depth == 8 ? byte(i) : byte(2 * i) << 8 | byte(2 * i + 1), i);
    }
    EXPECT_LE(largest_difference(decode_image(bytes, "all"), image), 1.2e-7f);
    EXPECT_EQ(encode_image(decode_image(bytes, "all"), ".pgm", {.bit_depth = depth}), bytes);
  }
}

TEST(ImageRoundTrip, LosslessWebpKeepsRgbAndAlphaAndMakesGreyRgb) {
  if (!codec_available("webp")) GTEST_SKIP() << "built without libwebp";
  for (const auto& [height, width] : kSizes) {
    for (const int channels : {3, 4}) {
      // Mostly transparent pixels too: their colour must survive.
      const Image image = noise_image(channels, height, width, 256);
      const Image back = round_trip(image, ".webp");
      expect_same(back, image);
    }
    const Image grey = noise_image(1, height, width, 256);
    expect_same(round_trip(grey, ".webp"), to_rgb(grey));
    const Image grey_alpha = noise_image(2, height, width, 256);
    const Image back = round_trip(grey_alpha, ".webp");
    ASSERT_EQ(back.channels, 4);
    for (int y = 0; y < height; ++y) {
      for (int x = 0; x < width; ++x) {
        for (int c = 0; c < 4; ++c) ASSERT_EQ(back.at(c, y, x), grey_alpha.at(c == 3 ? 1 : 0, y, x));
      }
    }
  }
}

TEST(ImageRoundTrip, LossyCodecsStayCloseAndQualityMatters) {
  const Image image = smooth_image(3, 45, 70);
  for (const std::string extension : {".jpg", ".webp"}) {
    if (!codec_available(extension == ".jpg" ? "jpeg" : "webp")) continue;
    const WriteOptions fine{.jpeg_quality = 95, .webp_lossy = true};
    const WriteOptions coarse{.jpeg_quality = 5, .webp_lossy = true};
    EXPECT_LT(largest_difference(round_trip(image, extension, fine), image), 0.06f) << extension;
    EXPECT_LT(encode_image(image, extension, coarse).size(), encode_image(image, extension, fine).size());
  }
  if (codec_available("jpeg")) {
    const Image grey = smooth_image(1, 45, 70);
    EXPECT_LT(largest_difference(round_trip(grey, ".JPEG"), grey), 0.03f);
  }
}

TEST(ImageRoundTrip, NpyKeepsFloatsExactlyAlsoOutsideTheRange) {
  for (int channels = 1; channels <= 4; ++channels) {
    for (const auto& [height, width] : kSizes) {
      Image image = noise_image(channels, height, width, 65536);
      image.data[0] = 12.5f;
      expect_same(round_trip(image, ".npy"), image);
    }
  }
}

TEST(ImageWriting, ClampsAndRoundsToNearest) {
  Image image = blank_image(1, 1, 5);
  const float step = 1.0f / 127.5f;
  image.data = {-3.0f, 1.5f, INFINITY, -1.0f + 0.49f * step, -1.0f + 0.51f * step};
  const auto bytes = encode_image(image, ".pgm");
  const std::vector<std::byte> pixels(bytes.end() - 5, bytes.end());
  EXPECT_EQ(pixels, bytes_of(std::string("\x00\xFF\xFF\x00\x01", 5)));
}

TEST(ImageWriting, RefusesWhatAFileCannotHoldInOneSentence) {
  Image with_nan = smooth_image(3, 4, 4);
  with_nan.data[5] = std::numeric_limits<float>::quiet_NaN();
  for (const std::string extension : {".png", ".jpg", ".webp", ".ppm", ".npy"}) {
    const std::string message = message_of([&] { encode_image(with_nan, extension); });
    EXPECT_NE(message.find(extension), std::string::npos) << message;
    EXPECT_TRUE(message.find("NaN") != std::string::npos || message.find("no ") != std::string::npos)
        << message;
  }
  EXPECT_NE(message_of([] { encode_image(smooth_image(4, 4, 4), ".jpg"); }), "");
  EXPECT_NE(message_of([] { encode_image(smooth_image(3, 4, 4), ".pgm"); }).find(".ppm"), std::string::npos);
  EXPECT_NE(message_of([] { encode_image(smooth_image(2, 4, 4), ".ppm"); }), "");
  EXPECT_NE(message_of([] { encode_image(smooth_image(3, 4, 4), ".bmp"); }).find(".png"), std::string::npos);
  EXPECT_NE(message_of([] { encode_image(Image{}, ".ppm"); }), "");
  EXPECT_NE(message_of([] { encode_image(smooth_image(3, 4, 4), ".ppm", {.bit_depth = 12}); }).find("12"),
            std::string::npos);
  EXPECT_NE(message_of([] { encode_image(smooth_image(3, 4, 4), ".ppm", {.jpeg_quality = 0}); }), "");
  Image short_of_data = smooth_image(3, 4, 4);
  short_of_data.data.pop_back();
  EXPECT_NE(message_of([&] { encode_image(short_of_data, ".ppm"); }), "");
}

TEST(ImageReading, NamesTheFileAndTheReason) {
  const std::vector<std::pair<ByteVector, std::string>> cases = {
      {bytes_of(""), "empty"},           {bytes_of("hello, this is text"), "not an image"},
      {bytes_of("GIF89a......"), "GIF"}, {bytes_of("BM......"), "BMP"},
      {bytes_of("P4\n1 1\n\x80"), "P4"}, {bytes_of(std::string("RIFF\x04\0\0\0WAVE", 12)), "not an image"},
  };
  for (const auto& [bytes, reason] : cases) {
    const std::string message = message_of([&] { decode_image(bytes, "holiday.png"); });
    EXPECT_NE(message.find("holiday.png"), std::string::npos) << message;
    EXPECT_NE(message.find(reason), std::string::npos) << message;
    EXPECT_EQ(message.find('\n'), std::string::npos) << message;
  }
}

TEST(ImageReading, TellsTheFormatFromTheBytesNotTheName) {
  const auto folder = std::filesystem::temp_directory_path() / str("dpg_image_io_", std::random_device{}());
  std::filesystem::create_directory(folder);
  const Image image = noise_image(3, 6, 5, 256);
  write_image(folder / "picture.ppm", image);
  std::filesystem::rename(folder / "picture.ppm", folder / "picture.jpg");
  expect_same(read_image(folder / "picture.jpg"), image);
  const std::string message = message_of([&] { read_image(folder / "absent.png"); });
  EXPECT_NE(message.find("absent.png"), std::string::npos) << message;
  // A failed write leaves neither a new nor a temporary file.
  EXPECT_THROW(write_image(folder / "bad.pgm", image), Error);
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder), {}), 1);
  remove_folder(folder);
}

TEST(ImageReading, AMissingCodecIsNamedAndAPresentOneIsNot) {
  const std::vector<std::pair<std::string, std::string>> starts = {
      {"png", "\x89PNG\r\n\x1a\n"},
      {"jpeg", "\xFF\xD8\xFF\xE0"},
      {"webp", std::string("RIFF\0\0\0\0WEBP", 12)}};
  for (const auto& [codec, start] : starts) {
    const std::string message = message_of([&, &bytes = start] { decode_image(bytes_of(bytes), "photo"); });
    EXPECT_NE(message.find("photo"), std::string::npos) << message;
    EXPECT_EQ(message.find("this build has no") == std::string::npos, codec_available(codec)) << message;
  }
}

TEST(ImageReading, ExtensionsAgreeWithCodecs) {
  EXPECT_TRUE(codec_available("pnm"));
  EXPECT_TRUE(codec_available("npy"));
  EXPECT_FALSE(codec_available("tiff"));
  const auto extensions = readable_extensions();
  const auto lists = [&](const char* e) { return std::count(extensions.begin(), extensions.end(), e) == 1; };
  EXPECT_EQ(lists(".png"), codec_available("png"));
  EXPECT_EQ(lists(".jpg"), codec_available("jpeg"));
  EXPECT_EQ(lists(".webp"), codec_available("webp"));
  EXPECT_TRUE(lists(".npy"));
}

TEST(ImageReading, PhotographsSurviveAsPngAndStayCloseAsJpeg) {
  const std::filesystem::path folder = std::filesystem::path(DPG_SHARED_DIR) / "data" / "photos" / "ffhq256";
  if (!std::filesystem::exists(folder)) GTEST_SKIP() << "no photographs at " << folder;
  if (!codec_available("png") || !codec_available("jpeg")) GTEST_SKIP() << "built without libpng or libjpeg";
  const Image photo = read_image(folder / "00000.png");
  EXPECT_EQ(photo.channels, 3);
  EXPECT_EQ(photo.height, 256);
  expect_same(round_trip(photo, ".png"), photo);
  const Image jpeg = round_trip(photo, ".jpg");
  double squares = 0;
  for (std::size_t i = 0; i < photo.data.size(); ++i) squares += std::pow(photo.data[i] - jpeg.data[i], 2);
  const double psnr = 10 * std::log10(4.0 * static_cast<double>(photo.data.size()) / squares);
  EXPECT_GT(psnr, 38.0);
}

}  // namespace
}  // namespace dpg
