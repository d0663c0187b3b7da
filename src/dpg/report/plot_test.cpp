#include "dpg/report/plot.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

#include "dpg/core/error.h"
#include "dpg/report/axis.h"
#include "dpg/report/test_markup.h"

namespace dpg {
namespace {

using test::attribute;
using test::count;
using test::points_of;
using test::tags;
using test::unbalanced;

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

// 1, 2, 3 or 5 times a power of ten.
bool one_digit(double value) {
  const double mantissa = value / std::pow(10.0, std::floor(std::log10(value) + 1e-9));
  for (const double nice : {1.0, 2.0, 3.0, 5.0}) {
    if (std::abs(mantissa - nice) < 1e-6) return true;
  }
  return false;
}

TEST(Axis, LinearTicksCoverTheRangeAndAreFewAndNice) {
  std::mt19937 random(1);
  std::uniform_real_distribution<double> exponent(-6.0, 6.0), unit(-1.0, 1.0);
  for (int i = 0; i < 20000; ++i) {
    const double low = unit(random) * std::pow(10.0, exponent(random));
    const double high = low + (1.0 + unit(random)) * std::pow(10.0, exponent(random));
    const PlotAxis axis = make_axis(AxisScale::linear, low, high);
    const double step = axis.ticks[1] - axis.ticks[0];
    const double width = axis.high() - axis.low();
    ASSERT_LE(axis.low(), low + 1e-6 * step) << low << " to " << high;
    ASSERT_GE(axis.high(), high - 1e-6 * step) << low << " to " << high;
    ASSERT_GE(axis.ticks.size(), 3u) << low << " to " << high;
    ASSERT_LE(axis.ticks.size(), 8u) << low << " to " << high;
    if (high - low > 1e-6 * std::abs(low)) {  // where differences of ticks mean something
      ASSERT_TRUE(one_digit(step)) << step;
      ASSERT_GE(high - low, 0.25 * width) << low << " to " << high;  // most of the plot is not wasted
    }
    for (std::size_t k = 1; k < axis.ticks.size(); ++k) {
      ASSERT_NEAR(axis.ticks[k] - axis.ticks[k - 1], step, 1e-6 * width);
      ASSERT_NE(axis.labels[k], axis.labels[k - 1]) << low << " to " << high;
    }
  }
}

TEST(Axis, LogTicksCoverTheRangeAndAreFewAndNice) {
  std::mt19937 random(2);
  std::uniform_real_distribution<double> exponent(-9.0, 9.0), decades(0.0, 1.0);
  for (int i = 0; i < 20000; ++i) {
    const double low = std::pow(10.0, exponent(random));
    const double span = std::pow(decades(random), 3) * 12.0;  // many far below one decade
    const double high = low * std::pow(10.0, span);
    const PlotAxis axis = make_axis(AxisScale::log, low, high);
    ASSERT_GT(axis.low(), 0.0);
    ASSERT_LE(axis.low(), low * (1 + 1e-6)) << low << " to " << high;
    ASSERT_GE(axis.high(), high * (1 - 1e-6)) << low << " to " << high;
    ASSERT_GE(axis.ticks.size(), span < 1.0 ? 2u : 3u) << low << " to " << high;
    ASSERT_LE(axis.ticks.size(), 8u) << low << " to " << high;
    for (std::size_t k = 0; k < axis.ticks.size(); ++k) {
      ASSERT_TRUE(span < 1.0 || one_digit(axis.ticks[k])) << axis.ticks[k];
      ASSERT_TRUE(k == 0 || axis.labels[k] != axis.labels[k - 1]) << low << " to " << high;
    }
  }
}

TEST(Axis, KnownRanges) {
  using Texts = std::vector<std::string>;
  const PlotAxis steps = make_axis(AxisScale::linear, 0, 999);
  EXPECT_EQ(steps.ticks, (std::vector<double>{0, 200, 400, 600, 800, 1000}));
  EXPECT_EQ(steps.labels, (Texts{"0", "200", "400", "600", "800", "1000"}));
  const PlotAxis tenths = make_axis(AxisScale::linear, -0.1, 0.3);
  EXPECT_EQ(tenths.ticks, (std::vector<double>{-0.1, 0, 0.1, 0.2, 0.3}));
  EXPECT_EQ(tenths.labels, (Texts{"\u22120.1", "0", "0.1", "0.2", "0.3"}));
  EXPECT_EQ(make_axis(AxisScale::linear, 1e6, 3e6).labels,
            (Texts{"1.0\u00B710\u2076", "1.5\u00B710\u2076", "2.0\u00B710\u2076", "2.5\u00B710\u2076",
                   "3.0\u00B710\u2076"}));
  EXPECT_EQ(make_axis(AxisScale::log, 7, 180).labels, (Texts{"5", "10", "20", "50", "100", "200"}));
  EXPECT_EQ(make_axis(AxisScale::log, 0.3, 900).ticks,
            (std::vector<double>{0.3, 1, 3, 10, 30, 100, 300, 1000}));
  EXPECT_EQ(make_axis(AxisScale::log, 1e-5, 0.5).labels,
            (Texts{"10\u207B\u2075", "10\u207B\u2074", "0.001", "0.01", "0.1", "1"}));
  EXPECT_EQ(make_axis(AxisScale::log, 41, 43).labels, (Texts{"41.0", "41.5", "42.0", "42.5", "43.0"}));
}

TEST(Axis, TakesRangesWithoutWidthAndOfAnyMagnitude) {
  for (const double value : {0.0, 5.0, -5.0, 1e280, 1e-280, -1e280, 1e-300}) {
    const PlotAxis axis = make_axis(AxisScale::linear, value, value);
    EXPECT_LT(axis.low(), value);
    EXPECT_GT(axis.high(), value);
    EXPECT_GT(axis.place(value), 0.1) << value;
    EXPECT_LT(axis.place(value), 0.9) << value;
  }
  for (const double value : {5.0, 1e280, 1e-280}) {
    const PlotAxis axis = make_axis(AxisScale::log, value, value);
    EXPECT_LT(axis.low(), value);
    EXPECT_GT(axis.high(), value);
  }
  EXPECT_LE(make_axis(AxisScale::log, 1e-280, 1e280).ticks.size(), 8u);
  EXPECT_NEAR(make_axis(AxisScale::log, 1e-280, 1e280).place(1.0), 0.5, 1e-12);
  EXPECT_LE(make_axis(AxisScale::linear, -1e280, 1e280).ticks.size(), 8u);
  EXPECT_THROW(make_axis(AxisScale::log, 0.0, 1.0), Error);
  EXPECT_THROW(make_axis(AxisScale::linear, 0.0, kNaN), Error);
  EXPECT_THROW(make_axis(AxisScale::linear, 1.0, 0.0), Error);
}

TEST(Axis, PlacesLinearlyOrByPowers) {
  const PlotAxis linear = make_axis(AxisScale::linear, 0.0, 10.0);
  EXPECT_DOUBLE_EQ(linear.place(2.5), 0.25);
  const PlotAxis log = make_axis(AxisScale::log, 1.0, 10000.0);
  EXPECT_NEAR(log.place(10.0), 0.25, 1e-12);
  EXPECT_FALSE(drawable(0.0, AxisScale::log));
  EXPECT_TRUE(drawable(0.0, AxisScale::linear));
  EXPECT_FALSE(drawable(kNaN, AxisScale::linear));
  EXPECT_FALSE(drawable(kInfinity, AxisScale::log));
}

PlotSeries ramp(int points) {
  PlotSeries series{"ramp & co", {}, {}};
  for (int i = 0; i < points; ++i) {
    series.x.push_back(i);
    series.y.push_back(std::exp(0.1 * i));
  }
  return series;
}

TEST(Plot, PointsLieInsideTheFrameAndRiseWithTheData) {
  for (const AxisScale scale : {AxisScale::linear, AxisScale::log}) {
    for (const bool falls : {false, true}) {
      Plot plot{"a title", "x", "y", scale, falls};
      plot.series = {ramp(60)};
      const std::string svg = plot_svg(plot);
      std::string frame;
      for (const std::string& tag : tags(svg)) {
        if (tag.starts_with("rect class=\"dpg-frame\"")) frame = tag;
      }
      const double left = std::stod(attribute(frame, "x")), top = std::stod(attribute(frame, "y"));
      const double right = left + std::stod(attribute(frame, "width"));
      const double bottom = top + std::stod(attribute(frame, "height"));
      EXPECT_GT(left, 0);
      EXPECT_LT(right, plot.width);
      EXPECT_LT(bottom, plot.height);
      const auto lines = points_of(svg, "polyline");
      ASSERT_EQ(lines.size(), 1u);
      ASSERT_EQ(lines[0].size(), 60u);
      EXPECT_NEAR(lines[0][0].first, falls ? right : left, 0.02);  // both ends are ticks: 0 and 60
      for (std::size_t i = 0; i < lines[0].size(); ++i) {
        const auto [x, y] = lines[0][i];
        ASSERT_TRUE(x >= left - 0.01 && x <= right + 0.01 && y >= top - 0.01 && y <= bottom + 0.01);
        if (i == 0) continue;
        ASSERT_TRUE(falls ? x < lines[0][i - 1].first : x > lines[0][i - 1].first);
        ASSERT_LT(y, lines[0][i - 1].second);
      }
      // On a log axis an exponential is straight; on a linear one it is not.
      const double first = lines[0][0].second - lines[0][20].second,
                   last = lines[0][39].second - lines[0][59].second;
      EXPECT_EQ(std::abs(first - last) < 0.05, scale == AxisScale::log) << first << " " << last;
    }
  }
}

TEST(Plot, WhatIsNotFiniteBreaksTheLine) {
  Plot plot{"", "", ""};
  plot.series = {{"a", {0, 1, 2, 3, 4, 5, 6}, {1, 2, kNaN, 3, kInfinity, 2, 1}}};
  std::string svg = plot_svg(plot);
  auto lines = points_of(svg, "polyline");
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_EQ(lines[0].size(), 2u);
  EXPECT_EQ(lines[1].size(), 2u);
  EXPECT_EQ(count(svg, "<circle"), 1u);  // the 3 stands alone
  EXPECT_EQ(svg.find("nan"), std::string::npos);
  EXPECT_EQ(svg.find("inf"), std::string::npos);

  plot.y_scale = AxisScale::log;
  plot.series = {{"a", {0, 1, 2, 3, kNaN, 5}, {1, 2, 0, -3, 4, 5}}};  // zero and below have no place either
  svg = plot_svg(plot);
  EXPECT_EQ(points_of(svg, "polyline").size(), 1u);
  EXPECT_EQ(count(svg, "<circle"), 1u);

  plot.series = {{"nothing at all", {kNaN}, {kNaN}}, {"empty", {}, {}}};
  svg = plot_svg(plot);
  EXPECT_EQ(unbalanced(svg), "");
  EXPECT_EQ(svg.find("nan\""), std::string::npos);
}

TEST(Plot, BandsGoAroundTheLine) {
  Plot plot{"", "", ""};
  plot.series = {{"mean", {0, 1, 2}, {1, 2, 3}, {0.5, 1.5, 2.5}, {1.5, 2.5, 3.5}}};
  const auto line = points_of(plot_svg(plot), "polyline").at(0);
  const auto bands = points_of(plot_svg(plot), "polygon");
  ASSERT_EQ(bands.size(), 1u);
  ASSERT_EQ(bands[0].size(), 6u);  // along the upper ends, and back along the lower ones
  for (std::size_t i = 0; i < 3; ++i) {
    const auto upper = bands[0][i], lower = bands[0][5 - i];
    EXPECT_EQ(upper.first, line[i].first);
    EXPECT_EQ(lower.first, line[i].first);
    EXPECT_GT(lower.second, line[i].second);  // pixels count downwards
    EXPECT_NEAR(lower.second - line[i].second, line[i].second - upper.second, 0.02);
  }
  plot.series[0].lower[1] = kNaN;
  EXPECT_TRUE(points_of(plot_svg(plot), "polygon").empty());  // no two points in a row are left

  plot.y_scale = AxisScale::log;
  plot.series[0].lower = {0.5, -1.0, 1e-9};  // cut at the bottom, and the line still fills the plot
  const auto cut = points_of(plot_svg(plot), "polygon").at(0);
  EXPECT_EQ(cut[4].second, cut[3].second);
  EXPECT_GT(cut[4].second, cut[5].second);
  const auto on_log = points_of(plot_svg(plot), "polyline").at(0);
  EXPECT_GT(on_log[0].second - on_log[2].second, 50.0);
}

TEST(Plot, ReferenceLineIsInTheRangeAndLabelled) {
  Plot plot{"", "", ""};
  plot.y_scale = AxisScale::log;
  plot.series = {ramp(10)};
  plot.reference = PlotReference{0.01, "noise <floor>"};
  std::string svg = plot_svg(plot);
  ASSERT_EQ(count(svg, "<line class=\"dpg-reference\""), 1u);
  EXPECT_EQ(count(svg, ">noise &lt;floor&gt;<"), 1u);
  for (const std::string& tag : tags(svg)) {
    if (!tag.starts_with("line class=\"dpg-reference\"")) continue;
    EXPECT_GT(std::stod(attribute(tag, "y1")), points_of(svg, "polyline").at(0)[0].second);
    EXPECT_LT(std::stod(attribute(tag, "y1")), plot.height);
    EXPECT_EQ(attribute(tag, "y1"), attribute(tag, "y2"));
  }
  plot.reference->y = 0.0;
  svg = plot_svg(plot);
  EXPECT_EQ(count(svg, "<line class=\"dpg-reference\""), 0u);
  EXPECT_EQ(unbalanced(svg), "");
}

TEST(Plot, IsWellFormedWithManySeries) {
  Plot plot{"quotes \" and <tags>", "x < y", "y & z"};
  for (int i = 0; i < 12; ++i) plot.series.push_back(ramp(5));
  for (const std::string& svg : {plot_svg(plot), plot_svg_file(plot)}) {
    EXPECT_EQ(unbalanced(svg), "");
    EXPECT_EQ(count(svg, ">ramp &amp; co<"), 12u);
    EXPECT_EQ(points_of(svg, "polyline").size(), 12u);
    EXPECT_EQ(count(svg, "x &lt; y"), 1u);
    EXPECT_EQ(count(svg, "aria-label=\"quotes &quot; and &lt;tags&gt;\""), 1u);
  }
  EXPECT_EQ(count(plot_svg(plot), "http"), 0u);
  EXPECT_EQ(count(plot_svg_file(plot), "http"), 1u);
}

TEST(Plot, RefusesWhatDoesNotFitTogether) {
  Plot plot{"", "", ""};
  plot.series = {{"a", {0, 1}, {1}}};
  EXPECT_THROW(plot_svg(plot), Error);
  plot.series = {{"a", {0, 1}, {1, 2}, {0, 1}, {}}};
  EXPECT_THROW(plot_svg(plot), Error);
  plot.series = {{"a", {0, 1}, {1, 2}, {0}, {2}}};
  EXPECT_THROW(plot_svg(plot), Error);
  plot.series.clear();
  plot.height = 60;
  EXPECT_THROW(plot_svg(plot), Error);
}

}  // namespace
}  // namespace dpg
