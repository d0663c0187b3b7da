// Exact conversions between float and the two 16-bit floating types, given as their bits.
#pragma once

#include <cstdint>

namespace dpg {

// Every 16-bit value has a float that equals it.
float half_to_float(std::uint16_t bits);
float bfloat16_to_float(std::uint16_t bits);

// Rounds to the nearest, ties to even; too large becomes infinity, a NaN stays a NaN.
std::uint16_t float_to_half(float value);
std::uint16_t float_to_bfloat16(float value);

}  // namespace dpg
