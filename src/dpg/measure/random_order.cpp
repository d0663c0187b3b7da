#include "dpg/measure/random_order.h"

#include <algorithm>
#include <cstddef>

namespace dpg {

std::vector<std::int64_t> random_order(std::int64_t n, const Rng& rng, NoiseKey key, std::uint64_t first) {
  std::vector<std::uint32_t> words(static_cast<std::size_t>(n));
  rng.words(key, words, first);
  // Sorting (word, index) pairs has one answer even where two words are equal.
  std::vector<std::uint64_t> pairs(words.size());
  for (std::size_t i = 0; i < words.size(); ++i) pairs[i] = std::uint64_t{words[i]} << 32 | i;
  std::sort(pairs.begin(), pairs.end());
  std::vector<std::int64_t> order(words.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = static_cast<std::int64_t>(pairs[i] & 0xFFFFFFFFu);
  return order;
}

}  // namespace dpg
