#include "dpg/sample/sample.h"

#include <torch/torch.h>

#include "dpg/core/error.h"
#include "dpg/sample/reverse_step.h"
#include "dpg/sample/second_order.h"
#include "dpg/tensor/convert.h"
#ifdef DPG_CUDA
#include "dpg/prior/step_recording.h"
#endif

namespace dpg {
namespace {

// The first steps set up what libraries need and record the network: they are run as they come.
constexpr int kFirstSteps = 2;

void run_step(torch::Device device, bool as_one_launch, const std::function<void()>& step) {
#ifdef DPG_CUDA
  if (as_one_launch && device.is_cuda() && whole_step_launches()) return run_as_one_launch(device, step);
#endif
  (void)device, (void)as_one_launch;
  step();
}

}  // namespace

void validate(const SamplerOptions& o) {
  check(o.sampler == "ddpm" || o.sampler == "ddim", "sampler \"", o.sampler, "\" is not one of ddpm, ddim");
  check(o.steps >= 1, "steps = ", o.steps, " must be at least 1");
  check(o.eta >= 0 && o.eta <= 1, "eta = ", o.eta, " must lie in [0, 1]");
  check(o.second_order >= 0 && o.second_order <= 1, "second_order = ", o.second_order, " must lie in [0, 1]");
}

void validate(const SampleOptions& o) {
  validate(static_cast<const SamplerOptions&>(o));
  check(o.height >= 0 && o.width >= 0, "the size ", o.width, "x", o.height, " must not be negative");
}

Schedule spaced_schedule(const Schedule& full, const std::string& spacing, int steps) {
  check(steps >= 1 && steps <= full.steps(), "steps = ", steps, " must lie in 1 to ", full.steps());
  if (spacing == "even") return full.respace(std::to_string(steps));
  if (spacing.rfind("power:", 0) != 0) return full.respace(spacing);
  const std::string number = spacing.substr(6);
  std::size_t used = 0;
  double power = 0;
  try {
    power = std::stod(number, &used);
  } catch (const std::logic_error&) {
    used = 0;
  }
  check(used == number.size() && used > 0 && power > 0, "spacing \"", spacing,
        "\": after power: comes a positive number, e.g. power:1.5");
  return full.respace_power(steps, power);
}

ReverseRun run_reverse(const Prior& prior, const SamplerOptions& options, const Rng& rng,
                       std::span<const std::uint32_t> images, int height, int width, Guide* guide,
                       const Observer& observer) {
  validate(options);
  const Schedule schedule = spaced_schedule(prior.schedule(), options.spacing, options.steps);
  const auto noise_at = [&](std::uint32_t step) {
    return normal_noise(rng, images, step, kSamplerNoise, {prior.channels(), height, width}, prior.device());
  };
  const bool ancestral = options.sampler == "ddpm";
  const auto scale_of_noise = [&](int i, const Denoised& denoised) {
    if (!ancestral) return torch::full({}, ddim_sigma(schedule, i, options.eta), denoised.x0.options());
    const auto variance = choose_variance(options.variance, denoised.variance_fraction.defined());
    return torch::exp(0.5 * reverse_log_variance(schedule, i, denoised, variance));
  };

  SecondOrder second_order(options.second_order);
  Tensor x = noise_at(kBeforeFirstStep);
  for (int i = schedule.steps() - 1; i >= 0; --i) {
    const Track track = guide ? guide->track(i) : Track::nothing;
    Denoised denoised;
    Guidance guidance;
    const auto step = [&] {
      denoised = prior.denoise(x, schedule.timestep(i), track);
      Tensor noise;
      if (i > 0 && (ancestral || options.eta > 0))
        noise = scale_of_noise(i, denoised) * noise_at(static_cast<std::uint32_t>(i));
      const double coefficient =
          ancestral ? ddpm_noise_coefficient(schedule, i) : ddim_noise_coefficient(schedule, i, options.eta);
      if (guide) guidance = guide->at({schedule, i, x, denoised, coefficient, noise});
      Tensor more;
      if (options.second_order > 0) {
        const double follows_x0 = x0_coefficient(schedule, i, coefficient);
        Tensor x0 = denoised.x0;
        if (guidance.move.defined()) x0 = x0 + guidance.move / follows_x0;
        more = second_order.beyond(schedule, i, x0);
        if (more.defined()) more = follows_x0 * more;
      }
      x = ancestral ? ddpm_mean(schedule, i, x, denoised) : ddim_mean(schedule, i, x, denoised, options.eta);
      if (noise.defined()) x = x + noise;
      if (guidance.move.defined()) x = x + guidance.move;
      if (more.defined()) x = x + more;
    };
    const bool settled = schedule.steps() - 1 - i >= kFirstSteps && track == Track::gradient;
    run_step(x.device(), settled && guide->stays_on_gpu(), step);
    const int done = schedule.steps() - i;
    const StepRecord record{done, schedule.steps(), schedule.timestep(i), denoised.x0, guidance.residual};
    if (observer && observer(record) == Next::stop) return {denoised.x0, done, true};
  }
  check_finite(x, "the sampler's result");  // a NaN at any step is one here
  return {x, schedule.steps(), false};
}

Tensor sample(const Prior& prior, const SampleOptions& options, const Rng& rng,
              std::span<const std::uint32_t> images, const Observer& observer) {
  validate(options);
  const int height = options.height > 0 ? options.height : prior.image_size();
  const int width = options.width > 0 ? options.width : prior.image_size();
  return run_reverse(prior, options, rng, images, height, width, nullptr, observer).x;
}

}  // namespace dpg
