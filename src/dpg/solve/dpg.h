// Diffusion Policy Gradient (Tang et al.; Algorithm 1 of the paper): noisy images are policies, clean images
// are states, and the guidance is a policy gradient. It needs no derivative of A.
// docs/methods/dpg.md goes from equation to code.
#pragma once

#include <memory>
#include <optional>

#include "dpg/solve/policy_gradient.h"
#include "dpg/solve/solver.h"

namespace dpg {

struct DpgOptions {
  // spacing auto, without a strength: power:2 for a linear A and for black boxes whose measurements are
  // pictures; otherwise power:1.5.
  SamplerOptions sampler = {.sampler = "ddpm", .steps = 100, .spacing = "auto"};
  // mc: sampled. exact: the limit of many samples, for operators whose derivative is known; with a strength,
  // for linear ones. auto: exact where that is possible, unless a strength is given: the B of the literature
  // belongs to the sampled one.
  std::string estimator = "auto";
  int mc = 500;  // samples drawn at each step
  // Each sample with both signs, so that even parts of the reward cancel. auto: for linear operators, where
  // the second sign costs nothing; always; never.
  std::string pairs = "auto";
  // Linear operators: draw the sum of all samples at once, equal in law, instead of the samples one by one.
  bool collapse = true;
  // B: the norm of the guidance beside the noise estimate. None: found at each step from the residual.
  std::optional<double> strength;
  // Without a strength: reverse passes of the network in one step (posterior_mean.h); where A^T is guessed,
  // at most two; where it is only sampled, one. auto: 3, in runs of 200 steps or more 2.
  std::optional<int> passes;
  // Without a strength: the move towards the data is this many times that of the posterior mean. 1 draws from
  // the posterior, residual on the noise floor; more trusts the data more, for a linear A also about the
  // noise of late steps, and is nearer to the truth in PSNR and LPIPS (docs/methods/dpg.md).
  double relaxation = 1.7;
  // Without a strength: the answer lies between the draw and the mean of x0 given y, as far towards it as
  // costs at most about this part of the draw's energy, at each scale but the finest and each place. auto:
  // 0.065; 0 (the draw itself) where directions are only sampled, or a relaxation of 1 asks for draws.
  std::optional<double> smoothing;
  // Without a strength, for a linear A and a relaxation above 1: an answer whose residual lies below this
  // part of the noise floor is moved until it is there, and the way to the mean ends where the residual
  // would rise above the floor. Relaxed draws lie nearer to y than the truth does. 0: the residual is left
  // alone.
  double floor = 0.97;
  // Runs, one after the other. The mean that the answer lies towards is that of all of them (without
  // smoothing: what is coarse in the answer is the mean of all draws), the rest is the last one's: nearer to
  // the truth for as many times the work.
  int draws = 1;
  // How much of a second-order step (sample/second_order.h). auto: without a strength 0.5 for DDIM steps and
  // for black boxes whose measurements are pictures, where a relaxation above 1 asks for the nearest picture
  // and not for draws; otherwise 0.
  std::optional<double> second_order;
  std::string rewards = "code";  // Z and r by the authors' program, or by the paper's text
  double smallest_r = 0;         // r is at least this
  double momentum = 0;           // beta: g <- beta t/T g_previous + (1 - beta t/T) g
  int unguided = -1;  // last steps without guidance; -1: as the authors' program, 2 for DDPM and 1 for DDIM
  // The grid on which samples are drawn: full, the picture's own; coarse, a quarter of it on each side; auto:
  // coarse for operators that are not linear.
  std::string detail = "auto";
  // Black boxes: measure the slope along the residual itself, and sample only the rest.
  bool guess = true;
  // Evaluations of A for the answer, dealt out evenly; 0: mc samples at every step.
  std::int64_t queries = 0;
};
void validate(const DpgOptions& options);
int passes_of(const DpgOptions& options);

class Dpg : public Solver {
 public:
  static constexpr const char* kName = "dpg";
  explicit Dpg(DpgOptions options);
  std::string name() const override { return kName; }
  void check_problem(const Measurement& measurement) const override;
  Result solve(const Measurement& measurement, const Prior& prior, const Rng& rng,
               std::span<const std::uint32_t> images, const Observer& observer = {}) const override;

 private:
  DpgOptions options_;
};

}  // namespace dpg
