#include "dpg/image/exif.h"

#include <gtest/gtest.h>

#include <cmath>

#include "dpg/core/error.h"
#include "dpg/image/image.h"
#include "dpg/image/test_files.h"

namespace dpg {
namespace {

using test::bytes_of;
using test::make_exif;
using test::smooth_image;

TEST(Exif, ReadsEveryOrientationInBothByteOrdersWithAndWithoutPrefix) {
  for (const bool little : {false, true}) {
    for (int orientation = 1; orientation <= 8; ++orientation) {
      const std::string exif = make_exif(orientation, little);
      EXPECT_EQ(exif_orientation(bytes_of(exif)), orientation);
      EXPECT_EQ(exif_orientation(bytes_of(std::string("Exif\0\0", 6) + exif)), orientation);
    }
  }
}

TEST(Exif, AnythingDamagedMeansAsStored) {
  const std::string good = make_exif(6, true);
  const std::size_t value_end = good.find("\x12\x01") + 10;
  for (std::size_t length = 0; length < good.size(); ++length) {
    // Each prefix lives in its own allocation, so that the address sanitizer sees a read behind its end.
    EXPECT_EQ(exif_orientation(bytes_of(good.substr(0, length))), length < value_end ? 1 : 6) << length;
  }
  EXPECT_EQ(exif_orientation(bytes_of(make_exif(0, true))), 1);
  EXPECT_EQ(exif_orientation(bytes_of(make_exif(9, false))), 1);
  std::string far_directory = good;
  far_directory.replace(4, 4, "\xFF\xFF\xFF\xFF");
  EXPECT_EQ(exif_orientation(bytes_of(far_directory)), 1);
  std::string wrong_type = good;
  wrong_type[good.find("\x12\x01") + 2] = 4;
  EXPECT_EQ(exif_orientation(bytes_of(wrong_type)), 1);
}

// Where pixel (y, x) of the upright picture lies in the stored one, from the standard's words for each
// orientation: what row 0 and column 0 of the stored picture are on the upright one.
std::pair<int, int> stored_place(int orientation, int y, int x, int height, int width) {
  switch (orientation) {
    case 1:
      return {y, x};  // top, left
    case 2:
      return {y, width - 1 - x};  // top, right
    case 3:
      return {height - 1 - y, width - 1 - x};  // bottom, right
    case 4:
      return {height - 1 - y, x};  // bottom, left
    case 5:
      return {x, y};  // left, top
    case 6:
      return {width - 1 - x, y};  // right, top
    case 7:
      return {width - 1 - x, height - 1 - y};  // right, bottom
    default:
      return {x, height - 1 - y};  // left, bottom
  }
}

TEST(Exif, JpegsAreTurnedUpright) {
  if (!codec_available("jpeg")) GTEST_SKIP() << "built without libjpeg";
  const Image upright = smooth_image(3, 24, 40);
  for (int orientation = 1; orientation <= 8; ++orientation) {
    const bool turned = orientation >= 5;
    Image stored = blank_image(3, turned ? 40 : 24, turned ? 24 : 40);
    for (int c = 0; c < 3; ++c) {
      for (int y = 0; y < 24; ++y) {
        for (int x = 0; x < 40; ++x) {
          const auto [row, column] = stored_place(orientation, y, x, 24, 40);
          stored.at(c, row, column) = upright.at(c, y, x);
        }
      }
    }
    const auto jpeg =
        test::with_exif(encode_image(stored, ".jpg"), make_exif(orientation, orientation % 2 == 0));
    const Image back = decode_image(jpeg, "turned.jpg");
    ASSERT_EQ(back.height, 24) << orientation;
    ASSERT_EQ(back.width, 40) << orientation;
    float largest = 0;
    for (std::size_t i = 0; i < back.data.size(); ++i) {
      largest = std::max(largest, std::abs(back.data[i] - upright.data[i]));
    }
    EXPECT_LT(largest, 0.05f)
        << orientation;  // the ramps differ by more than 0.4 between any two orientations
  }
}

// The extended container around the chunks of a plain file, with an EXIF chunk of odd length behind the
// picture.
std::string webp_with_exif(const Image& image, const std::string& exif) {
  const auto plain = encode_image(image, ".webp");
  const auto chunk = [](const std::string& name, const std::string& data) {
    std::string size;
    test::put(size, static_cast<std::uint32_t>(data.size()), 4);
    return name + std::string(size.rbegin(), size.rend()) + data + std::string(data.size() % 2, '\0');
  };
  std::string canvas("\x08\0\0\0\0\0\0\0\0\0", 10);
  canvas[4] = static_cast<char>(image.width - 1);
  canvas[7] = static_cast<char>(image.height - 1);
  const std::string picture(reinterpret_cast<const char*>(plain.data()) + 12, plain.size() - 12);
  return chunk("RIFF", "WEBP" + chunk("VP8X", canvas) + picture + chunk("EXIF", exif));
}

TEST(Exif, WebpIsTurnedUpright) {
  if (!codec_available("webp")) GTEST_SKIP() << "built without libwebp";
  const Image image = test::noise_image(3, 5, 9, 256);
  const std::string file = webp_with_exif(image, make_exif(3, true) + "x");
  const Image turned = decode_image(bytes_of(file), "turned.webp");
  ASSERT_EQ(turned.data.size(), image.data.size());
  EXPECT_EQ(turned.at(1, 0, 0), image.at(1, 4, 8));
  EXPECT_EQ(turned.at(2, 3, 1), image.at(2, 1, 7));
  // The picture itself is whole in every one of these, its container is not.
  for (std::size_t missing = 1; missing <= 40; ++missing) {
    EXPECT_THROW(decode_image(bytes_of(file.substr(0, file.size() - missing)), "short.webp"), Error)
        << missing;
  }
}

}  // namespace
}  // namespace dpg
