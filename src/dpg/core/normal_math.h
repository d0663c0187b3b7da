// Random words to numbers, in plain float operations (+, -, *, sqrt, conversions, selections) that are
// correctly rounded everywhere: the same words give the same bits on every instruction set and on a GPU,
// provided that the compiler does not contract a * b + c (-ffp-contract=off, nvcc -fmad=false).
//
// Each function is accurate to about 2e-7 relative. `static` for the reason given in philox.h.
#pragma once

#include <cstdint>

#include "dpg/core/host_device.h"

namespace dpg {

struct NormalPair {
  float first, second;
};

DPG_HOST_DEVICE static inline std::uint32_t bits_of(float x) {
#if defined(__CUDA_ARCH__)
  return __float_as_uint(x);
#else
  return __builtin_bit_cast(std::uint32_t, x);
#endif
}

DPG_HOST_DEVICE static inline float float_of(std::uint32_t bits) {
#if defined(__CUDA_ARCH__)
  return __uint_as_float(bits);
#else
  return __builtin_bit_cast(float, bits);
#endif
}

DPG_HOST_DEVICE static inline float exact_sqrt(float x) {
#if defined(__CUDA_ARCH__)
  return __fsqrt_rn(x);
#else
  return __builtin_sqrtf(x);
#endif
}

// Uniform in the open interval (0, 1): the odd multiples of 2^-24, all exact.
DPG_HOST_DEVICE static inline float word_to_uniform(std::uint32_t w) {
  return static_cast<float>(static_cast<std::int32_t>(w >> 8 | 1u)) * 0x1p-24f;
}

// -ln(u) of u = (w + 1/2) / 2^32, to full relative accuracy at both ends: 32-bit resolution near 0 gives the
// tails (the smallest u, 2^-33, is a normal of 6.76 sigma), and near 1 the distance from 1 is taken from the
// word itself.
DPG_HOST_DEVICE static inline float minus_log_of_word(std::uint32_t w) {
  const bool upper = (w >> 31) != 0;
  const std::uint32_t from_end = upper ? ~w : w;  // below 2^31: converts as a signed number
  const float distance = (static_cast<float>(static_cast<std::int32_t>(from_end)) + 0.5f) * 0x1p-32f;
  const float u = upper ? 1.0f - distance : distance;

  // u = 2^exponent * mantissa with the mantissa in [sqrt(1/2), sqrt(2)).
  constexpr std::uint32_t sqrt_half = 0x3F3504F3u;
  const std::int32_t exponent = static_cast<std::int32_t>(bits_of(u) - sqrt_half) >> 23;
  const float mantissa = float_of(bits_of(u) - (static_cast<std::uint32_t>(exponent) << 23));
  const float s = exponent == 0 ? -distance : mantissa - 1.0f;

  // ln(1 + s) = s + s^2 q(s); q fitted on [sqrt(1/2) - 1, sqrt(2) - 1] for the least relative error.
  float q = 0.08734843134880066f;
  q = q * s - 0.14307521283626556f;
  q = q * s + 0.14917974174022675f;
  q = q * s - 0.16570508480072021f;
  q = q * s + 0.19962072372436523f;
  q = q * s - 0.25001755356788635f;
  q = q * s + 0.33333951234817505f;
  q = q * s - 0.49999991059303284f;
  const float ln_mantissa = s + s * s * q;
  return static_cast<float>(-exponent) * 0.693147180559945f - ln_mantissa;
}

// (cos, sin) of the angle 2 pi w / 2^32.
DPG_HOST_DEVICE static inline NormalPair point_on_circle(std::uint32_t w) {
  const std::uint32_t quarter = (w + 0x20000000u) >> 30;  // the nearest multiple of a right angle
  const float h =
      static_cast<float>(static_cast<std::int32_t>(w << 2)) * 0x1p-32f;  // the rest, in [-1/2, 1/2)
  const float z = h * h;
  // sin and cos of h right angles, fitted on |h| <= 1/2 for the least relative error.
  float sine = -0.004601659253239632f;
  sine = sine * z + 0.07968003302812576f;
  sine = sine * z - 0.6459634900093079f;
  sine = sine * z + 1.5707963705062866f;
  sine = sine * h;
  float cosine = -0.020417282357811928f;
  cosine = cosine * z + 0.2536032199859619f;
  cosine = cosine * z - 1.2336976528167725f;
  cosine = cosine * z + 1.0f;

  const bool odd = (quarter & 1u) != 0;
  const std::uint32_t cos_sign = ((quarter + 1u) & 2u) << 30, sin_sign = (quarter & 2u) << 30;
  return {float_of(bits_of(odd ? sine : cosine) ^ cos_sign),
          float_of(bits_of(odd ? cosine : sine) ^ sin_sign)};
}

// Box and Muller: two independent standard normals, at most sqrt(66 ln 2) = 6.76 in magnitude.
DPG_HOST_DEVICE static inline NormalPair words_to_normals(std::uint32_t for_radius, std::uint32_t for_angle) {
  const float radius = exact_sqrt(2.0f * minus_log_of_word(for_radius));
  const NormalPair direction = point_on_circle(for_angle);
  return {radius * direction.first, radius * direction.second};
}

}  // namespace dpg
