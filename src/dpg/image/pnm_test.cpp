#include <gtest/gtest.h>

#include "dpg/core/error.h"
#include "dpg/image/image.h"
#include "dpg/image/test_files.h"

namespace dpg {
namespace {

using test::bytes_of;

Image decode(const std::string& text) {
  return decode_image(bytes_of(text), "test.pnm");
}

TEST(Pnm, ReadsTextWithCommentsAndAnyMaximum) {
  const Image grey = decode("P2 # a comment\n# another\n3 # width\n2\n10\n0 5 10\n#row\n10 5 0 ");
  EXPECT_EQ(grey.channels, 1);
  EXPECT_EQ(grey.height, 2);
  EXPECT_EQ(grey.width, 3);
  EXPECT_EQ(grey.data, (std::vector<float>{-1, 0, 1, 1, 0, -1}));
  const Image colour = decode("P3\n1 2 2\n0 1 2\n2 1 0\n");
  EXPECT_EQ(colour.channels, 3);
  EXPECT_EQ(colour.data, (std::vector<float>{-1, 1, 0, 0, 1, -1}));
}

TEST(Pnm, ReadsBinaryOfOneAndTwoBytesWithAnyMaximum) {
  EXPECT_EQ(decode(std::string("P5 3 1 2\n\0\1\2", 12)).data, (std::vector<float>{-1, 0, 1}));
  EXPECT_EQ(decode(std::string("P5 2 1 512\n\0\0\2\0", 15)).data, (std::vector<float>{-1, 1}));
  EXPECT_EQ(decode(std::string("P6 1 1 512\n\0\0\1\0\2\0", 17)).data, (std::vector<float>{-1, 0, 1}));
}

TEST(Pnm, RefusesWhatIsDamaged) {
  for (const std::string& text :
       {std::string("P5 0 1 255\n"), std::string("P5 1 1 0\n\0", 10), std::string("P5 1 1 65536\n\0\0", 15),
        std::string("P5 -1 1 255\n\0", 13), std::string("P2 1 1 5\n6\n"), std::string("P5 1 1 5\n\6", 10),
        std::string("P2 2 1 5\n1\n"), std::string("P2 1 1 5\nx\n"), std::string("P5 99999999999 1 255\n"),
        std::string("P5 1 1 255x\0", 12), std::string("P2 1 1 255 # only a comment")}) {
    EXPECT_THROW(decode(text), Error) << text;
  }
}

}  // namespace
}  // namespace dpg
