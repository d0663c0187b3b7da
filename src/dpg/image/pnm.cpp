// PGM and PPM: P2 and P3 (text), P5 and P6 (binary), any maximum value up to 65535.
#include "dpg/image/codecs.h"

namespace dpg::codec {
namespace {

bool is_space(std::byte b) {
  const auto c = std::to_integer<unsigned char>(b);
  return c == ' ' || (c >= '\t' && c <= '\r');
}

bool is_digit(std::byte b) {
  return b >= std::byte{'0'} && b <= std::byte{'9'};
}

// Reads the text parts: numbers with white space and comments ('#' to the end of the line) between them.
class Scanner {
 public:
  Scanner(const Input& input, std::size_t start) : input_(input), at_(start) {}

  std::int64_t number(const char* what) {
    constexpr std::int64_t kLargest = 1'000'000'000;
    skip_space();
    if (at_ == input_.bytes.size()) fail_reading(input_, "the file ends before its ", what);
    if (!is_digit(input_.bytes[at_])) fail_reading(input_, "its ", what, " is not a whole number");
    std::int64_t value = 0;
    while (at_ < input_.bytes.size() && is_digit(input_.bytes[at_])) {
      value = value * 10 + (std::to_integer<int>(input_.bytes[at_++]) - '0');
      if (value > kLargest) fail_reading(input_, "its ", what, " is far too large");
    }
    return value;
  }

  // What follows the one white space byte after the header.
  Bytes binary_part() {
    if (at_ == input_.bytes.size()) fail_reading(input_, "the file ends before its pixels");
    if (!is_space(input_.bytes[at_])) fail_reading(input_, "its header is damaged");
    return input_.bytes.subspan(at_ + 1);
  }

  std::size_t rest() const { return input_.bytes.size() - at_; }

 private:
  void skip_space() {
    while (at_ < input_.bytes.size()) {
      if (input_.bytes[at_] == std::byte{'#'}) {
        while (at_ < input_.bytes.size() && input_.bytes[at_] != std::byte{'\n'}) ++at_;
      } else if (is_space(input_.bytes[at_])) {
        ++at_;
      } else {
        return;
      }
    }
  }

  const Input& input_;
  std::size_t at_;
};

[[noreturn]] void fail_short(const Input& input) {
  fail_reading(input, "the file ends before its last pixel");
}

// One sample as two bytes, high byte first: the common form that store_row16 takes.
void put16(std::uint8_t* out, std::int64_t value) {
  out[0] = static_cast<std::uint8_t>(value >> 8);
  out[1] = static_cast<std::uint8_t>(value & 0xFF);
}

void read_text(const Input& input, Scanner& scanner, Image& image, int max_value) {
  const std::size_t samples = static_cast<std::size_t>(image.width) * image.channels;
  std::vector<std::uint8_t> row(2 * samples);
  for (int y = 0; y < image.height; ++y) {
    for (std::size_t i = 0; i < samples; ++i) {
      const std::int64_t value = scanner.number("next sample");
      if (value > max_value) fail_reading(input, "a sample is larger than its maximum value of ", max_value);
      put16(row.data() + 2 * i, value);
    }
    store_row16(image, y, row.data(), max_value);
  }
}

void read_binary(const Input& input, Bytes pixels, Image& image, int max_value) {
  const std::size_t samples = static_cast<std::size_t>(image.width) * image.channels;
  const std::size_t bytes_each = max_value > 255 ? 2 : 1;
  std::vector<std::uint8_t> row(2 * samples);
  for (int y = 0; y < image.height; ++y) {
    const std::uint8_t* in = as_u8(pixels) + static_cast<std::size_t>(y) * samples * bytes_each;
    for (std::size_t i = 0; i < samples; ++i) {
      const int value = bytes_each == 2 ? in[2 * i] << 8 | in[2 * i + 1] : in[i];
      if (value > max_value) fail_reading(input, "a sample is larger than its maximum value of ", max_value);
      put16(row.data() + 2 * i, value);
    }
    store_row16(image, y, row.data(), max_value);
  }
}

}  // namespace

Decoded decode_pnm(const Input& input) {
  const char kind = std::to_integer<char>(input.bytes[1]);
  if (kind != '2' && kind != '3' && kind != '5' && kind != '6') {
    fail_reading(input, "it is a bitmap of type P", kind, "; only P2, P3, P5 and P6 are read");
  }
  Scanner scanner(input, 2);
  const std::int64_t width = scanner.number("width");
  const std::int64_t height = scanner.number("height");
  const std::int64_t max_value = scanner.number("maximum value");
  check_size(input, width, height);
  if (max_value < 1 || max_value > 65535) {
    fail_reading(input, "its maximum value is ", max_value, " and must be 1 to 65535");
  }

  const int channels = kind == '3' || kind == '6' ? 3 : 1;
  const auto samples = static_cast<std::size_t>(width * height * channels);
  const auto image = [&] { return blank_image(channels, static_cast<int>(height), static_cast<int>(width)); };
  Decoded decoded;
  if (kind == '2' || kind == '3') {
    if (scanner.rest() < 2 * samples) fail_short(input);  // each sample takes white space and a digit
    decoded.image = image();
    read_text(input, scanner, decoded.image, static_cast<int>(max_value));
  } else {
    const Bytes pixels = scanner.binary_part();
    if (pixels.size() < samples * (max_value > 255 ? 2 : 1)) fail_short(input);
    decoded.image = image();
    read_binary(input, pixels, decoded.image, static_cast<int>(max_value));
  }
  return decoded;
}

namespace {

std::vector<std::byte> encode_binary(const Image& image, char kind, int bit_depth) {
  const std::string header =
      str('P', kind, '\n', image.width, ' ', image.height, '\n', bit_depth == 16 ? 65535 : 255, '\n');
  std::vector<std::byte> bytes = to_bytes(header.data(), header.size());
  const std::size_t row_size = static_cast<std::size_t>(image.width) * image.channels * (bit_depth / 8);
  bytes.resize(header.size() + row_size * image.height);
  for (int y = 0; y < image.height; ++y) {
    auto* row = reinterpret_cast<std::uint8_t*>(bytes.data() + header.size() + y * row_size);
    bit_depth == 16 ? load_row16(image, y, row) : load_row8(image, y, row);
  }
  return bytes;
}

}  // namespace

std::vector<std::byte> encode_pgm(const Output& output) {
  if (output.image.channels != 1) {
    fail_writing(output, "a .pgm file holds grey and the picture has ", output.image.channels,
                 " channels; write .ppm or .png");
  }
  return encode_binary(output.image, '5', output.options.bit_depth);
}

std::vector<std::byte> encode_ppm(const Output& output) {
  if (output.image.channels != 3) {
    fail_writing(output, "a .ppm file holds RGB and the picture has ", output.image.channels,
                 " channels; write ", output.image.channels == 1 ? ".pgm or .png" : ".png");
  }
  return encode_binary(output.image, '6', output.options.bit_depth);
}

}  // namespace dpg::codec
