// A .npy array as a picture. Shapes: (H, W), (C, H, W), (H, W, C), each also with a leading axis of length 1
// (a batch of one picture), where C is 1 to 4. Where both ends could be C, the first is: (3, 5, 4) is three
// channels of 5 x 4.
//
// uint8 and uint16 are scaled like the 8 and 16 bit codecs, booleans become black and white, int32 and int64
// must be within 0 to 255 and are scaled like uint8, and floats are taken as they are: [-1, 1] already.
#include <algorithm>
#include <cmath>

#include "dpg/image/npy_header.h"

namespace dpg::codec {
namespace {

struct Layout {
  std::int64_t channels = 1, height = 0, width = 0;
  bool channels_last = false;
};

bool can_be_channels(std::int64_t axis) {
  return axis >= 1 && axis <= 4;
}

Layout layout(const Input& input, std::vector<std::int64_t> shape) {
  if (shape.size() == 4 && shape[0] == 1) shape.erase(shape.begin());
  if (shape.size() == 2) return {1, shape[0], shape[1], false};
  if (shape.size() == 3 && can_be_channels(shape[0])) return {shape[0], shape[1], shape[2], false};
  if (shape.size() == 3 && can_be_channels(shape[2])) return {shape[2], shape[0], shape[1], true};
  std::string axes;
  for (const std::int64_t axis : shape) axes += str(axes.empty() ? "" : ", ", axis);
  fail_reading(input, "an array of shape (", axes,
               ") is not one picture; (H, W), (C, H, W) and (H, W, C) are");
}

void scale(const Input& input, NpyKind kind, std::vector<float>& data) {
  if (kind == NpyKind::floating) {
    const bool finite = std::all_of(data.begin(), data.end(), [](float v) { return std::isfinite(v); });
    if (!finite) fail_reading(input, "it holds values that are infinite or not numbers");
    return;
  }
  if (kind == NpyKind::integer) {
    const bool fits = std::all_of(data.begin(), data.end(), [](float v) { return v >= 0 && v <= 255; });
    if (!fits)
      fail_reading(input, "its integers are not all within 0 to 255; save it as uint8, uint16 or float32");
  }
  const float half = kind == NpyKind::boolean ? 0.5f : kind == NpyKind::unsigned16 ? 32767.5f : 127.5f;
  for (float& value : data) value = value / half - 1.0f;
}

std::vector<float> channels_first(const std::vector<float>& data, std::size_t channels) {
  const std::size_t pixels = data.size() / channels;
  std::vector<float> planes(data.size());
  for (std::size_t i = 0; i < pixels; ++i) {
    for (std::size_t c = 0; c < channels; ++c) planes[c * pixels + i] = data[i * channels + c];
  }
  return planes;
}

}  // namespace

Decoded decode_npy_image(const Input& input) {
  const NpyHeader header = read_npy_header(input);
  const Layout shape = layout(input, header.shape);
  check_size(input, shape.width, shape.height);
  std::vector<float> data = read_npy_data(input, header);
  scale(input, kind_of(header.type), data);
  if (shape.channels_last) data = channels_first(data, static_cast<std::size_t>(shape.channels));
  return {Image{static_cast<int>(shape.channels), static_cast<int>(shape.height),
                static_cast<int>(shape.width), std::move(data)},
          1};
}

std::vector<std::byte> encode_npy_image(const Output& output) {
  const Image& image = output.image;
  const std::int64_t shape[] = {image.channels, image.height, image.width};
  return encode_npy(shape, image.data);
}

}  // namespace dpg::codec
