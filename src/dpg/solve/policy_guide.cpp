#include "dpg/solve/policy_guide.h"

#include <torch/torch.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "dpg/core/error.h"
#include "dpg/sample/reverse_step.h"
#include "dpg/solve/answer.h"
#include "dpg/solve/coarse_noise.h"
#include "dpg/solve/late_noise.h"
#include "dpg/solve/posterior_mean.h"
#include "dpg/solve/step_length.h"
#include "dpg/tensor/convert.h"

namespace dpg {
namespace {

// A step is late along a direction of x0 when x_t leaves it less than this many times the variance that y's
// noise does (docs/methods/dpg.md).
constexpr double kLate = 4;

// How much of its energy a draw may lose on the way to the mean, and what is coarse, in pixels, where several
// draws have no such mean (docs/methods/dpg.md has others).
constexpr double kSmoothing = 0.065, kCoarseOfDraws = 2;

// Where noise depends on the light, an entry is trusted at most so many times as much as the mean one: that
// it is dark is only predicted, and noise there is not the only error (docs/methods/dpg.md has others).
constexpr double kMostTrust = 3;

// How much of a second-order step restores the detail that DDIM's steps and guessed directions lack
// (docs/methods/dpg.md has others).
constexpr double kSecondOrder = 0.5;

RewardRule rule_of(const DpgOptions& o) {
  return o.rewards == "text" ? RewardRule::text : RewardRule::code;
}

PolicyGuide::Estimator choose_estimator(const DpgOptions& o, const Measurement& m) {
  // Whoever counts evaluations of a non-linear A treats it as a black box.
  const bool derivative = as_linear(*m.A) || (as_differentiable(*m.A) && o.queries == 0);
  if (o.estimator == "exact" || (o.estimator == "auto" && !o.strength && derivative))
    return PolicyGuide::Estimator::exact;
  // What the collapsed form assumes of the rewards, see policy_gradient.h.
  const bool linear_regime = rule_of(o) == RewardRule::code && o.smallest_r == 0;
  const bool fits = as_linear(*m.A) && m.noise->loss() == Loss::squared && o.detail != "coarse";
  const bool collapsed = o.collapse && o.pairs != "never" && linear_regime && fits;
  return collapsed ? PolicyGuide::Estimator::collapsed : PolicyGuide::Estimator::streamed;
}

bool in_pairs(const DpgOptions& o, const Measurement& m) {
  return o.pairs == "always" || (o.pairs == "auto" && as_linear(*m.A));
}

bool guesses(const DpgOptions& o, const Measurement& m) {
  return o.guess && !as_linear(*m.A) && residual_is_a_picture(*m.A);
}

// Guessed directions serve for two passes: at a third they chase the steps of operators that round (3 bits,
// two faces, 1 to 3 passes: LPIPS 0.0345, 0.0309, 0.0387).
int guessed_passes(const DpgOptions& o) {
  return std::min(passes_of(o), 2);
}

// Evaluations of A for one sample.
int evaluations(const DpgOptions& o, const Measurement& m) {
  return in_pairs(o, m) && !as_linear(*m.A) ? 2 : 1;
}

// Last steps without guidance.
int unguided_steps(const DpgOptions& o) {
  if (o.unguided >= 0) return o.unguided;
  return o.sampler.sampler == "ddpm" ? 2 : 1;
}

// Samples of one step when `queries` evaluations of A are dealt out: one to each step for A(mu), and of a
// guided step one to each step length where that is found, two to a guess, the rest to samples.
int samples_within(const DpgOptions& o, const Measurement& m) {
  if (o.queries == 0) return o.mc;
  const std::int64_t queries = o.queries / o.draws;
  const int guided_steps = o.sampler.steps - unguided_steps(o);
  const int lengths = o.strength ? 0 : guesses(o, m) ? guessed_passes(o) : 1;
  const std::int64_t each =
      (queries - o.sampler.steps) / std::max(guided_steps, 1) - lengths - (guesses(o, m) ? 2 : 0);
  const std::int64_t samples = each / evaluations(o, m);
  check(samples >= 2, "queries = ", o.queries, " leaves fewer than two samples for each of ",
        guided_steps * o.draws, " guided steps; allow more queries or take fewer steps");
  return static_cast<int>(samples);
}

}  // namespace

PolicyGuide::PolicyGuide(const DpgOptions& options, const Measurement& m, const Rng& rng,
                         std::span<const std::uint32_t> images, Answer answer)
    : MeasuredGuide(m),
      options_(options),
      rng_(rng),
      images_(images),
      unguided_(unguided_steps(options)),
      samples_(samples_within(options, m)),
      estimator_(choose_estimator(options, m)),
      noise_levels_(noise_levels_tensor(m)),
      answer_(answer),
      smoothing_(0),
      mean_(as_linear(*m.A), over_pictures(noise_levels_.square())),
      keeps_to_floor_(false) {
  if (options.strength) return;
  const bool relaxed = options.relaxation > 1, led = estimator_ == Estimator::exact;
  smoothing_ = options.smoothing.value_or(relaxed && (led || guessed()) ? kSmoothing : 0);
  keeps_to_floor_ = options.floor > 0 && relaxed && led && as_linear(*m.A);
}

// Whether A^T is guessed: a black box whose measurements are pictures.
bool PolicyGuide::guessed() const {
  return estimator_ != Estimator::exact && guesses(options_, m_);
}

SamplerOptions PolicyGuide::sampler() const {
  SamplerOptions chosen = options_.sampler;
  const bool late = !options_.strength && (guessed() || (estimator_ == Estimator::exact && as_linear(*m_.A)));
  if (chosen.spacing == "auto") chosen.spacing = late ? "power:2" : "power:1.5";
  const bool lacks_detail = guessed() || (estimator_ == Estimator::exact && chosen.sampler == "ddim");
  const bool foresees = !options_.strength && options_.relaxation > 1 && lacks_detail;
  chosen.second_order = options_.second_order.value_or(foresees ? kSecondOrder : 0);
  return chosen;
}

// Linear operators are sums and products of tensors; others may run programs. The text's rule solves systems,
// and looks when to stop.
bool PolicyGuide::stays_on_gpu() const {
  return as_linear(*m_.A) && estimator_ != Estimator::streamed && rule_of(options_) == RewardRule::code;
}

Tensor PolicyGuide::move(const ReverseStep& step, const Tensor& prediction, const Tensor& e) {
  if (step.i < unguided_) return {};
  scale_ = next_scale(rule_of(options_), m_.noise->loss(), e, m_.A->input_shape().elements(),
                      options_.smallest_r, scale_);
  const PolicyStep policy{*m_.A, *m_.noise, m_.y, step.denoised.x0, prediction, scale_};
  if (options_.strength) return by_strength(policy, step);
  const double abar = step.schedule.alpha_bar()[static_cast<std::size_t>(step.i)];
  const bool keeps_mean = smoothing_ > 0 && mean_.asks_for(abar);
  const Tensor w = estimator_ == Estimator::exact ? towards_mean(policy, step, abar, keeps_mean)
                   : guessed()                    ? towards_guessed_mean(policy, step, abar)
                                                  : along_samples(policy, step, abar);
  if (keeps_mean) {
    operator_calls += mean_.calls();
    mean_.add(step.denoised.x0 + (1 - abar) / std::sqrt(abar) * w, abar, weights(policy));
  }
  // x0 moves by c w; this is what that means for the noise estimate.
  return -step.noise_coefficient * std::sqrt(1 - abar) * options_.relaxation * with_momentum(w, step);
}

// A mean is nearer to the truth than a draw and has less detail, so the draw goes there where that costs
// little of it. And a relaxed draw lies nearer to y than the truth does, which helps on the way and not in
// the answer (docs/methods/dpg.md).
Tensor PolicyGuide::finish(const Tensor& x) {
  const bool has_mean = mean_.value().defined();
  const Tensor mean = has_mean ? mean_.value().clamp(-1, 1) : x;
  if (answer_ == Answer::near_to) return mean;
  const Tensor near_to = others_.defined() ? (others_ + mean) / (other_draws_ + 1) : mean;
  const Tensor floors = noise_levels_ * std::sqrt(static_cast<double>(m_.A->measurements()));
  Tensor answer = x;
  if (has_mean) {
    Tensor way = way_to_mean(answer, near_to, smoothing_);
    if (keeps_to_floor_) {
      way = share_within_floor(*as_linear(*m_.A), m_.y, floors, answer, way) * way;
      operator_calls += 2;
    }
    answer = answer + way;
  } else if (others_.defined()) {
    answer = answer + coarse_part(near_to - answer, kCoarseOfDraws);
  }
  if (!keeps_to_floor_) return answer;
  operator_calls += raised_to_floor_calls();
  return raised_to_floor(*as_linear(*m_.A), m_.y, options_.floor * floors, answer);
}

Tensor PolicyGuide::by_strength(const PolicyStep& p, const ReverseStep& step) {
  const Tensor g = with_momentum(step.denoised.pull_back(policy_gradient(p, step)), step);
  const Tensor norm = over_pictures(g.flatten(1).norm(2, {1}).clamp_min(1e-30));
  return step.noise_coefficient * *options_.strength * g / norm;
}

// The move to the mean given the data.
Tensor PolicyGuide::towards_mean(const PolicyStep& p, const ReverseStep& step, double abar, bool keeps_mean) {
  const DifferentiableOperator& A = *as_differentiable(*m_.A);
  const Tensor trust = weights(p);
  return solve_mean(p, residual_with_noise(p, step, abar, trust, keeps_mean), step, abar, passes_of(options_),
                    trust, [&](const Tensor& left) {
                      ++operator_calls;
                      return A.vjp(p.mu, left);
                    });
}

// y - A(mu), with a part of the fresh noise in mu where the step is late. Over-relaxed draws have too much
// energy where the data say something and no longer everything: they follow y's noise, and the fresh noise
// comes on top. So what the data say of that noise is taken away with the rest, by the same passes; where
// they say nothing it stays as it is. Nothing changes for a relaxation of 1, or a non-linear A; and nothing
// is taken away at a step whose mean is kept, or it would not be one.
Tensor PolicyGuide::residual_with_noise(const PolicyStep& p, const ReverseStep& step, double abar,
                                        const Tensor& trust, bool keeps_mean) {
  const Tensor residual = p.y - p.prediction;
  const double c = (1 - abar) / std::sqrt(abar), share = options_.relaxation - 1;
  const LinearOperator* A = as_linear(*m_.A);
  if (!A || share <= 0 || !step.noise.defined()) return residual;
  operator_calls += 1 + late_part_calls();
  const Tensor late = late_part(*A, A->apply(step.noise), kLate * noise_variance(residual) / c, trust);
  const double follows_x0 = x0_coefficient(step.schedule, step.i, step.noise_coefficient);
  if (!keeps_mean) return residual - share / follows_x0 * late;
  return residual - share / follows_x0 * over_rows(1 - mean_.still_open(abar), late) * late;
}

// The same for a black box whose measurements are pictures: A^T of the residual is sampled, that of what the
// first pass leaves over is guessed, to scale.
Tensor PolicyGuide::towards_guessed_mean(const PolicyStep& p, const ReverseStep& step, double abar) {
  Tensor scale;  // of the guess, [N, 1, 1, 1]
  return solve_mean(p, p.y - p.prediction, step, abar, guessed_passes(options_), {}, [&](const Tensor& left) {
    const Tensor guess = residual_as_picture(left, p.mu);
    if (scale.defined()) return scale * guess;
    const Tensor sampled = -policy_gradient(p, step) * over_pictures(reward_unit(left));
    const Tensor square = guess.square().sum({1, 2, 3}, true).clamp_min(1e-30);
    scale = (sampled * guess).sum({1, 2, 3}, true) / square;
    return sampled;
  });
}

template <class Adjoint>
Tensor PolicyGuide::solve_mean(const PolicyStep& p, const Tensor& residual, const ReverseStep& step,
                               double abar, int passes, const Tensor& weights, Adjoint adjoint) {
  const Tensor variance = noise_variance(p.prediction);
  reverse_passes += passes - 1;  // the first is counted with the move
  operator_calls += passes;      // slopes
  return posterior_mean_move(
      {*m_.A, adjoint, step.denoised, p.prediction, residual, variance, weights, scale_.r, abar}, passes);
}

// The same, as far as the sampled direction leads there.
Tensor PolicyGuide::along_samples(const PolicyStep& p, const ReverseStep& step, double abar) {
  const Tensor residual = p.y - p.prediction;
  const Tensor v = -policy_gradient(p, step) * over_pictures(reward_unit(residual));
  const Tensor w = step.denoised.pull_back(v);
  ++operator_calls;
  const SlopeProblem at{*m_.A, p.mu, p.prediction, scale_.r};
  return over_pictures(posterior_step_length({at, residual, noise_levels_}, w, abar)) * w;
}

Tensor PolicyGuide::policy_gradient(const PolicyStep& p, const ReverseStep& step) {
  const ImageShape shape = m_.A->input_shape();
  const auto index = static_cast<std::uint32_t>(step.i);
  const torch::Device device = p.mu.device();
  if (estimator_ != Estimator::streamed) ++operator_calls;  // the adjoint
  switch (estimator_) {
    case Estimator::exact:
      // The authors' constants mean lambda = 2 d, so far above A^T A that only A^T e is left.
      return exact_policy_gradient(
          p, rule_of(options_) == RewardRule::text ? 0.5 : std::numeric_limits<double>::infinity());
    case Estimator::collapsed: {
      const Tensor across = normal_noise(rng_, images_, index, 1, p.mu.sizes().slice(1), device);
      const Tensor along = normal_noise(rng_, images_, index, 2, {samples_}, device);
      return collapsed_policy_gradient(p, along, across);
    }
    case Estimator::streamed:
      break;
  }
  operator_calls += samples_ * evaluations(options_, m_);
  const bool coarse = options_.detail == "coarse" || (options_.detail == "auto" && !as_linear(*m_.A));
  const std::int64_t height = coarse ? coarse_side(shape.height) : shape.height;
  const std::int64_t width = coarse ? coarse_side(shape.width) : shape.width;
  const NoiseSource noise = [&](std::int64_t first, std::int64_t count) {
    return coarse_samples(rng_, images_, index, static_cast<std::uint32_t>(1 + first), count, shape, height,
                          width, device);
  };
  if (!guesses(options_, m_)) return streamed_policy_gradient(p, samples_, in_pairs(options_, m_), noise);
  operator_calls += 2;
  return guessed_policy_gradient(p, samples_, in_pairs(options_, m_), noise, shape.channels * height * width);
}

// From the slope of the rewards to A^T e: p = exp(-loss / Z) has slope (2/Z) A^T e for a squared loss and
// (1/Z) A^T sign(e) for an absolute one, where sign(e) stands for e / mean|e|. [N]
Tensor PolicyGuide::reward_unit(const Tensor& residual) const {
  if (m_.noise->loss() == Loss::squared) return scale_.Z / 2;
  return scale_.Z * residual.flatten(1).abs().sum(1) / static_cast<double>(m_.A->measurements());
}

// Its mean over the entries, [N, 1, ...], beside the residual.
Tensor PolicyGuide::noise_variance(const Tensor& prediction) const {
  return over_rows(noise_levels_.square(), prediction);
}

// How much more each entry of y is to be trusted than the mean one; undefined: all alike. Noise that depends
// on the light is known from the light that mu predicts.
Tensor PolicyGuide::weights(const PolicyStep& p) const {
  const Tensor variances = m_.noise->variances(p.prediction);
  if (!variances.defined()) return {};
  return (noise_variance(p.prediction) / variances).clamp_max(kMostTrust);
}

Tensor PolicyGuide::with_momentum(const Tensor& g, const ReverseStep& step) {
  if (options_.momentum == 0) return g;
  const double beta = options_.momentum * step.i / step.schedule.steps();
  last_g_ = last_g_.defined() ? beta * last_g_ + (1 - beta) * g : g;
  return last_g_;
}

}  // namespace dpg
