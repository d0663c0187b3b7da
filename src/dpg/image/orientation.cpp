// Flips, transposes and the eight EXIF orientations.
#include <algorithm>

#include "dpg/core/error.h"
#include "dpg/image/transform.h"

namespace dpg {
namespace {

float* row(Image& image, int c, int y) {
  return image.data.data() + (static_cast<std::size_t>(c) * image.height + y) * image.width;
}

}  // namespace

Image flip_horizontal(Image image) {
  for (int c = 0; c < image.channels; ++c) {
    for (int y = 0; y < image.height; ++y) std::reverse(row(image, c, y), row(image, c, y) + image.width);
  }
  return image;
}

Image flip_vertical(Image image) {
  for (int c = 0; c < image.channels; ++c) {
    for (int y = 0; y < image.height / 2; ++y) {
      std::swap_ranges(row(image, c, y), row(image, c, y) + image.width, row(image, c, image.height - 1 - y));
    }
  }
  return image;
}

Image transpose(Image image) {
  // Plane by plane: one spare plane, not a second picture.
  std::vector<float> plane(static_cast<std::size_t>(image.pixels()));
  const auto height = static_cast<std::size_t>(image.height);
  const auto width = static_cast<std::size_t>(image.width);
  for (int c = 0; c < image.channels; ++c) {
    float* const first = row(image, c, 0);
    std::copy_n(first, plane.size(), plane.begin());
    for (std::size_t y = 0; y < height; ++y) {
      for (std::size_t x = 0; x < width; ++x) first[x * height + y] = plane[y * width + x];
    }
  }
  std::swap(image.height, image.width);
  return image;
}

// 1 as stored, 2 mirrored, 3 upside down, 4 both; 5 to 8 the same after swapping rows and columns: 5
// transposed, 6 to be turned clockwise, 7 transposed about the other diagonal, 8 to be turned anticlockwise.
Image oriented(Image image, int orientation) {
  check(orientation >= 1 && orientation <= 8, "EXIF orientation ", orientation, " is not within 1 to 8");
  if (orientation >= 5) image = transpose(std::move(image));
  if (orientation == 2 || orientation == 3 || orientation == 6 || orientation == 7) {
    image = flip_horizontal(std::move(image));
  }
  if (orientation == 3 || orientation == 4 || orientation == 7 || orientation == 8) {
    image = flip_vertical(std::move(image));
  }
  return image;
}

}  // namespace dpg
