// Exact Poisson samples from a counter-based stream.
#pragma once

#include <span>

#include "dpg/core/rng.h"

namespace dpg {

// out[e] ~ Poisson(mean[e]), means from 0 to 1e12. Entry e depends on the key, on e and on the number of
// entries only.
void poisson(const Rng& rng, NoiseKey key, std::span<const double> mean, std::span<double> out);

}  // namespace dpg
