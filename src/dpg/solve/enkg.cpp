#include "dpg/solve/enkg.h"

#include <torch/torch.h>

#include <algorithm>

#include "dpg/core/error.h"
#include "dpg/sample/reverse_step.h"
#include "dpg/solve/method_entry.h"
#include "dpg/tensor/convert.h"

namespace dpg {

template <class Visitor>
void fields(Visitor& visit, EnkgOptions& o) {
  visit("steps", o.steps);
  visit("spacing", o.spacing);
  visit("particles", o.particles);
  visit("scale", o.scale);
  visit("updates", o.updates);
  visit("ode_steps", o.ode_steps);
  visit("skip", o.skip);
  visit("answer", o.answer);
  visit("chunk", o.chunk);
}

namespace {

// The prior on many rows, a few at a time.
class ChunkedPrior {
 public:
  ChunkedPrior(const Prior& prior, int chunk) : prior_(prior), chunk_(chunk) {}

  Denoised denoise(const Tensor& x, int t) {
    std::vector<Tensor> parts;
    for (const Tensor& part : x.split(chunk_)) parts.push_back(prior_.denoise(part, t, Track::nothing).x0);
    rows += x.size(0);
    Denoised whole;
    whole.x0 = torch::cat(parts);  // all that a step of the ODE asks for
    return whole;
  }

  std::int64_t rows = 0;  // denoised so far

 private:
  const Prior& prior_;
  int chunk_;
};

// Where the ODE leads from x at step i, in `calls` network calls; with one it is the denoised picture.
Tensor clean_pictures(ChunkedPrior& prior, const Schedule& schedule, int i, Tensor x, int calls) {
  std::vector<int> indices;
  for (int k = 0; k < calls; ++k) indices.push_back(calls == 1 ? i : i * k / (calls - 1));
  const Schedule ahead = schedule.keep(indices);
  for (int k = calls - 1; k >= 0; --k)
    x = ddim_step(ahead, k, x, prior.denoise(x, ahead.timestep(k)), /*eta=*/0, {});
  return x;
}

// Network calls of the ODE from step i: fewer where less is left.
int ode_calls(const EnkgOptions& o, int i) {
  return std::min(1 + i / 4, o.ode_steps);
}

}  // namespace

Tensor kalman_correction(const Tensor& particles, const Tensor& outputs, const Tensor& y, double scale) {
  const std::int64_t images = y.size(0), count = particles.size(0) / images;
  // [N, J, values]: one matrix for each image.
  const auto by_image = [&](const Tensor& rows) {
    return rows.unflatten(0, {count, images}).transpose(0, 1).flatten(2);
  };
  const Tensor x = by_image(particles), predicted = by_image(outputs);
  const Tensor error = predicted - y.flatten(1).unsqueeze(1);
  const Tensor x_spread = x - x.mean(1, true), y_spread = predicted - predicted.mean(1, true);
  const Tensor C = error.matmul(y_spread.transpose(1, 2)) / static_cast<double>(count);  // [N, J, J]
  const Tensor s = scale / C.flatten(1).norm(2, {1}).clamp_min(1e-30);
  const Tensor moved = x - s.view({-1, 1, 1}) * C.matmul(x_spread);
  return moved.transpose(0, 1).reshape(particles.sizes());
}

void validate(const EnkgOptions& o) {
  check(o.steps >= 1, "steps = ", o.steps, " must be at least 1");
  check(o.particles >= 2, "particles = ", o.particles, " must be at least 2");
  check(o.scale >= 0, "scale = ", o.scale, " must not be negative");
  check(o.updates >= 0, "updates = ", o.updates, " must not be negative");
  check(o.ode_steps >= 1, "ode_steps = ", o.ode_steps, " must be at least 1");
  check(o.skip >= 0 && o.skip <= 0.5, "skip = ", o.skip, " must lie in [0, 0.5]");
  check(o.answer == "mean" || o.answer == "first", "answer \"", o.answer, "\" is not one of mean, first");
  check(o.chunk >= 1, "chunk = ", o.chunk, " must be at least 1");
}

std::int64_t network_calls(const EnkgOptions& o) {
  const double skipped = o.skip * o.steps;
  std::int64_t calls = 0;
  for (int i = o.steps - 1; i >= 0; --i)
    calls += 1 + (o.steps - 1 - i >= skipped && i >= skipped ? o.updates * ode_calls(o, i) : 0);
  return calls * o.particles;
}

Enkg::Enkg(EnkgOptions options) : options_(std::move(options)) {
  validate(options_);
}

Result Enkg::solve(const Measurement& measurement, const Prior& prior, const Rng& rng,
                   std::span<const std::uint32_t> images, const Observer& observer) const {
  check_sizes(measurement, prior, images);
  const Measurement m = to_device(measurement, prior.device());
  const ImageShape shape = m.A->input_shape();
  const auto rows = static_cast<std::int64_t>(images.size());
  const Schedule schedule = spaced_schedule(prior.schedule(), options_.spacing, options_.steps);
  const double skipped = options_.skip * schedule.steps();
  const auto answer = [&](const Tensor& particles) {
    const Tensor by_particle = particles.unflatten(0, {options_.particles, rows});
    return options_.answer == "first" ? by_particle.select(0, 0) : by_particle.mean(0);
  };

  Result result;
  ChunkedPrior chunked(prior, options_.chunk);
  Tensor x = normal_samples(rng, images, kBeforeFirstStep, kSamplerNoise, options_.particles,
                            {shape.channels, shape.height, shape.width}, prior.device());
  for (int i = schedule.steps() - 1; i >= 0; --i) {
    const int done = schedule.steps() - 1 - i;
    if (done >= skipped && i >= skipped)
      for (int update = 0; update < options_.updates; ++update) {
        const Tensor outputs = m.A->apply(clean_pictures(chunked, schedule, i, x, ode_calls(options_, i)));
        x = kalman_correction(x, outputs, m.y, options_.scale);
        result.cost.operator_calls += options_.particles;
      }
    const Denoised denoised = chunked.denoise(x, schedule.timestep(i));
    x = ddim_step(schedule, i, x, denoised, /*eta=*/0, {});

    const Tensor current = answer(denoised.x0);
    result.history.t.push_back(schedule.timestep(i));
    result.history.residual.push_back(residual_norm(m.y, m.A->apply(current)));
    ++result.cost.operator_calls;
    result.cost.network_calls = static_cast<int>(chunked.rows / rows);
    const StepRecord record{done + 1, schedule.steps(), schedule.timestep(i), current,
                            result.history.residual.back()};
    if (observer && observer(record) == Next::stop) {
      result.image = current.clamp(-1, 1);
      result.stopped = true;
      return result;
    }
  }
  result.image = answer(x).clamp(-1, 1);
  return result;
}

MethodEntry enkg_entry() {
  return method_entry<Enkg, EnkgOptions>(
      {"", "ensemble Kalman diffusion guidance: an ensemble moved by its own covariance with A's outputs",
       "Zheng et al., Ensemble Kalman diffusion guidance: a derivative-free method for inverse problems, "
       "2024",
       "black box"});
}

}  // namespace dpg
