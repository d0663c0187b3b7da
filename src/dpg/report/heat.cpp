#include "dpg/report/heat.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

#include "dpg/core/error.h"
#include "dpg/image/font.h"
#include "dpg/image/grid.h"
#include "dpg/report/markup.h"

namespace dpg {
namespace {

constexpr float kBlack = -1.0f, kGrey = 0.0f;

// OKLab (Ottosson 2020), where distances are about what the eye sees, to linear sRGB.
std::array<double, 3> linear_rgb(double lightness, double a, double b) {
  const auto cube = [](double v) { return v * v * v; };
  const double l = cube(lightness + 0.3963377774 * a + 0.2158037573 * b);
  const double m = cube(lightness - 0.1055613458 * a - 0.0638541728 * b);
  const double s = cube(lightness - 0.0894841775 * a - 1.2914855480 * b);
  return {4.0767416621 * l - 3.3077115913 * m + 0.2309699292 * s,
          -1.2684380046 * l + 2.6097574011 * m - 0.3413193965 * s,
          -0.0041960863 * l - 0.7034186147 * m + 1.7076147010 * s};
}

// The colour at `place`, 0 to 1. Lightness rises and the hue turns from violet to yellow, both evenly; the
// chroma stays just inside what sRGB can show, which is least in blue-green.
std::array<float, 3> heat_colour(double place) {
  const double lightness = 0.25 + 0.67 * place;
  const double hue = (305.0 - 200.0 * place) * std::numbers::pi / 180.0;
  const double chroma = 0.092 + 0.2 * (place - 0.42) * (place - 0.42);
  const auto linear = linear_rgb(lightness, chroma * std::cos(hue), chroma * std::sin(hue));
  std::array<float, 3> colour{};
  for (int c = 0; c < 3; ++c) {
    const double v = std::clamp(linear[c], 0.0, 1.0);
    const double encoded = v <= 0.0031308 ? 12.92 * v : 1.055 * std::pow(v, 1.0 / 2.4) - 0.055;
    colour[c] = static_cast<float>(2.0 * encoded - 1.0);
  }
  return colour;
}

void set_colour(Image& image, int y, int x, const std::array<float, 3>& colour) {
  for (int c = 0; c < 3; ++c) image.at(c, y, x) = colour[c];
}

}  // namespace

Image heat_map(const Image& values, double top) {
  check(values.channels == 1, "a heat map shows one channel, not ", values.channels, "; combine them first");
  check(std::isfinite(top) && top > 0.0, "a heat map's top must be a number above 0, not ", top);
  Image map = blank_image(3, values.height, values.width, kGrey);
  for (int y = 0; y < values.height; ++y) {
    for (int x = 0; x < values.width; ++x) {
      const double value = values.at(0, y, x);
      if (std::isnan(value)) continue;
      check(value >= 0.0, "a heat map shows numbers from 0 up, not ", value);
      set_colour(map, y, x, heat_colour(std::min(1.0, value / top)));
    }
  }
  return map;
}

Image with_scale(const Image& map, double top) {
  check(map.channels == 3 && map.width > 0 && map.height > 0,
        "a colour bar goes below a heat map of three channels");
  const std::string label = markup::significant(top, 3);
  const int dot = std::max(1, map.width / 128);
  const int bar = 8 * dot, gap = 2 * dot;
  const int width = std::max(map.width, font::text_width("0  " + label) * dot + 2 * gap);
  const int left = (width - map.width) / 2;
  const int bar_top = map.height + gap, text_top = bar_top + bar + gap;

  Image out = blank_image(3, text_top + font::kHeight * dot + gap, width, kBlack);
  for (int c = 0; c < 3; ++c) {
    for (int y = 0; y < map.height; ++y) {
      for (int x = 0; x < map.width; ++x) out.at(c, y, left + x) = map.at(c, y, x);
    }
  }
  for (int x = 0; x < width; ++x) {
    const auto colour = heat_colour(width == 1 ? 0.0 : static_cast<double>(x) / (width - 1));
    for (int y = bar_top; y < bar_top + bar; ++y) set_colour(out, y, x, colour);
  }
  draw_label(out, "0", text_top, gap, dot);
  draw_label(out, label, text_top, width - gap - font::text_width(label) * dot, dot);
  return out;
}

}  // namespace dpg
