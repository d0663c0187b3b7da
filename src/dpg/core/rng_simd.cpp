// Compiled once per instruction set. Plain loops over blocks, which the compiler turns into vector code;
// nothing with external linkage but the three functions (see philox.h).
#include "dpg/core/rng_simd.h"

#include "dpg/core/normal_math.h"

namespace dpg::simd::DPG_SIMD {
namespace {

PhiloxWords block_words(const BlockRange& range, std::int64_t i) {
  return philox4x32_10(
      {range.first_block + static_cast<std::uint32_t>(i), range.key.image, range.key.step, range.key.sample},
      range.seed);
}

}  // namespace

void normal_blocks(const BlockRange& given, float* __restrict out) {
  const BlockRange range = given;  // a copy that `out` cannot alias
  for (std::int64_t i = 0; i < range.blocks; ++i) {
    const PhiloxWords w = block_words(range, i);
    const NormalPair a = words_to_normals(w.w0, w.w1);
    const NormalPair b = words_to_normals(w.w2, w.w3);
    out[4 * i] = a.first;
    out[4 * i + 1] = a.second;
    out[4 * i + 2] = b.first;
    out[4 * i + 3] = b.second;
  }
}

void uniform_blocks(const BlockRange& given, float* __restrict out) {
  const BlockRange range = given;
  for (std::int64_t i = 0; i < range.blocks; ++i) {
    const PhiloxWords w = block_words(range, i);
    out[4 * i] = word_to_uniform(w.w0);
    out[4 * i + 1] = word_to_uniform(w.w1);
    out[4 * i + 2] = word_to_uniform(w.w2);
    out[4 * i + 3] = word_to_uniform(w.w3);
  }
}

void word_blocks(const BlockRange& given, std::uint32_t* __restrict out) {
  const BlockRange range = given;
  for (std::int64_t i = 0; i < range.blocks; ++i) {
    const PhiloxWords w = block_words(range, i);
    out[4 * i] = w.w0;
    out[4 * i + 1] = w.w1;
    out[4 * i + 2] = w.w2;
    out[4 * i + 3] = w.w3;
  }
}

}  // namespace dpg::simd::DPG_SIMD
