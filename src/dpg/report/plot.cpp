#include "dpg/report/plot.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <utility>

#include "dpg/core/error.h"
#include "dpg/report/markup.h"
#include "dpg/report/plot_style.h"

namespace dpg {
namespace {

constexpr double kLetter = 7.0;  // width of a letter: no font is at hand to measure it
constexpr double kLegendRow = 20.0, kLegendKey = 26.0, kLegendGap = 18.0;

struct Range {
  double low = std::numeric_limits<double>::infinity(), high = -low;
  bool empty() const { return low > high; }
  void add(double value, AxisScale scale) {
    if (!drawable(value, scale)) return;
    low = std::min(low, value);
    high = std::max(high, value);
  }
};

struct Box {
  double left = 0.0, top = 0.0, right = 0.0, bottom = 0.0;
};

using Point = std::pair<double, double>;

class Drawing {
 public:
  explicit Drawing(const Plot& plot) : plot_(plot) {
    Range x, y;
    for (const PlotSeries& series : plot.series) {
      for (const double value : series.x) x.add(value, AxisScale::linear);
      for (const double value : series.y) y.add(value, plot.y_scale);
      for (const double value : series.upper) y.add(value, plot.y_scale);
    }
    if (plot.reference) y.add(plot.reference->y, plot.y_scale);
    if (y.empty()) y = {1.0, 10.0};
    // On a log axis a band that comes near zero would push everything else to the top.
    const double lowest =
        plot.y_scale == AxisScale::log ? y.low / 10 : -std::numeric_limits<double>::infinity();
    for (const PlotSeries& series : plot.series) {
      for (const double value : series.lower) y.add(std::max(value, lowest), plot.y_scale);
    }
    x_ = x.empty() ? make_axis(AxisScale::linear, 0.0, 1.0) : make_axis(AxisScale::linear, x.low, x.high);
    y_ = make_axis(plot.y_scale, y.low, y.high);

    int longest = 0;
    for (const std::string& label : y_.labels) longest = std::max(longest, markup::length(label));
    area_.left = 16 + kLetter * longest + (plot.y_label.empty() ? 0 : 22);
    area_.right = plot.width - 20;
    area_.bottom = plot.height - (plot.x_label.empty() ? 28 : 50);
    area_.top = 12 + legend();
    check(area_.right - area_.left >= 50 && area_.bottom - area_.top >= 50, "a plot of ", plot.width, " x ",
          plot.height, " leaves no room for its lines; make it larger");
  }

  std::string content() {
    axes();
    for (std::size_t i = 0; i < plot_.series.size(); ++i) band(plot_.series[i], i);
    if (plot_.reference && drawable(plot_.reference->y, plot_.y_scale)) reference();
    for (std::size_t i = 0; i < plot_.series.size(); ++i) line(plot_.series[i], i);
    return std::move(out_);
  }

 private:
  static std::string at(double value) { return markup::fixed(value, 2); }
  static std::string colour(std::size_t index) { return dpg::str("dpg-", index % style::kColours); }
  static std::string dashes(std::size_t index) {  // where the colours are used up, they come again, dashed
    static constexpr std::array<const char*, 3> kDashes = {"", " stroke-dasharray=\"7 4\"",
                                                           " stroke-dasharray=\"2 4\""};
    return kDashes[index / style::kColours % kDashes.size()];
  }

  double pixel_x(double value) const {
    const double place = x_.place(value);
    return area_.left + (plot_.x_falls ? 1 - place : place) * (area_.right - area_.left);
  }
  double pixel_y(double value) const { return area_.bottom - y_.place(value) * (area_.bottom - area_.top); }

  void rule(const char* kind, double x1, double y1, double x2, double y2) {
    out_ += dpg::str("<line class=\"", kind, "\" x1=\"", at(x1), "\" y1=\"", at(y1), "\" x2=\"", at(x2),
                     "\" y2=\"", at(y2), "\"/>\n");
  }
  void text(double x, double y, const char* anchor, const std::string& words, const std::string& more = "") {
    out_ += dpg::str("<text x=\"", at(x), "\" y=\"", at(y), "\" text-anchor=\"", anchor, "\"", more, ">",
                     markup::escape(words), "</text>\n");
  }

  // Rows above the lines, wrapped; returns their height.
  double legend() {
    double x = area_.left, y = 12;
    bool any = false;
    for (std::size_t i = 0; i < plot_.series.size(); ++i) {
      const std::string& name = plot_.series[i].name;
      if (name.empty()) continue;
      const double width = kLegendKey + kLetter * markup::length(name);
      if (any && x + width > area_.right) {
        x = area_.left;
        y += kLegendRow;
      }
      out_ +=
          dpg::str("<g class=\"", colour(i), "\"><line class=\"dpg-line\"", dashes(i), " x1=\"", at(x),
                   "\" y1=\"", at(y), "\" x2=\"", at(x + kLegendKey - 8), "\" y2=\"", at(y), "\"/></g>\n");
      text(x + kLegendKey, y + 4.5, "start", name);
      x += width + kLegendGap;
      any = true;
    }
    return any ? y + 4 : 0;
  }

  void axes() {
    for (std::size_t i = 0; i < y_.ticks.size(); ++i) {
      const double y = pixel_y(y_.ticks[i]);
      rule("dpg-grid", area_.left, y, area_.right, y);
      text(area_.left - 8, y + 4.5, "end", y_.labels[i]);
    }
    for (std::size_t i = 0; i < x_.ticks.size(); ++i) {
      const double x = pixel_x(x_.ticks[i]);
      rule("dpg-frame", x, area_.bottom, x, area_.bottom + 5);
      text(x, area_.bottom + 19, "middle", x_.labels[i]);
    }
    out_ +=
        dpg::str("<rect class=\"dpg-frame\" x=\"", at(area_.left), "\" y=\"", at(area_.top), "\" width=\"",
                 at(area_.right - area_.left), "\" height=\"", at(area_.bottom - area_.top), "\"/>\n");
    if (!plot_.x_label.empty())
      text((area_.left + area_.right) / 2, plot_.height - 10, "middle", plot_.x_label);
    if (!plot_.y_label.empty()) {
      const double y = (area_.top + area_.bottom) / 2;
      text(17, y, "middle", plot_.y_label, dpg::str(" transform=\"rotate(-90 17 ", at(y), ")\""));
    }
  }

  void band(const PlotSeries& series, std::size_t index) {
    std::vector<Point> above, below;
    const auto finish = [&] {
      if (above.size() > 1) {
        above.insert(above.end(), below.rbegin(), below.rend());
        out_ +=
            dpg::str("<polygon class=\"dpg-band ", colour(index), "\" points=\"", points(above), "\"/>\n");
      }
      above.clear();
      below.clear();
    };
    for (std::size_t i = 0; i < series.lower.size(); ++i) {
      const double lower = series.lower[i], upper = series.upper[i];
      const bool shown = drawable(series.x[i], AxisScale::linear) && drawable(upper, plot_.y_scale) &&
                         drawable(lower, AxisScale::linear);
      if (!shown) {
        finish();
        continue;
      }
      above.emplace_back(pixel_x(series.x[i]), pixel_y(upper));
      below.emplace_back(pixel_x(series.x[i]), pixel_y(std::max(lower, y_.low())));
    }
    finish();
  }

  void line(const PlotSeries& series, std::size_t index) {
    std::vector<Point> run;
    const auto finish = [&] {
      if (run.size() == 1) {
        out_ += dpg::str("<circle class=\"dpg-dot ", colour(index), "\" cx=\"", at(run[0].first), "\" cy=\"",
                         at(run[0].second), "\" r=\"3\"/>\n");
      } else if (run.size() > 1) {
        out_ += dpg::str("<polyline class=\"dpg-line ", colour(index), "\"", dashes(index), " points=\"",
                         points(run), "\"/>\n");
      }
      run.clear();
    };
    for (std::size_t i = 0; i < series.x.size(); ++i) {
      if (drawable(series.x[i], AxisScale::linear) && drawable(series.y[i], plot_.y_scale)) {
        run.emplace_back(pixel_x(series.x[i]), pixel_y(series.y[i]));
      } else {
        finish();
      }
    }
    finish();
  }

  static std::string points(const std::vector<Point>& list) {
    std::string out;
    for (const auto& [x, y] : list) {
      if (!out.empty()) out += ' ';
      out += at(x) + "," + at(y);
    }
    return out;
  }

  // The line, with its label in that corner, above or below, where the fewest points are.
  void reference() {
    const double y = pixel_y(plot_.reference->y), width = kLetter * markup::length(plot_.reference->label);
    rule("dpg-reference", area_.left, y, area_.right, y);
    if (plot_.reference->label.empty()) return;
    Box best;
    int fewest = std::numeric_limits<int>::max();
    for (const double top : {y - 22, y + 4}) {
      for (const double left : {area_.left + 8, area_.right - 8 - width}) {
        const Box box{left, top, left + width, top + 18};
        if (box.top < area_.top || box.bottom > area_.bottom) continue;
        if (const int inside = points_in(box); inside < fewest) {
          fewest = inside;
          best = box;
        }
      }
    }
    text(best.left, best.bottom - 4, "start", plot_.reference->label);
  }

  int points_in(const Box& box) const {
    int count = 0;
    for (const PlotSeries& series : plot_.series) {
      for (std::size_t i = 0; i < series.x.size(); ++i) {
        if (!drawable(series.x[i], AxisScale::linear) || !drawable(series.y[i], plot_.y_scale)) continue;
        const double x = pixel_x(series.x[i]), y = pixel_y(series.y[i]);
        count += x >= box.left && x <= box.right && y >= box.top && y <= box.bottom;
      }
    }
    return count;
  }

  const Plot& plot_;
  PlotAxis x_, y_;
  Box area_;
  std::string out_;
};

std::string draw(const Plot& plot, const std::string& attributes, const std::string& style) {
  for (const PlotSeries& series : plot.series) {
    check(series.x.size() == series.y.size(), "the series \"", series.name, "\" of a plot has ",
          series.x.size(), " x for ", series.y.size(), " y");
    const std::size_t band = series.lower.size();
    check(band == series.upper.size() && (band == 0 || band == series.x.size()), "the band of the series \"",
          series.name, "\" of a plot has ", band, " lower and ", series.upper.size(), " upper ends for ",
          series.x.size(), " points");
  }
  const std::string width = std::to_string(plot.width), height = std::to_string(plot.height);
  return dpg::str("<svg class=\"dpg-plot\" role=\"img\" aria-label=\"", markup::escape(plot.title),
                  "\" width=\"", width, "\" height=\"", height, "\" viewBox=\"0 0 ", width, " ", height, "\"",
                  attributes, ">\n<style>", style, "</style>\n", Drawing(plot).content(), "</svg>\n");
}

}  // namespace

std::string plot_svg(const Plot& plot) {
  return draw(plot, "", style::kStyle);
}

std::string plot_svg_file(const Plot& plot) {
  return draw(plot, " xmlns=\"http://www.w3.org/2000/svg\"", std::string(style::kStyle) + style::kFileStyle);
}

}  // namespace dpg
