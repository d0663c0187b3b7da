// JPEG variants that our own encoder does not write, made by libjpeg itself.
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <functional>
// libjpeg's header uses FILE and size_t without including what declares them.
#include <jpeglib.h>

#include "dpg/core/error.h"
#include "dpg/image/image.h"
#include "dpg/image/test_files.h"

namespace dpg {
namespace {

using test::ByteVector;

// A picture of one colour; `configure` sees the encoder before it starts.
ByteVector flat_jpeg(J_COLOR_SPACE space, std::vector<unsigned char> colour, int height, int width,
                     const std::function<void(jpeg_compress_struct*)>& configure) {
  jpeg_compress_struct info{};
  jpeg_error_mgr errors{};
  info.err = jpeg_std_error(&errors);
  jpeg_create_compress(&info);
  unsigned char* data = nullptr;
  unsigned long size = 0;
  jpeg_mem_dest(&info, &data, &size);
  info.image_width = static_cast<JDIMENSION>(width);
  info.image_height = static_cast<JDIMENSION>(height);
  info.input_components = static_cast<int>(colour.size());
  info.in_color_space = space;
  jpeg_set_defaults(&info);
  jpeg_set_quality(&info, 100, TRUE);
  configure(&info);
  jpeg_start_compress(&info, TRUE);
  std::vector<unsigned char> row;
  for (int x = 0; x < width; ++x) row.insert(row.end(), colour.begin(), colour.end());
  for (int y = 0; y < height; ++y) {
    JSAMPROW samples = row.data();
    jpeg_write_scanlines(&info, &samples, 1);
  }
  jpeg_finish_compress(&info);
  jpeg_destroy_compress(&info);
  const auto* first = reinterpret_cast<const std::byte*>(data);
  const ByteVector bytes(first, first + size);
  std::free(data);
  return bytes;
}

void expect_colour(const ByteVector& bytes, std::vector<int> colour) {
  const Image image = decode_image(bytes, "flat.jpg");
  ASSERT_EQ(image.channels, static_cast<int>(colour.size()));
  for (int c = 0; c < image.channels; ++c) {
    const float expected = static_cast<float>(colour[static_cast<std::size_t>(c)]) / 127.5f - 1.0f;
    EXPECT_NEAR(image.at(c, 3, 4), expected, 2.5f / 127.5f) << c;
  }
}

TEST(Jpeg, ProgressiveAndSubsampledAndGrey) {
  expect_colour(flat_jpeg(JCS_RGB, {200, 30, 90}, 19, 21, jpeg_simple_progression), {200, 30, 90});
  expect_colour(flat_jpeg(JCS_RGB, {200, 30, 90}, 19, 21, [](auto*) {}), {200, 30, 90});
  expect_colour(flat_jpeg(JCS_GRAYSCALE, {77}, 19, 21, jpeg_simple_progression), {77});
}

TEST(Jpeg, CmykBecomesRgb) {
  // libjpeg writes Adobe's marker, and with it stored values are 255 - ink: 255 is no ink, that is white.
  const auto adobe = [](jpeg_compress_struct* info) { info->write_Adobe_marker = TRUE; };
  expect_colour(flat_jpeg(JCS_CMYK, {255, 255, 255, 255}, 9, 9, adobe), {255, 255, 255});
  expect_colour(flat_jpeg(JCS_CMYK, {200, 100, 255, 128}, 9, 9, adobe), {100, 50, 128});
  const auto ycck = [](jpeg_compress_struct* info) { jpeg_set_colorspace(info, JCS_YCCK); };
  expect_colour(flat_jpeg(JCS_CMYK, {200, 100, 255, 128}, 9, 9, ycck), {100, 50, 128});
  const auto plain = [](jpeg_compress_struct* info) { info->write_Adobe_marker = FALSE; };
  expect_colour(flat_jpeg(JCS_CMYK, {55, 155, 0, 127}, 9, 9, plain), {100, 50, 128});
}

// The file's last scan once more, `times` times: each makes a decoder walk the whole picture again.
ByteVector repeat_last_scan(const ByteVector& jpeg, int times) {
  std::size_t scan = jpeg.size() - 2;
  while (jpeg[scan] != std::byte{0xFF} || jpeg[scan + 1] != std::byte{0xDA}) --scan;
  const auto at = [&](std::size_t offset) { return jpeg.begin() + static_cast<std::ptrdiff_t>(offset); };
  ByteVector bytes(jpeg.begin(), at(jpeg.size() - 2));
  for (int i = 0; i < times; ++i) bytes.insert(bytes.end(), at(scan), at(jpeg.size() - 2));
  bytes.insert(bytes.end(), at(jpeg.size() - 2), jpeg.end());
  return bytes;
}

TEST(Jpeg, ScansAreLimited) {
  const ByteVector jpeg = flat_jpeg(JCS_GRAYSCALE, {77}, 19, 21, jpeg_simple_progression);
  expect_colour(repeat_last_scan(jpeg, 20), {77});
  try {
    decode_image(repeat_last_scan(jpeg, 200), "scans.jpg");
    FAIL() << "200 more scans were read";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("more than 100 scans"), std::string::npos) << error.what();
    EXPECT_NE(std::string(error.what()).find("scans.jpg"), std::string::npos) << error.what();
  }
}

TEST(Jpeg, UnannouncedScansAreAnError) {
  const ByteVector jpeg = flat_jpeg(JCS_GRAYSCALE, {77}, 19, 21, [](auto*) {});
  EXPECT_THROW(decode_image(repeat_last_scan(jpeg, 1), "more.jpg"), Error);
}

}  // namespace
}  // namespace dpg
