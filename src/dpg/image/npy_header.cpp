#include "dpg/image/npy_header.h"

#include <algorithm>
#include <array>
#include <limits>
#include <string_view>

namespace dpg::codec {
namespace {

constexpr std::size_t kMaxAxes = 8;
constexpr std::size_t kMaxHeader = 64 * 1024;
constexpr std::size_t kMagicSize = 8;  // "\x93NUMPY", major, minor

struct TypeName {
  std::string_view name;
  NpyType type;
};
constexpr std::array<TypeName, 8> kTypes = {{{"b1", NpyType::b1},
                                             {"u1", NpyType::u1},
                                             {"u2", NpyType::u2},
                                             {"i4", NpyType::i4},
                                             {"i8", NpyType::i8},
                                             {"f2", NpyType::f2},
                                             {"f4", NpyType::f4},
                                             {"f8", NpyType::f8}}};

// Reads the one Python literal that a header is: {'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }
class HeaderParser {
 public:
  HeaderParser(const Input& input, std::string_view text) : input_(input), text_(text) {}

  NpyHeader parse() {
    expect('{');
    bool descr = false, order = false, shape = false;
    while (!accept('}')) {
      const std::string_view key = quoted();
      expect(':');
      if (key == "descr" && !descr) {
        descr = true;
        parse_type(quoted());
      } else if (key == "fortran_order" && !order) {
        order = true;
        parse_order();
      } else if (key == "shape" && !shape) {
        shape = true;
        parse_shape();
      } else {
        damaged("an unknown or repeated key");
      }
      if (!accept(',')) {
        expect('}');
        break;
      }
    }
    skip_space();
    if (!text_.empty()) damaged("text after the dictionary");
    if (!descr || !order || !shape) damaged("descr, fortran_order or shape is missing");
    return std::move(header_);
  }

 private:
  [[noreturn]] void damaged(const char* why) const {
    fail_reading(input_, "its NPY header is damaged: ", why);
  }

  void skip_space() {
    while (!text_.empty() && (text_.front() == ' ' || text_.front() == '\n')) text_.remove_prefix(1);
  }

  bool accept(char c) {
    skip_space();
    if (text_.empty() || text_.front() != c) return false;
    text_.remove_prefix(1);
    return true;
  }

  void expect(char c) {
    if (!accept(c)) damaged("it is not the dictionary it should be");
  }

  bool accept_word(std::string_view word) {
    skip_space();
    if (!text_.starts_with(word)) return false;
    text_.remove_prefix(word.size());
    return true;
  }

  std::string_view quoted() {
    const char quote = accept('\'') ? '\'' : '"';
    if (quote == '"') expect('"');
    const std::size_t end = text_.find(quote);
    if (end == std::string_view::npos) damaged("a quote is not closed");
    const std::string_view inside = text_.substr(0, end);
    text_.remove_prefix(end + 1);
    return inside;
  }

  void parse_type(std::string_view descr) {
    const auto* known = std::find_if(kTypes.begin(), kTypes.end(), [&](const TypeName& t) {
      return descr.ends_with(t.name) && descr.size() == 3;
    });
    const char order = descr.empty() ? ' ' : descr.front();
    const bool order_fits = known != kTypes.end() &&
                            (order == '<' || order == '>' || (order == '|' && size_of(known->type) == 1));
    if (!order_fits) {
      fail_reading(input_, "its numbers are of a type that is not read; save the array as float32 or uint8 (",
                   printable(descr), ")");
    }
    header_.type = known->type;
    header_.big_endian = order == '>';
  }

  void parse_order() {
    header_.fortran_order = accept_word("True");
    if (!header_.fortran_order && !accept_word("False")) damaged("fortran_order is neither True nor False");
  }

  void parse_shape() {
    expect('(');
    while (!accept(')')) {
      if (header_.shape.size() == kMaxAxes) fail_reading(input_, "it has more than ", kMaxAxes, " axes");
      header_.shape.push_back(axis());
      if (!accept(',')) {
        if (header_.shape.size() == 1) damaged("the shape is not a tuple");
        expect(')');
        break;
      }
    }
  }

  std::int64_t axis() {
    skip_space();
    std::size_t digits = 0;
    std::int64_t value = 0;
    for (; digits < text_.size() && text_[digits] >= '0' && text_[digits] <= '9'; ++digits) {
      if (digits == 18) damaged("an axis is far too long");  // 18 digits always fit
      value = value * 10 + (text_[digits] - '0');
    }
    if (digits == 0) damaged("an axis is not a whole number");
    text_.remove_prefix(digits);
    return value;
  }

  static std::string printable(std::string_view text) {
    std::string shown(text.substr(0, 32));
    for (char& c : shown) {
      if (c < ' ' || c > '~') c = '?';
    }
    return shown;
  }

  const Input& input_;
  std::string_view text_;
  NpyHeader header_;
};

std::size_t product(const Input& input, const std::vector<std::int64_t>& shape) {
  const std::size_t most =
      input.limits.max_pixels > 0 ? 4 * static_cast<std::size_t>(input.limits.max_pixels) : 0;
  std::size_t count = 1;
  bool empty = false;
  for (const std::int64_t axis : shape) {
    empty = empty || axis == 0;
    if (axis == 0) continue;
    if (static_cast<std::size_t>(axis) > most / count) {
      fail_reading(input, "it claims more than ", most, " numbers, four for each pixel of the limit");
    }
    count *= static_cast<std::size_t>(axis);
  }
  return empty ? 0 : count;
}

}  // namespace

std::size_t size_of(NpyType type) {
  constexpr std::size_t kSizes[] = {1, 1, 2, 4, 8, 2, 4, 8};
  return kSizes[static_cast<int>(type)];
}

NpyKind kind_of(NpyType type) {
  switch (type) {
    case NpyType::b1:
      return NpyKind::boolean;
    case NpyType::u1:
      return NpyKind::unsigned8;
    case NpyType::u2:
      return NpyKind::unsigned16;
    case NpyType::i4:
    case NpyType::i8:
      return NpyKind::integer;
    default:
      return NpyKind::floating;
  }
}

NpyHeader read_npy_header(const Input& input) {
  const std::uint8_t* bytes = as_u8(input.bytes);
  const int version = input.bytes.size() < kMagicSize ? 0 : bytes[6];
  const std::size_t length_bytes = version == 1 ? 2 : 4;
  if (input.bytes.size() < kMagicSize + length_bytes) fail_reading(input, "the NPY file is truncated");
  if (version < 1 || version > 3) fail_reading(input, "it is of NPY version ", version, "; 1 to 3 are read");

  std::size_t length = 0;
  for (std::size_t i = length_bytes; i-- > 0;) length = length << 8 | bytes[kMagicSize + i];
  const std::size_t start = kMagicSize + length_bytes;
  if (length > kMaxHeader) fail_reading(input, "its NPY header is longer than ", kMaxHeader, " bytes");
  if (length > input.bytes.size() - start) fail_reading(input, "the NPY file is truncated");
  const std::string_view text(reinterpret_cast<const char*>(bytes) + start, length);

  NpyHeader header = HeaderParser(input, text).parse();
  header.count = product(input, header.shape);
  header.data_offset = start + length;
  const std::size_t present = input.bytes.size() - header.data_offset;
  const std::size_t room = present / size_of(header.type);
  if (header.count > room)
    fail_reading(input, "the NPY file is truncated: ", header.count, " numbers claimed, ", room, " there");
  if (present != header.count * size_of(header.type)) fail_reading(input, "data follows after its array");
  return header;
}

}  // namespace dpg::codec
