#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "dpg/core/error.h"
#include "dpg/image/test_files.h"
#include "dpg/report/html.h"
#include "dpg/report/markup.h"
#include "dpg/report/test_markup.h"
#include "dpg/report/trace.h"

namespace dpg {
namespace {

using test::attribute;
using test::bytes_of;
using test::count;
using test::noise_image;
using test::tags;
using test::unbalanced;

constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

Trace sample_trace() {
  Trace trace{"a picture", "dpg", "mask:half", "gaussian:0.05", 5.54};
  for (int t = 990; t >= 0; t -= 10) trace.steps.push_back({t, 5.5 + std::exp(t / 300.0), kNaN});
  for (int t = 900; t >= 0; t -= 300) trace.frames.push_back({t, noise_image(3, 8, 8, 256)});
  return trace;
}

// Tests that embed pictures need libpng.
class WithPictures : public testing::Test {
 protected:
  void SetUp() override {
    if (!codec_available("png")) GTEST_SKIP() << "this build has no PNG codec";
  }
};

TEST(Markup, Base64OfTheStandardsExamples) {
  const std::pair<const char*, const char*> known[] = {{"", ""},
                                                       {"f", "Zg=="},
                                                       {"fo", "Zm8="},
                                                       {"foo", "Zm9v"},
                                                       {"foob", "Zm9vYg=="},
                                                       {"fooba", "Zm9vYmE="},
                                                       {"foobar", "Zm9vYmFy"}};
  for (const auto& [plain, coded] : known) EXPECT_EQ(markup::base64(bytes_of(plain)), coded);
  EXPECT_EQ(markup::base64(bytes_of("\xff\xef\xbe\xfb")),
            "/+++"
            "+w==");  // the last digits; bytes above 127
}

TEST(Markup, EscapesWhatMeansSomethingAndRepairsWhatIsNotUtf8) {
  EXPECT_EQ(markup::escape("<a href='x'>\"&\"</a>"), "&lt;a href=&#39;x&#39;&gt;&quot;&amp;&quot;&lt;/a&gt;");
  EXPECT_EQ(markup::escape("σ√m 😀 é"), "σ√m 😀 é");
  const std::string replaced = "\uFFFD";
  EXPECT_EQ(markup::escape("caf\xE9!"), "caf" + replaced + "!");              // Latin-1
  EXPECT_EQ(markup::escape("\xC3"), replaced);                                // cut off
  EXPECT_EQ(markup::escape("\xC0\xBC"), replaced + replaced);                 // an overlong '<'
  EXPECT_EQ(markup::escape("\xED\xA0\x80"), replaced + replaced + replaced);  // a surrogate
  EXPECT_EQ(markup::escape(std::string("a\0b\x1b", 4)), "a" + replaced + "b" + replaced);
  EXPECT_EQ(markup::escape("\x7f\t\n"), replaced + "\t\n");
}

TEST(Markup, Numbers) {
  EXPECT_EQ(markup::fixed(2.5, 2), "2.50");
  EXPECT_EQ(markup::fixed(-0.001, 2), "0.00");
  EXPECT_EQ(markup::fixed(-1.0, 0), "-1");
  EXPECT_EQ(markup::significant(0.012345, 3), "0.0123");
  EXPECT_EQ(markup::significant(5.0, 4), "5");
  EXPECT_EQ(markup::significant(kNaN, 4), "not a number");
  EXPECT_EQ(markup::length("σ√m"), 3);
}

TEST(TraceJson, ReadsBackExactlyWithNullForWhatIsNotFinite) {
  Trace trace = sample_trace();
  trace.title = "\"quoted\"\\\n caf\xE9";
  trace.steps = {
      {999, 0.1 + 0.2, kNaN}, {1, 1e-17, 1.0 / 3}, {0, std::numeric_limits<double>::infinity(), 0.0}};
  const auto json = nlohmann::json::parse(trace_json(trace));
  EXPECT_EQ(json.at("title"), "\"quoted\"\\\n caf\uFFFD");
  EXPECT_EQ(json.at("method"), "dpg");
  EXPECT_EQ(json.at("operator"), "mask:half");
  EXPECT_EQ(json.at("noise"), "gaussian:0.05");
  EXPECT_EQ(json.at("noise_floor").get<double>(), 5.54);
  ASSERT_EQ(json.at("steps").size(), 3u);
  EXPECT_EQ(json.at("steps")[0].at("t"), 999);
  EXPECT_EQ(json.at("steps")[0].at("residual").get<double>(), 0.1 + 0.2);
  EXPECT_TRUE(json.at("steps")[0].at("strength").is_null());
  EXPECT_EQ(json.at("steps")[1].at("residual").get<double>(), 1e-17);
  EXPECT_EQ(json.at("steps")[1].at("strength").get<double>(), 1.0 / 3);
  EXPECT_TRUE(json.at("steps")[2].at("residual").is_null());
  EXPECT_EQ(json.at("frames"), nlohmann::json::parse("[900, 600, 300, 0]"));
  const auto empty = nlohmann::json::parse(trace_json({}));
  EXPECT_TRUE(empty.at("steps").is_array() && empty.at("steps").empty());
  EXPECT_TRUE(empty.at("frames").is_array() && empty.at("frames").empty());
  EXPECT_TRUE(empty.at("noise_floor").is_null());
}

TEST_F(WithPictures, TracePageStandsAlone) {
  const std::string page = trace_page(sample_trace(), {{"seed", "7"}, {"noise", "given <here>"}});
  EXPECT_EQ(unbalanced(page), "");
  EXPECT_EQ(count(page, "<img"), 4u);
  EXPECT_EQ(count(page, "src=\"data:image/png;base64,iVBORw0KGgo"), 4u);  // PNG's first bytes
  EXPECT_EQ(count(page, "src="), 4u);
  EXPECT_EQ(count(page, "http://") + count(page, "https://") + count(page, "url(") + count(page, "<link"),
            0u);
  EXPECT_EQ(count(page, "<script"), 0u);
  EXPECT_EQ(count(page, "<svg"), 1u);  // without strengths no second plot
  EXPECT_EQ(count(page, ">noise floor</text>"), 1u);
  EXPECT_EQ(count(page, "<figcaption>t = 300</figcaption>"), 1u);
  EXPECT_EQ(count(page, "<td>mask:half</td>"), 1u);
  EXPECT_EQ(count(page, "<td>given &lt;here&gt;</td>"), 1u);  // instead of the trace's own
  EXPECT_EQ(count(page, "gaussian:0.05"), 0u);
  EXPECT_EQ(count(page, "<td>6.5 (1.17 times the noise floor)</td>"), 1u);

  Trace guided = sample_trace();
  for (TraceStep& step : guided.steps) step.strength = 1.0 + step.t;
  EXPECT_EQ(count(trace_page(guided), "<svg"), 2u);
}

TEST_F(WithPictures, TextsCannotLeaveTheirPlace) {
  Page page("<script>alert(1)</script>");
  page.heading("<b>").text("a & b").facts({{"<i>", "</table>"}}).table({"<u>"}, {{"<s>"}});
  page.pictures({{noise_image(1, 2, 2, 256), "say \"cheese\" onload='x'"}}).figure("<svg></svg>", "<em>");
  const std::string html = page.html();
  EXPECT_EQ(unbalanced(html), "");
  EXPECT_EQ(count(html, "<script"), 0u);
  EXPECT_EQ(count(html, "&lt;script&gt;alert(1)&lt;/script&gt;"), 2u);  // title and heading
  for (const char* tag : {"<b>", "<i>", "<u>", "<s>", "<em>"}) EXPECT_EQ(count(html, tag), 0u) << tag;
  EXPECT_EQ(count(html, "</table>"), 2u);
  EXPECT_EQ(count(html, "alt=\"say &quot;cheese&quot; onload=&#39;x&#39;\""), 1u);
  EXPECT_EQ(count(html, "<svg></svg>"), 1u);
}

TEST_F(WithPictures, SmallPicturesAreEnlargedByWholeNumbersAndComeBack) {
  const Image small = noise_image(3, 6, 10, 256), wide = noise_image(1, 4, 300, 256);
  const std::string html = Page("p").pictures({{small, "small"}, {wide, ""}}, 64).html();
  std::vector<std::string> images;
  for (const std::string& tag : tags(html)) {
    if (tag.starts_with("img")) images.push_back(tag);
  }
  ASSERT_EQ(images.size(), 2u);
  EXPECT_EQ(attribute(images[0], "width"), "60");
  EXPECT_EQ(attribute(images[0], "height"), "36");
  EXPECT_EQ(attribute(images[0], "class"), "enlarged");
  EXPECT_EQ(attribute(images[0], "alt"), "small");
  EXPECT_EQ(attribute(images[0], "src"),
            "data:image/png;base64," + markup::base64(encode_image(small, ".png")));
  EXPECT_EQ(attribute(images[1], "width"), "300");
  EXPECT_EQ(attribute(images[1], "class"), "");
  EXPECT_NE(attribute(images[1], "alt"), "");
}

TEST_F(WithPictures, ARunThatWentAstrayIsStillReported) {
  Trace trace = sample_trace();
  for (TraceStep& step : trace.steps) step.residual = kNaN;
  for (float& value : trace.frames[0].picture.data) value = kNaN;
  const std::string page = trace_page(trace);
  EXPECT_EQ(unbalanced(page), "");
  EXPECT_EQ(count(page, "<td>not a number</td>"), 1u);
  EXPECT_EQ(count(page, "<figcaption>t = 900; 192 of 192 values are not finite and shown black</figcaption>"),
            1u);
  EXPECT_EQ(count(page, "<img"), 4u);
  EXPECT_THROW(Page("p").pictures({{Image{}, "nothing"}}), Error);
}

TEST(Pages, OfAnEmptyTraceAreWellFormedAndNeedNoCodec) {
  const std::string page = trace_page({});
  EXPECT_EQ(unbalanced(page), "");
  EXPECT_EQ(count(page, "<svg") + count(page, "<img") + count(page, "<table"), 0u);
  EXPECT_EQ(count(page, "No step was recorded."), 1u);
}

TEST(Pages, WithPicturesNeedPng) {
  const auto with_picture = [] { return Page("p").pictures({{blank_image(1, 2, 2), "grey"}}).html(); };
  if (codec_available("png")) {
    EXPECT_EQ(count(with_picture(), "<img"), 1u);
  } else {
    EXPECT_THROW(with_picture(), Error);
  }
}

TEST(Pages, ColumnsOfNumbersAreAlignedToTheRight) {
  const std::string html =
      Page("p")
          .table({"method", "PSNR", "time", "note"}, {{"dpg", "24.10 ± 0.30", "12.3 s", "3 of the 4 runs"},
                                                      {"dps", "-", "+.5e3 ms", "4"},
                                                      {"2nd place of all", "23", "", ""}})
          .html();
  EXPECT_EQ(count(html, "<th class=\"number\">PSNR</th>"), 1u);
  EXPECT_EQ(count(html, "<th class=\"number\">time</th>"), 1u);
  EXPECT_EQ(count(html, "<th>method</th>"), 1u);
  EXPECT_EQ(count(html, "<th>note</th>"), 1u);
  EXPECT_EQ(count(html, "<td class=\"number\">"), 6u);
  EXPECT_THROW(Page("p").table({"a", "b"}, {{"1"}}), Error);
}

}  // namespace
}  // namespace dpg
