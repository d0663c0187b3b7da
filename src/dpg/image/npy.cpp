#include "dpg/image/npy.h"

#include <bit>
#include <cmath>
#include <cstring>

#include "dpg/core/error.h"
#include "dpg/core/file.h"
#include "dpg/image/npy_header.h"

namespace dpg {
namespace codec {
namespace {

float half_to_float(std::uint16_t half) {
  const float sign = (half & 0x8000u) != 0 ? -1.0f : 1.0f;
  const int exponent = half >> 10 & 0x1F;
  const int mantissa = half & 0x3FF;
  if (exponent == 31) return mantissa != 0 ? std::nanf("") : sign * INFINITY;
  if (exponent == 0) return sign * std::ldexp(static_cast<float>(mantissa), -24);
  return sign * std::ldexp(static_cast<float>(mantissa + 0x400), exponent - 25);
}

template <class Word>
Word load(const std::uint8_t* at, bool big_endian) {
  Word value = 0;
  for (std::size_t i = 0; i < sizeof(Word); ++i) {
    value = static_cast<Word>(value << 8 | at[big_endian ? i : sizeof(Word) - 1 - i]);
  }
  return value;
}

float number(const std::uint8_t* at, NpyType type, bool big_endian) {
  switch (type) {
    case NpyType::b1:
      return *at != 0 ? 1.0f : 0.0f;
    case NpyType::u1:
      return static_cast<float>(*at);
    case NpyType::u2:
      return static_cast<float>(at[big_endian ? 0 : 1] << 8 | at[big_endian ? 1 : 0]);
    case NpyType::i4:
      return static_cast<float>(static_cast<std::int32_t>(load<std::uint32_t>(at, big_endian)));
    case NpyType::i8:
      return static_cast<float>(static_cast<std::int64_t>(load<std::uint64_t>(at, big_endian)));
    case NpyType::f2:
      return half_to_float(static_cast<std::uint16_t>(at[big_endian ? 0 : 1] << 8 | at[big_endian ? 1 : 0]));
    case NpyType::f4:
      return std::bit_cast<float>(load<std::uint32_t>(at, big_endian));
    case NpyType::f8:
      return static_cast<float>(std::bit_cast<double>(load<std::uint64_t>(at, big_endian)));
  }
  fail("unknown NPY type");
}

// Visits the elements in C order; `next` gives where each lies in a Fortran-ordered file.
class FortranOrder {
 public:
  explicit FortranOrder(const std::vector<std::int64_t>& shape) : shape_(shape), index_(shape.size()) {
    std::size_t stride = 1;
    for (const std::int64_t axis : shape) {
      strides_.push_back(stride);
      stride *= static_cast<std::size_t>(axis);
    }
  }

  std::size_t next() {
    const std::size_t here = offset_;
    for (std::size_t axis = shape_.size(); axis-- > 0;) {
      offset_ += strides_[axis];
      if (++index_[axis] < shape_[axis]) break;
      offset_ -= strides_[axis] * static_cast<std::size_t>(shape_[axis]);
      index_[axis] = 0;
    }
    return here;
  }

 private:
  const std::vector<std::int64_t>& shape_;
  std::vector<std::int64_t> index_;
  std::vector<std::size_t> strides_;
  std::size_t offset_ = 0;
};

}  // namespace

std::vector<float> read_npy_data(const Input& input, const NpyHeader& header) {
  std::vector<float> data(header.count);
  const std::uint8_t* first = as_u8(input.bytes) + header.data_offset;
  const std::size_t size = size_of(header.type);
  if (header.fortran_order) {
    FortranOrder order(header.shape);
    for (float& value : data) value = number(first + order.next() * size, header.type, header.big_endian);
  } else {
    for (std::size_t i = 0; i < data.size(); ++i)
      data[i] = number(first + i * size, header.type, header.big_endian);
  }
  return data;
}

}  // namespace codec

namespace {

// Magic, version 1, and a header that ends at a multiple of 64 bytes, so that a mapped file has aligned
// numbers.
std::string header_text(std::span<const std::int64_t> shape, std::size_t count) {
  std::string axes;
  std::size_t product = 1;
  for (const std::int64_t axis : shape) {
    check(axis >= 0, "an array for NPY has an axis of length ", axis);
    product *= static_cast<std::size_t>(axis);
    axes += str(axes.empty() ? "" : ", ", axis);
  }
  if (shape.size() == 1) axes += ",";  // a tuple of one

  check(product == count, "an array for NPY has ", count, " values and a shape of ", product);
  std::string dictionary = str("{'descr': '<f4', 'fortran_order': False, 'shape': (", axes, "), }");
  constexpr std::size_t kFixed = 10;  // magic, version, length
  dictionary.append(63 - (kFixed + dictionary.size()) % 64, ' ').push_back('\n');
  check(dictionary.size() <= 0xFFFF, "an array for NPY has too many axes (", shape.size(), ")");
  std::string text("\x93NUMPY\x01\x00", 8);
  text.push_back(static_cast<char>(dictionary.size() & 0xFF));
  text.push_back(static_cast<char>(dictionary.size() >> 8));
  return text + dictionary;
}

static_assert(std::endian::native == std::endian::little, "floats are written as they lie in memory");

}  // namespace

NpyArray decode_npy(std::span<const std::byte> bytes, const std::string& name, const ReadLimits& limits) {
  const codec::Input input{bytes, name, limits};
  const bool magic = bytes.size() >= 6 && std::memcmp(bytes.data(), "\x93NUMPY", 6) == 0;
  if (!magic) codec::fail_reading(input, "it is not an NPY file");
  codec::NpyHeader header = codec::read_npy_header(input);
  NpyArray array;
  array.data = codec::read_npy_data(input, header);
  array.kind = codec::kind_of(header.type);
  array.shape = std::move(header.shape);
  return array;
}

NpyArray read_npy(const std::filesystem::path& path, const ReadLimits& limits) {
  const MappedFile file(path);
  return decode_npy(file.bytes(), path.string(), limits);
}

std::vector<std::byte> encode_npy(std::span<const std::int64_t> shape, std::span<const float> data) {
  const std::string header = header_text(shape, data.size());
  std::vector<std::byte> bytes = codec::to_bytes(header.data(), header.size());
  const auto numbers = std::as_bytes(data);
  bytes.insert(bytes.end(), numbers.begin(), numbers.end());
  return bytes;
}

void write_npy(const std::filesystem::path& path, std::span<const std::int64_t> shape,
               std::span<const float> data) {
  const std::string header = header_text(shape, data.size());
  AtomicFile file(path);
  file.write(header);
  file.write(data.data(), data.size_bytes());
  file.commit();
}

}  // namespace dpg
