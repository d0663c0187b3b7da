// PNG variants that our own encoder does not write.
#include <gtest/gtest.h>

#include "dpg/core/error.h"
#include "dpg/image/image.h"
#include "dpg/image/test_files.h"

namespace dpg {
namespace {

using test::bytes_of;
using test::make_png;
using test::png_chunk;
using test::PngSpec;

class Png : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!codec_available("png")) GTEST_SKIP() << "built without libpng";
  }
};

Image decode(const PngSpec& spec) {
  return decode_image(bytes_of(make_png(spec)), "variant.png");
}
float level8(int v) {
  return static_cast<float>(v) / 127.5f - 1.0f;
}

TEST_F(Png, GreyOfOneTwoAndFourBitSpansTheWholeRange) {
  for (const int depth : {1, 2, 4}) {
    const int levels = 1 << depth;
    std::string row(1, '\0');
    int filled = 0, byte = 0;
    for (int v = 0; v < levels; ++v) {
      byte = byte << depth | v;
      filled += depth;
      if (filled == 8) row.push_back(static_cast<char>(byte));
      if (filled == 8) filled = byte = 0;
    }
    if (filled > 0) row.push_back(static_cast<char>(byte << (8 - filled)));
    const Image image =
        decode({.width = static_cast<std::uint32_t>(levels), .depth = depth, .scanlines = row});
    ASSERT_EQ(image.channels, 1);
    for (int v = 0; v < levels; ++v) EXPECT_EQ(image.at(0, 0, v), level8(v * 255 / (levels - 1))) << depth;
  }
}

TEST_F(Png, PaletteBecomesRgbAndWithTransparencyRgba) {
  const std::string palette = png_chunk("PLTE", std::string("\x00\x80\xFF\x10\x20\x30", 6));
  PngSpec spec{
      .width = 2, .depth = 8, .colour = 3, .before_pixels = palette, .scanlines = std::string("\0\1\0", 3)};
  const Image opaque = decode(spec);
  ASSERT_EQ(opaque.channels, 3);
  EXPECT_EQ(opaque.at(0, 0, 0), level8(0x10));
  EXPECT_EQ(opaque.at(2, 0, 1), level8(0xFF));
  spec.before_pixels += png_chunk("tRNS", std::string("\x40", 1));
  const Image transparent = decode(spec);
  ASSERT_EQ(transparent.channels, 4);
  EXPECT_EQ(transparent.at(3, 0, 0), 1.0f);  // entries without one are opaque
  EXPECT_EQ(transparent.at(3, 0, 1), level8(0x40));
}

TEST_F(Png, TransparentColourBecomesAlpha) {
  const Image image = decode({.width = 2,
                              .before_pixels = png_chunk("tRNS", std::string("\0\x07", 2)),
                              .scanlines = std::string("\0\x07\x08", 3)});
  ASSERT_EQ(image.channels, 2);
  EXPECT_EQ(image.at(1, 0, 0), -1.0f);
  EXPECT_EQ(image.at(1, 0, 1), 1.0f);
  EXPECT_EQ(image.at(0, 0, 0), level8(7));
}

TEST_F(Png, InterlacedPixelsGoToTheirPlaces) {
  // Adam7 of a 3 x 3 picture whose value is 10 y + x: passes 1, 4 (x = 2 in every 4th row), 5, 6, 7.
  std::string lines;
  const auto line = [&](std::initializer_list<int> values) {
    lines.push_back('\0');
    for (const int v : values) lines.push_back(static_cast<char>(v));
  };
  line({0});           // pass 1: (0, 0)
  line({2});           // pass 4: (0, 2)
  line({20, 22});      // pass 5: row 2, even columns
  line({1});           // pass 6: row 0, odd columns
  line({21});          // pass 6: row 2, odd columns
  line({10, 11, 12});  // pass 7: row 1
  const Image image = decode({.width = 3, .height = 3, .interlaced = true, .scanlines = lines});
  for (int y = 0; y < 3; ++y) {
    for (int x = 0; x < 3; ++x) EXPECT_EQ(image.at(0, y, x), level8(10 * y + x)) << y << ", " << x;
  }
}

TEST_F(Png, GammaIsIgnored) {
  std::string gamma;
  test::put(gamma, 100000, 4);
  PngSpec spec{.width = 2, .scanlines = std::string("\0\x30\x90", 3)};
  const Image plain = decode(spec);
  spec.before_pixels = png_chunk("gAMA", gamma);
  EXPECT_EQ(decode(spec).data, plain.data);
}

TEST_F(Png, TextAndProfilesArePassedOverEvenIfDamaged) {
  PngSpec spec{.width = 2, .scanlines = std::string("\0\x30\x90", 3)};
  const Image plain = decode(spec);
  spec.before_pixels = png_chunk("iCCP", std::string("p\0\0not a zlib stream", 20)) +
                       png_chunk("tEXt", std::string("key\0text", 8)) + png_chunk("zTXt", "rubbish");
  EXPECT_EQ(decode(spec).data, plain.data);
}

TEST_F(Png, ExifChunkTurnsThePicture) {
  const Image image = decode({.width = 2,
                              .before_pixels = png_chunk("eXIf", test::make_exif(6, false)),
                              .scanlines = std::string("\0\x01\x02", 3)});
  ASSERT_EQ(image.height, 2);
  ASSERT_EQ(image.width, 1);
  EXPECT_EQ(image.at(0, 0, 0), level8(1));
}

TEST_F(Png, DamagedPixelsAreAnError) {
  std::string file = make_png({.width = 2, .scanlines = std::string("\0\x30\x90", 3)});
  file[file.find("IDAT") + 12] ^= 1;
  EXPECT_THROW(decode_image(bytes_of(file), "flipped.png"), Error);
}

}  // namespace
}  // namespace dpg
