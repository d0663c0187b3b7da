#include <gtest/gtest.h>

#include "dpg/core/error.h"
#include "dpg/image/test_files.h"
#include "dpg/report/html.h"
#include "dpg/report/test_markup.h"

namespace dpg {
namespace {

using test::count;
using test::noise_image;
using test::unbalanced;

const std::vector<ColumnGroup> kGroups = {{"", {"Method"}}, {"SR <4x>", {"FID", "PSNR"}}, {"Blur", {"PSNR"}}};

TEST(GroupedTable, GroupsSpanTheirColumnsAndEmphasisIsMarked) {
  Page page("t");
  page.grouped_table(kGroups, {{{"a"}, {"1.0", Emphasis::best}, {"2.0"}, {"3.0", Emphasis::second}},
                               {{"b"}, {"cannot: needs a linear operator", Emphasis::none, 2}, {"4.0"}}});
  const std::string html = page.html();
  EXPECT_EQ(unbalanced(html), "");
  EXPECT_EQ(count(html, "<b>1.0</b>"), 1u);
  EXPECT_EQ(count(html, "<u>3.0</u>"), 1u);
  EXPECT_EQ(count(html, "SR &lt;4x&gt;"), 1u);
  EXPECT_EQ(count(html, "colspan=\"2\""), 2u);            // the group's title, and the cell that says why
  EXPECT_EQ(count(html, "class=\"number first\">"), 5u);  // two headings, and each first number of a group
}

TEST(GroupedTable, RowsOfAnotherLengthAreRefused) {
  EXPECT_THROW(Page("t").grouped_table(kGroups, {{{"a"}, {"1"}, {"2"}}}), Error);
  EXPECT_THROW(Page("t").grouped_table(kGroups, {{{"a"}, {"1"}, {"2"}, {"3"}, {"4"}}}), Error);
  EXPECT_THROW(Page("t").grouped_table(kGroups, {{{"a"}, {"1"}, {"2"}, {"3", Emphasis::none, 2}}}), Error);
}

TEST(PictureTable, EveryPictureIsInsideAndGapsAreLeft) {
  if (!codec_available("png")) GTEST_SKIP() << "this build has no PNG codec";
  Page page("t");
  page.picture_table({"input", "dpg"},
                     {{"face", {{noise_image(3, 8, 8, 256), "the \"input\""}, {Image{}, "none"}}}}, 32);
  const std::string html = page.html();
  EXPECT_EQ(unbalanced(html), "");
  EXPECT_EQ(count(html, "data:image/png;base64,"), 1u);
  EXPECT_EQ(count(html, "width=\"32\" height=\"32\""), 1u);  // enlarged four times
  EXPECT_EQ(count(html, "the &quot;input&quot;"), 2u);       // alt and title
  EXPECT_EQ(count(html, "<td>none</td>"), 1u);
  EXPECT_THROW(Page("t").picture_table({"one"}, {{"face", {}}}), Error);
}

}  // namespace
}  // namespace dpg
