#include "dpg/image/grid.h"

#include <algorithm>

#include "dpg/core/error.h"
#include "dpg/image/font.h"
#include "dpg/image/transform.h"

namespace dpg {
namespace {

constexpr float kBackground = 0.0f;  // mid grey
constexpr float kBlack = -1.0f;

Image filled(int channels, std::int64_t height, std::int64_t width, float value) {
  constexpr std::int64_t kLargestSheet = 1'000'000'000;
  check(width <= kLargestSheet && height <= kLargestSheet / width, "a sheet of ", width, " x ", height,
        " pixels is too large");
  return blank_image(channels, static_cast<int>(height), static_cast<int>(width), value);
}

void paste(Image& sheet, const Image& picture, int top, int left) {
  for (int c = 0; c < picture.channels; ++c) {
    for (int y = 0; y < picture.height; ++y) {
      const float* row = &picture.data[(static_cast<std::size_t>(c) * picture.height + y) * picture.width];
      std::copy_n(row, picture.width, &sheet.at(c, top + y, left));
    }
  }
}

}  // namespace

Image make_grid(std::span<const Image> images, int columns, int gap) {
  check(!images.empty(), "a grid needs at least one picture");
  check(columns > 0, "a grid of ", columns, " columns cannot be made");
  check(gap >= 0, "a gap of ", gap, " pixels cannot be made");
  int height = 0, width = 0;
  bool grey = true;
  for (const Image& image : images) {
    check(image.height > 0 && image.width > 0, "a grid cannot hold an empty picture");
    height = std::max(height, image.height);
    width = std::max(width, image.width);
    grey = grey && image.channels == 1;
  }
  columns = static_cast<int>(std::min<std::size_t>(static_cast<std::size_t>(columns), images.size()));
  const auto rows = static_cast<std::int64_t>((images.size() + columns - 1) / columns);
  const std::int64_t step_y = std::int64_t{height} + gap;
  const std::int64_t step_x = std::int64_t{width} + gap;
  Image sheet = filled(grey ? 1 : 3, rows * step_y - gap, columns * step_x - gap, kBackground);
  for (std::size_t i = 0; i < images.size(); ++i) {
    const Image picture = grey ? images[i] : to_rgb(images[i]);
    const auto top = static_cast<std::int64_t>(i / columns) * step_y + (height - picture.height) / 2;
    const auto left = static_cast<std::int64_t>(i % columns) * step_x + (width - picture.width) / 2;
    paste(sheet, picture, static_cast<int>(top), static_cast<int>(left));
  }
  return sheet;
}

Image side_by_side(std::span<const Image> images, int gap) {
  check(!images.empty(), "a grid needs at least one picture");
  return make_grid(images, static_cast<int>(images.size()), gap);
}

void draw_label(Image& image, const std::string& text, int y, int x, int scale, float value) {
  check(scale >= 1, "a label cannot be drawn at scale ", scale);
  const auto set = [&](std::int64_t row, std::int64_t column) {
    if (row < 0 || row >= image.height || column < 0 || column >= image.width) return;
    for (int c = 0; c < image.channels; ++c) {
      const bool alpha = image.channels % 2 == 0 && c == image.channels - 1;
      image.at(c, static_cast<int>(row), static_cast<int>(column)) = alpha ? 1.0f : value;
    }
  };
  for (std::size_t i = 0; i < text.size(); ++i) {
    const std::int64_t left = x + static_cast<std::int64_t>(i) * font::kAdvance * scale;
    for (int dot = 0; dot < font::kWidth * font::kHeight; ++dot) {
      const int row = dot / font::kWidth, column = dot % font::kWidth;
      if (!font::dot(text[i], row, column)) continue;
      for (int dy = 0; dy < scale; ++dy) {
        for (int dx = 0; dx < scale; ++dx)
          set(y + std::int64_t{row} * scale + dy, left + column * scale + dx);
      }
    }
  }
}

Image with_caption(const Image& image, const std::string& text, int scale) {
  check(scale >= 1, "a label cannot be drawn at scale ", scale);
  check(image.height > 0 && image.width > 0, "an empty picture cannot have a caption");
  const int margin = 2 * scale;
  const std::int64_t strip = std::int64_t{font::kHeight} * scale + 2 * margin;
  Image out = filled(image.channels, image.height + strip, image.width, kBlack);
  if (image.channels % 2 == 0) {  // the strip is opaque
    const auto alpha = out.data.end() - static_cast<std::ptrdiff_t>(out.pixels());
    std::fill(alpha, out.data.end(), 1.0f);
  }
  paste(out, image, 0, 0);
  std::string shown = text;
  while (!shown.empty() && font::text_width(shown) * scale > image.width - 2 * margin) shown.pop_back();
  draw_label(out, shown, image.height + margin, margin, scale);
  return out;
}

}  // namespace dpg
