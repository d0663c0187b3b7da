#include "dpg/image/grid.h"

#include <gtest/gtest.h>

#include <set>

#include "dpg/core/error.h"
#include "dpg/image/font.h"
#include "dpg/image/test_files.h"
#include "dpg/image/transform.h"

namespace dpg {
namespace {

using test::noise_image;

TEST(Grid, PutsEachPictureIntoItsCellAndGreyElsewhere) {
  std::vector<Image> images;
  for (unsigned i = 0; i < 5; ++i) images.push_back(noise_image(3, 4, 6, 2, i));  // only -1 and 1: never grey
  const Image sheet = make_grid(images, 3, 2);
  ASSERT_EQ(sheet.height, 2 * 4 + 2);
  ASSERT_EQ(sheet.width, 3 * 6 + 2 * 2);
  std::size_t coloured = 0;
  for (std::size_t i = 0; i < images.size(); ++i) {
    const int top = static_cast<int>(i / 3) * 6, left = static_cast<int>(i % 3) * 8;
    for (int y = 0; y < 4; ++y) {
      for (int x = 0; x < 6; ++x, ++coloured)
        ASSERT_EQ(sheet.at(1, top + y, left + x), images[i].at(1, y, x));
    }
  }
  std::size_t not_grey = 0;
  for (int y = 0; y < sheet.height; ++y) {
    for (int x = 0; x < sheet.width; ++x) not_grey += sheet.at(1, y, x) != 0.0f;
  }
  EXPECT_EQ(not_grey, coloured);
}

TEST(Grid, CentresSmallerPicturesAndMixesChannels) {
  const std::vector<Image> grey = {blank_image(1, 4, 4, 1.0f), blank_image(1, 2, 2, 1.0f)};
  const Image sheet = side_by_side(grey, 0);
  EXPECT_EQ(sheet.channels, 1);
  EXPECT_EQ(sheet.width, 8);
  EXPECT_EQ(sheet.at(0, 0, 4), 0.0f);
  EXPECT_EQ(sheet.at(0, 1, 5), 1.0f);
  EXPECT_EQ(sheet.at(0, 2, 6), 1.0f);
  EXPECT_EQ(sheet.at(0, 3, 7), 0.0f);
  const std::vector<Image> mixed = {blank_image(1, 2, 2, -1.0f), blank_image(4, 2, 2, -1.0f)};
  const Image colour = side_by_side(mixed, 1);
  EXPECT_EQ(colour.channels, 3);
  EXPECT_EQ(colour.at(2, 0, 0), -1.0f);
  EXPECT_EQ(colour.at(2, 0, 3), 1.0f);  // transparent: white
}

TEST(Grid, FewerPicturesThanColumnsMakeANarrowSheet) {
  const std::vector<Image> one = {blank_image(3, 2, 3)};
  EXPECT_EQ(make_grid(one, 8, 5).width, 3);
  EXPECT_THROW(make_grid({}, 2), Error);
  EXPECT_THROW(make_grid(one, 0), Error);
  EXPECT_THROW(make_grid(one, 1, -1), Error);
}

TEST(Font, EveryPrintableCharacterIsDistinctAndVisible) {
  std::set<std::string> shapes;
  for (char character = ' '; character <= '~'; ++character) {
    std::string shape;
    for (int row = 0; row < font::kHeight; ++row) {
      for (int column = 0; column < font::kWidth; ++column) {
        shape.push_back(font::dot(character, row, column) ? '#' : '.');
      }
    }
    EXPECT_EQ(shape.find('#') == std::string::npos, character == ' ') << character;
    EXPECT_TRUE(shapes.insert(shape).second) << character;
  }
  EXPECT_EQ(font::dot('\n', 0, 1), font::dot('?', 0, 1));
  EXPECT_TRUE(font::dot('T', 0, 0) && font::dot('T', 6, 2) && !font::dot('T', 6, 0));  // rows from the top
  EXPECT_TRUE(font::dot('L', 0, 0) && font::dot('L', 6, 4) &&
              !font::dot('L', 0, 4));  // columns from the left
}

TEST(Label, DrawsAtItsPlaceAndScale) {
  Image image = blank_image(3, 20, 30, -1.0f);
  draw_label(image, "L", 3, 4, 2);
  for (int y = 0; y < 20; ++y) {
    for (int x = 0; x < 30; ++x) {
      const int row = (y - 3) / 2, column = (x - 4) / 2;
      const bool inside = y >= 3 && x >= 4 && row < font::kHeight && column < font::kWidth;
      const bool set = inside && font::dot('L', row, column);
      for (int c = 0; c < 3; ++c) ASSERT_EQ(image.at(c, y, x), set ? 1.0f : -1.0f) << y << ", " << x;
    }
  }
}

TEST(Label, IsCutOffAtTheBorder) {
  Image image = blank_image(1, 5, 5, -1.0f);
  draw_label(image, "A long text that does not fit", -3, -2, 3);
  draw_label(image, "far away", 1'000'000, -1'000'000);
  EXPECT_EQ(image.data.size(), 25u);
}

TEST(Caption, KeepsThePictureAndShortensTheText) {
  const Image picture = noise_image(4, 10, 40, 256);
  const Image captioned = with_caption(picture, "posterior sample");
  ASSERT_EQ(captioned.width, 40);
  ASSERT_GT(captioned.height, picture.height + font::kHeight);
  for (int c = 0; c < 4; ++c) {
    for (int y = 0; y < 10; ++y) {
      for (int x = 0; x < 40; ++x) ASSERT_EQ(captioned.at(c, y, x), picture.at(c, y, x));
    }
  }
  const Image shortened = with_caption(picture, "poster");  // 6 letters of 6 dots fit into 40 - 2 x 2
  EXPECT_EQ(captioned.data, shortened.data);
  EXPECT_NE(captioned.data, with_caption(picture, "poste").data);
  EXPECT_EQ(captioned.at(3, 12, 0), 1.0f);  // the strip is opaque
}

}  // namespace
}  // namespace dpg
