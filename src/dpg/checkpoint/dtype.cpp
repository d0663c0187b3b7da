#include "dpg/checkpoint/dtype.h"

#include <bit>

#include "dpg/checkpoint/state_dict.h"
#include "dpg/core/error.h"

namespace dpg {
namespace {

struct DTypeFacts {
  const char* name;
  std::size_t size;
  bool floating;
};

const DTypeFacts& facts(DType dtype) {
  static constexpr DTypeFacts kFacts[] = {
      {"f64", 8, true},  {"f32", 4, true},  {"f16", 2, true}, {"bf16", 2, true}, {"i64", 8, false},
      {"i32", 4, false}, {"i16", 2, false}, {"i8", 1, false}, {"u8", 1, false},  {"bool", 1, false}};
  const auto index = static_cast<std::size_t>(dtype);
  check(index < std::size(kFacts), "there is no element type number ", index);
  return kFacts[index];
}

}  // namespace

std::size_t dtype_size(DType dtype) {
  return facts(dtype).size;
}
const char* dtype_name(DType dtype) {
  return facts(dtype).name;
}
bool is_floating(DType dtype) {
  return facts(dtype).floating;
}

float half_to_float(std::uint16_t bits) {
  const std::uint32_t sign = (bits & 0x8000u) << 16;
  const std::uint32_t exponent = bits & 0x7c00u;
  std::uint32_t magnitude;
  if (exponent == 0) {  // zero or subnormal: a multiple of 2^-24
    magnitude = std::bit_cast<std::uint32_t>(static_cast<float>(bits & 0x3ffu) * 0x1p-24f);
  } else {  // move the exponent from bias 15 to 127; infinity and NaN from 31 to 255
    magnitude = ((bits & 0x7fffu) << 13) + ((exponent == 0x7c00u ? 224u : 112u) << 23);
  }
  return std::bit_cast<float>(sign | magnitude);
}

float bfloat16_to_float(std::uint16_t bits) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
}

std::uint16_t float_to_half(float value) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t magnitude = bits & 0x7fffffffu;
  const std::uint32_t sign = (bits >> 16) & 0x8000u;
  std::uint32_t half;
  if (magnitude > 0x7f800000u) {  // NaN: keep the top of its payload, and keep it a NaN
    half = 0x7e00u | ((magnitude >> 13) & 0x3ffu);
  } else if (magnitude >= 0x477ff000u) {  // 65520 and more round to infinity
    half = 0x7c00u;
  } else if (magnitude < 0x38800000u) {  // below 2^-14: adding 0.5 rounds to a multiple of 2^-24
    const float shifted = std::bit_cast<float>(magnitude) + 0.5f;
    half = std::bit_cast<std::uint32_t>(shifted) - std::bit_cast<std::uint32_t>(0.5f);
  } else {
    half = ((magnitude + 0xfffu + ((magnitude >> 13) & 1u)) >> 13) - (112u << 10);
  }
  return static_cast<std::uint16_t>(sign | half);
}

std::uint16_t float_to_bfloat16(float value) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return static_cast<std::uint16_t>((bits >> 16) | 0x40u);
  return static_cast<std::uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

}  // namespace dpg
