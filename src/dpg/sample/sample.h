// Unconditional samples of a prior.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>

#include "dpg/core/rng.h"
#include "dpg/prior/prior.h"

namespace dpg {

struct SampleOptions {
  std::string sampler = "ddpm";  // ddpm or ddim
  int steps = 100;               // network calls; up to the schedule's own number
  std::string spacing =
      "even";  // even, "power:P" (denser at low noise for P > 1), or guided-diffusion's notation
  std::string variance = "auto";  // ddpm: auto, learned, small, large
  double eta = 0.0;               // ddim: 0 deterministic to 1
  int height = 0, width = 0;      // 0: the prior's own size
};
void validate(const SampleOptions& options);

// What an observer is told after each network call.
struct StepRecord {
  int done = 0, total = 0;  // steps
  int t = 0;                // the time step just denoised
  Tensor x0;                // the current estimate of the clean images
};
enum class Next { go_on, stop };
using Observer = std::function<Next(const StepRecord&)>;

// The schedule with options.steps steps, spaced as asked.
Schedule spaced_schedule(const Schedule& full, const std::string& spacing, int steps);

// [images.size(), C, H, W]. Image i depends on (rng, images[i], options) alone. When the observer stops the
// run, the last estimate of x0 is returned.
Tensor sample(const Prior& prior, const SampleOptions& options, const Rng& rng,
              std::span<const std::uint32_t> images, const Observer& observer = {});

}  // namespace dpg
