// The three compiled versions of the generator's loops; only rng.cpp and the tests include this.
#pragma once

#include <cstdint>

#include "dpg/core/philox.h"
#include "dpg/core/rng.h"

namespace dpg::simd {

// Whole blocks of four numbers: block `first_block + i` goes to out[4 * i .. 4 * i + 3].
struct BlockRange {
  PhiloxKey seed;
  NoiseKey key;
  std::uint32_t first_block;
  std::int64_t blocks;
};

namespace baseline {
void normal_blocks(const BlockRange& range, float* out);
void uniform_blocks(const BlockRange& range, float* out);
void word_blocks(const BlockRange& range, std::uint32_t* out);
}  // namespace baseline
namespace avx2 {
void normal_blocks(const BlockRange& range, float* out);
void uniform_blocks(const BlockRange& range, float* out);
void word_blocks(const BlockRange& range, std::uint32_t* out);
}  // namespace avx2
namespace avx512 {
void normal_blocks(const BlockRange& range, float* out);
void uniform_blocks(const BlockRange& range, float* out);
void word_blocks(const BlockRange& range, std::uint32_t* out);
}  // namespace avx512

}  // namespace dpg::simd
