#include "dpg/image/transform.h"

#include <algorithm>
#include <cmath>

#include "dpg/core/error.h"

namespace dpg {
namespace {

// Keys' cubic convolution kernel with a = -1/2.
double keys(double x) {
  constexpr double a = -0.5;
  x = std::abs(x);
  if (x < 1.0) return ((a + 2.0) * x - (a + 3.0)) * x * x + 1.0;
  if (x < 2.0) return (((x - 5.0) * x + 8.0) * x - 4.0) * a;
  return 0.0;
}

// The inputs that one output is a weighted sum of.
struct Tap {
  int first = 0;
  std::vector<double> weights;  // sum 1
};

// A stretch of one axis to compute: outputs [first, first + count) of `from` inputs resized to `to` outputs.
struct Stretch {
  int from, to, first, count;
  bool identity() const { return from == to && first == 0 && count == to; }
};

std::vector<Tap> taps(const Stretch& s) {
  const double ratio = static_cast<double>(s.from) / s.to;
  const double widening = std::max(ratio, 1.0);
  const double support = 2.0 * widening;
  std::vector<Tap> result(static_cast<std::size_t>(s.count));
  for (int i = 0; i < s.count; ++i) {
    const double centre = (s.first + i + 0.5) * ratio;
    const int begin = std::max(0, static_cast<int>(std::lround(centre - support)));
    const int end = std::min(s.from, static_cast<int>(std::lround(centre + support)));
    Tap& tap = result[static_cast<std::size_t>(i)];
    tap.first = begin;
    double sum = 0.0;
    for (int j = begin; j < end; ++j) {
      tap.weights.push_back(keys((j + 0.5 - centre) / widening));
      sum += tap.weights.back();
    }
    for (double& weight : tap.weights) weight /= sum;
  }
  return result;
}

// Sums in double: then a constant picture stays the same to the last bit.
Image resample_columns(const Image& image, const Stretch& s) {
  if (s.identity()) return image;
  const std::vector<Tap> columns = taps(s);
  Image out = blank_image(image.channels, image.height, s.count);
  const std::size_t rows = static_cast<std::size_t>(image.channels) * image.height;
  for (std::size_t r = 0; r < rows; ++r) {
    const float* in = image.data.data() + r * image.width;
    float* result = out.data.data() + r * out.width;
    for (const Tap& tap : columns) {
      double sum = 0.0;
      for (std::size_t j = 0; j < tap.weights.size(); ++j) sum += tap.weights[j] * in[tap.first + j];
      *result++ = static_cast<float>(sum);
    }
  }
  return out;
}

Image resample_rows(const Image& image, const Stretch& s) {
  if (s.identity()) return image;
  const std::vector<Tap> rows = taps(s);
  Image out = blank_image(image.channels, s.count, image.width);
  std::vector<double> sums(static_cast<std::size_t>(image.width));
  for (int c = 0; c < image.channels; ++c) {
    for (int y = 0; y < s.count; ++y) {
      const Tap& tap = rows[static_cast<std::size_t>(y)];
      std::fill(sums.begin(), sums.end(), 0.0);
      for (std::size_t j = 0; j < tap.weights.size(); ++j) {
        const float* in =
            &image.data[(static_cast<std::size_t>(c) * image.height + tap.first + j) * image.width];
        for (std::size_t x = 0; x < sums.size(); ++x) sums[x] += tap.weights[j] * in[x];
      }
      std::copy(sums.begin(), sums.end(), &out.at(c, y, 0));
    }
  }
  return out;
}

Image resample(const Image& image, const Stretch& rows, const Stretch& columns) {
  check(image.height > 0 && image.width > 0, "an empty picture cannot be resized");
  if (rows.identity() && columns.identity()) return image;
  Image out = resample_rows(resample_columns(image, columns), rows);
  for (float& value : out.data) value = std::clamp(value, -1.0f, 1.0f);
  return out;
}

// Colour over white: in [-1, 1], white is 1 and alpha is (a + 1) / 2.
Image over_white(const Image& image) {
  const int colours = image.channels - 1;
  Image out = blank_image(colours, image.height, image.width);
  const auto pixels = static_cast<std::size_t>(image.pixels());
  const float* alpha = image.data.data() + colours * pixels;
  for (std::size_t i = 0; i < out.data.size(); ++i) {
    const float opacity = (alpha[i % pixels] + 1.0f) * 0.5f;
    out.data[i] = image.data[i] * opacity + (1.0f - opacity);
  }
  return out;
}

bool has_alpha(const Image& image) {
  return image.channels == 2 || image.channels == 4;
}

}  // namespace

Image resize(const Image& image, int height, int width) {
  check(height > 0 && width > 0, "a picture cannot be resized to ", width, " x ", height);
  return resample(image, {image.height, height, 0, height}, {image.width, width, 0, width});
}

Image centre_crop(const Image& image, int height, int width) {
  check(height > 0 && width > 0 && height <= image.height && width <= image.width, "a crop of ", width, " x ",
        height, " does not lie within a picture of ", image.width, " x ", image.height);
  const int top = (image.height - height) / 2;
  const int left = (image.width - width) / 2;
  Image out = blank_image(image.channels, height, width);
  for (int c = 0; c < image.channels; ++c) {
    for (int y = 0; y < height; ++y) {
      const float* row =
          &image.data[(static_cast<std::size_t>(c) * image.height + top + y) * image.width + left];
      std::copy_n(row, width, &out.at(c, y, 0));
    }
  }
  return out;
}

Image fit(const Image& image, int size) {
  check(size > 0, "a picture cannot be fitted to a size of ", size);
  check(image.height > 0 && image.width > 0, "an empty picture cannot be resized");
  const double shorter = std::min(image.height, image.width);
  const auto stretch = [&](int from) {
    const double to = std::round(static_cast<double>(from) * size / shorter);
    check(to < 1e9, "a picture of ", image.width, " x ", image.height, " is too oblong to be fitted to ",
          size);
    return Stretch{from, static_cast<int>(to), (static_cast<int>(to) - size) / 2, size};
  };
  return resample(image, stretch(image.height), stretch(image.width));
}

Image to_rgb(const Image& image) {
  if (has_alpha(image)) return to_rgb(over_white(image));
  if (image.channels == 3) return image;
  check(image.channels == 1, "a picture has ", image.channels, " channels and must have 1 to 4");
  Image out = blank_image(3, image.height, image.width);
  for (int c = 0; c < 3; ++c) {
    std::copy(image.data.begin(), image.data.end(),
              out.data.begin() + c * static_cast<std::ptrdiff_t>(image.data.size()));
  }
  return out;
}

Image to_grey(const Image& image) {
  if (has_alpha(image)) return to_grey(over_white(image));
  if (image.channels == 1) return image;
  check(image.channels == 3, "a picture has ", image.channels, " channels and must have 1 to 4");
  Image out = blank_image(1, image.height, image.width);
  const auto pixels = static_cast<std::size_t>(image.pixels());
  for (std::size_t i = 0; i < pixels; ++i) {
    out.data[i] =
        0.299f * image.data[i] + 0.587f * image.data[pixels + i] + 0.114f * image.data[2 * pixels + i];
  }
  return out;
}

}  // namespace dpg
