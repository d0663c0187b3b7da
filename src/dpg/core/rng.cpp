#include "dpg/core/rng.h"

#include <algorithm>

#include "dpg/core/cpu.h"
#include "dpg/core/error.h"
#include "dpg/core/rng_simd.h"

namespace dpg {
namespace {

constexpr std::uint64_t kBlock = 4;              // numbers per counter value
constexpr std::uint64_t kStream = kBlock << 32;  // numbers per stream: the block's index has 32 bits
constexpr std::int64_t kChunk = 8192;            // blocks per piece of work: 128 KiB, about a cache of output
// Below this a second thread does not pay. (Unused where there is no OpenMP.)
[[maybe_unused]] constexpr std::int64_t kParallelBlocks = 4 * kChunk;

template <class T>
using FillBlocks = void (*)(const simd::BlockRange&, T*);

template <class T>
FillBlocks<T> pick(FillBlocks<T> baseline, FillBlocks<T> avx2, FillBlocks<T> avx512) {
  switch (best_isa()) {
    case Isa::avx512:
      return avx512;
    case Isa::avx2:
      return avx2;
    case Isa::baseline:
      break;
  }
  return baseline;
}

template <class T>
void fill_whole_blocks(FillBlocks<T> fill_blocks, const simd::BlockRange& range, T* out) {
  const std::int64_t chunks = (range.blocks + kChunk - 1) / kChunk;
#pragma omp parallel for schedule(static) if (range.blocks >= kParallelBlocks)
  for (std::int64_t chunk = 0; chunk < chunks; ++chunk) {
    const std::int64_t begin = chunk * kChunk;
    simd::BlockRange piece = range;
    piece.first_block += static_cast<std::uint32_t>(begin);
    piece.blocks = std::min(kChunk, range.blocks - begin);
    fill_blocks(piece, out + kBlock * static_cast<std::uint64_t>(begin));
  }
}

// Numbers [first, first + out.size()) of a stream: the rest of a block, whole blocks, the start of a block.
template <class T>
void fill_span(FillBlocks<T> fill_blocks, std::uint64_t seed, NoiseKey key, std::span<T> out,
               std::uint64_t first) {
  check(first <= kStream && out.size() <= kStream - first, "random numbers ", first, " to ", first, " + ",
        out.size(), " are asked of a stream that has ", kStream, "; use another key");
  const PhiloxKey philox_key{static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32)};
  const auto range = [&](std::int64_t blocks) {
    return simd::BlockRange{philox_key, key, static_cast<std::uint32_t>(first / kBlock), blocks};
  };
  const auto fill_part_of_block = [&] {
    T block[kBlock];
    fill_blocks(range(1), block);
    const std::uint64_t skip = first % kBlock;
    const std::size_t count = std::min<std::size_t>(kBlock - skip, out.size());
    std::copy_n(block + skip, count, out.data());
    out = out.subspan(count);
    first += count;
  };
  if (first % kBlock != 0 && !out.empty()) fill_part_of_block();
  if (const std::uint64_t blocks = out.size() / kBlock; blocks > 0) {
    fill_whole_blocks(fill_blocks, range(static_cast<std::int64_t>(blocks)), out.data());
    out = out.subspan(blocks * kBlock);
    first += blocks * kBlock;
  }
  if (!out.empty()) fill_part_of_block();
}

}  // namespace

void Rng::normal(NoiseKey key, std::span<float> out, std::uint64_t first) const {
  static const auto fill_blocks =
      pick<float>(simd::baseline::normal_blocks, simd::avx2::normal_blocks, simd::avx512::normal_blocks);
  fill_span(fill_blocks, seed_, key, out, first);
}

void Rng::uniform(NoiseKey key, std::span<float> out, std::uint64_t first) const {
  static const auto fill_blocks =
      pick<float>(simd::baseline::uniform_blocks, simd::avx2::uniform_blocks, simd::avx512::uniform_blocks);
  fill_span(fill_blocks, seed_, key, out, first);
}

void Rng::words(NoiseKey key, std::span<std::uint32_t> out, std::uint64_t first) const {
  static const auto fill_blocks =
      pick<std::uint32_t>(simd::baseline::word_blocks, simd::avx2::word_blocks, simd::avx512::word_blocks);
  fill_span(fill_blocks, seed_, key, out, first);
}

}  // namespace dpg
