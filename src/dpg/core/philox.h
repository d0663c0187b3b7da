// Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011): a bijection of
// 128-bit counters, so that any number of a stream can be had without those before it.
//
// The functions are `static` on purpose: each instruction set compiles its own copy, and the linker must not
// merge them.
#pragma once

#include <cstdint>

#include "dpg/core/host_device.h"

namespace dpg {

struct PhiloxWords {
  std::uint32_t w0, w1, w2, w3;
};

struct PhiloxKey {
  std::uint32_t k0, k1;
};

DPG_HOST_DEVICE static inline std::uint32_t philox_high(std::uint32_t a, std::uint32_t b) {
  return static_cast<std::uint32_t>((static_cast<std::uint64_t>(a) * b) >> 32);
}

DPG_HOST_DEVICE static inline PhiloxWords philox_round(PhiloxWords c, PhiloxKey key) {
  constexpr std::uint32_t m0 = 0xD2511F53u, m1 = 0xCD9E8D57u;
  return {philox_high(m1, c.w2) ^ c.w1 ^ key.k0, m1 * c.w2, philox_high(m0, c.w0) ^ c.w3 ^ key.k1, m0 * c.w0};
}

DPG_HOST_DEVICE static inline PhiloxWords philox4x32_10(PhiloxWords counter, PhiloxKey key) {
  for (int round = 0; round < 10; ++round) {
    counter = philox_round(counter, key);
    key.k0 += 0x9E3779B9u;  // the golden ratio
    key.k1 += 0xBB67AE85u;  // sqrt(3) - 1
  }
  return counter;
}

}  // namespace dpg
