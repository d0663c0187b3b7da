// Between the samples that files hold (8 or 16 bit, interleaved) and float planes in [-1, 1].
#include <algorithm>
#include <cmath>
#include <limits>

#include "dpg/image/codecs.h"

namespace dpg {

Image blank_image(int channels, int height, int width, float value) {
  Image image{channels, height, width, {}};
  image.data.assign(static_cast<std::size_t>(channels) * static_cast<std::size_t>(image.pixels()), value);
  return image;
}

}  // namespace dpg

namespace dpg::codec {
namespace {

// In double: a 16-bit step is 3e-5, and a float near 1 is only known to 6e-8 before it is scaled up.
std::uint32_t quantise(float value, double max_value) {
  const double unit = (std::clamp(static_cast<double>(value), -1.0, 1.0) + 1.0) * 0.5;
  return static_cast<std::uint32_t>(std::lround(unit * max_value));
}

}  // namespace

void check_size(const Input& input, std::int64_t width, std::int64_t height) {
  if (width <= 0 || height <= 0) fail_reading(input, "it claims an empty size of ", width, " x ", height);
  constexpr std::int64_t kLongestSide = std::numeric_limits<int>::max();
  const bool fits =
      width <= kLongestSide && height <= kLongestSide && width <= input.limits.max_pixels / height;
  if (!fits) {
    fail_reading(input, "it claims ", width, " x ", height, " pixels, more than the limit of ",
                 input.limits.max_pixels, "; raise the pixel limit if the file is genuine");
  }
}

void store_row8(Image& image, int y, const std::uint8_t* samples) {
  for (int c = 0; c < image.channels; ++c) {
    float* row = &image.at(c, y, 0);
    for (int x = 0; x < image.width; ++x) {
      row[x] = static_cast<float>(samples[static_cast<std::size_t>(x) * image.channels + c]) / 127.5f - 1.0f;
    }
  }
}

void store_row16(Image& image, int y, const std::uint8_t* samples, int max_value) {
  const float half = static_cast<float>(max_value) * 0.5f;
  for (int c = 0; c < image.channels; ++c) {
    float* row = &image.at(c, y, 0);
    for (int x = 0; x < image.width; ++x) {
      const std::uint8_t* sample = samples + 2 * (static_cast<std::size_t>(x) * image.channels + c);
      row[x] = static_cast<float>(sample[0] << 8 | sample[1]) / half - 1.0f;
    }
  }
}

void load_row8(const Image& image, int y, std::uint8_t* samples) {
  for (int c = 0; c < image.channels; ++c) {
    for (int x = 0; x < image.width; ++x) {
      samples[static_cast<std::size_t>(x) * image.channels + c] =
          static_cast<std::uint8_t>(quantise(image.at(c, y, x), 255.0));
    }
  }
}

void load_row16(const Image& image, int y, std::uint8_t* samples) {
  for (int c = 0; c < image.channels; ++c) {
    for (int x = 0; x < image.width; ++x) {
      std::uint8_t* sample = samples + 2 * (static_cast<std::size_t>(x) * image.channels + c);
      const std::uint32_t value = quantise(image.at(c, y, x), 65535.0);
      sample[0] = static_cast<std::uint8_t>(value >> 8);
      sample[1] = static_cast<std::uint8_t>(value & 0xFF);
    }
  }
}

std::vector<std::byte> to_bytes(const void* data, std::size_t size) {
  const auto* first = static_cast<const std::byte*>(data);
  return {first, first + size};
}

}  // namespace dpg::codec
