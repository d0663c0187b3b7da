// The reverse diffusion as one loop: unconditional samples without a guide, a posterior's samples with one.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>

#include "dpg/core/rng.h"
#include "dpg/prior/prior.h"

namespace dpg {

struct SamplerOptions {
  std::string sampler = "ddpm";  // ddpm or ddim
  int steps = 100;               // network calls; up to the schedule's own number
  std::string spacing =
      "even";  // even, "power:P" (denser at low noise for P > 1), or guided-diffusion's notation
  std::string variance = "auto";  // ddpm: auto, learned, small, large
  double eta = 0.0;               // ddim: 0 deterministic to 1
  double second_order = 0;        // 0 to 1: how much of second_order.h
};
void validate(const SamplerOptions& options);

struct SampleOptions : SamplerOptions {
  int height = 0, width = 0;  // 0: the prior's own size
};
void validate(const SampleOptions& options);

// What an observer is told after each network call.
struct StepRecord {
  int done = 0, total = 0;  // steps
  int t = 0;                // the time step just denoised
  Tensor x0;                // the current estimate of the clean images
  Tensor residual;          // [N], what a guide measured; undefined without one
};
enum class Next { go_on, stop };
using Observer = std::function<Next(const StepRecord&)>;

// One step as a guide sees it, before x moves on.
struct ReverseStep {
  const Schedule& schedule;
  int i;  // index in the spaced schedule; 0 is the last step
  const Tensor& x_t;
  const Denoised& denoised;
  // How far x_{i-1} moves when the noise estimate grows by one: adding d to eps moves x_{i-1} by
  // noise_coefficient * d. Negative.
  double noise_coefficient;
  Tensor noise = {};  // what x_{i-1} gets of fresh noise, to scale; undefined: none
};

// What a guide answers.
struct Guidance {
  Tensor move;      // added to x_{i-1}; undefined: none
  Tensor residual;  // [N] for the observer; may be undefined
};

// Steers the loop. Holds the state of one run of one batch, so it is made anew for each.
class Guide {
 public:
  virtual ~Guide() = default;
  virtual Track track(int) const { return Track::gradient; }  // whether step i needs pull_back
  virtual Guidance at(const ReverseStep& step) = 0;
  // Whether `at` leaves everything to the GPU, if the prior is there: never waits for it, never looks at a
  // value. The whole step can then be one launch.
  virtual bool stays_on_gpu() const { return false; }
};

// The schedule with options.steps steps, spaced as asked.
Schedule spaced_schedule(const Schedule& full, const std::string& spacing, int steps);

struct ReverseRun {
  Tensor x;  // [N, C, H, W]
  int network_calls = 0;
  bool stopped = false;  // by the observer; x then is the last estimate of the clean images
};
// From noise to pictures of `height` x `width`. Image i depends on (rng, images[i], options, guide) alone.
ReverseRun run_reverse(const Prior& prior, const SamplerOptions& options, const Rng& rng,
                       std::span<const std::uint32_t> images, int height, int width, Guide* guide = nullptr,
                       const Observer& observer = {});

// Unconditional samples, [images.size(), C, H, W].
Tensor sample(const Prior& prior, const SampleOptions& options, const Rng& rng,
              std::span<const std::uint32_t> images, const Observer& observer = {});

}  // namespace dpg
