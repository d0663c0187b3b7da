// A random order of 0 .. n-1, the same on every machine.
#pragma once

#include <cstdint>
#include <vector>

#include "dpg/core/rng.h"

namespace dpg {

// Drawn from words first .. first + n - 1 of the stream.
std::vector<std::int64_t> random_order(std::int64_t n, const Rng& rng, NoiseKey key, std::uint64_t first = 0);

}  // namespace dpg
