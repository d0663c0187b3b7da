#include "dpg/solve/dpg.h"

#include <torch/torch.h>

#include <cmath>
#include <limits>

#include "dpg/core/error.h"
#include "dpg/solve/coarse_noise.h"
#include "dpg/solve/method_entry.h"
#include "dpg/solve/posterior_mean.h"
#include "dpg/solve/step_length.h"
#include "dpg/tensor/convert.h"

namespace dpg {

template <class Visitor>
void fields(Visitor& visit, DpgOptions& o) {
  sampler_fields(visit, o.sampler);
  visit("estimator", o.estimator);
  visit("mc", o.mc);
  visit("pairs", o.pairs);
  visit("collapse", o.collapse);
  visit("strength", o.strength);
  visit("passes", o.passes);
  visit("relaxation", o.relaxation);
  visit("rewards", o.rewards);
  visit("smallest_r", o.smallest_r);
  visit("momentum", o.momentum);
  visit("unguided", o.unguided);
  visit("detail", o.detail);
  visit("guess", o.guess);
  visit("queries", o.queries);
}

namespace {

// Which estimator runs, once the problem is known.
enum class Estimator { exact, collapsed, streamed };

RewardRule rule_of(const DpgOptions& o) {
  return o.rewards == "text" ? RewardRule::text : RewardRule::code;
}

Estimator choose_estimator(const DpgOptions& o, const Measurement& m) {
  if (o.estimator == "exact" || (o.estimator == "auto" && !o.strength && as_differentiable(*m.A)))
    return Estimator::exact;
  // What the collapsed form assumes of the rewards, see policy_gradient.h.
  const bool linear_regime = rule_of(o) == RewardRule::code && o.smallest_r == 0;
  const bool fits = as_linear(*m.A) && m.noise->loss() == Loss::squared && o.detail != "coarse";
  const bool collapsed = o.collapse && o.pairs != "never" && linear_regime && fits;
  return collapsed ? Estimator::collapsed : Estimator::streamed;
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
  return std::min(o.passes, 2);
}

// Evaluations of A for one sample.
int evaluations(const DpgOptions& o, const Measurement& m) {
  return in_pairs(o, m) && !as_linear(*m.A) ? 2 : 1;
}

// Samples of one step when `queries` evaluations of A are dealt out: one to each step for A(mu), and of a
// guided step one to each step length where that is found, two to a guess, the rest to samples.
int samples_within(const DpgOptions& o, const Measurement& m, int steps, int guided_steps) {
  if (o.queries == 0) return o.mc;
  const int lengths = o.strength ? 0 : guesses(o, m) ? guessed_passes(o) : 1;
  const std::int64_t each =
      (o.queries - steps) / std::max(guided_steps, 1) - lengths - (guesses(o, m) ? 2 : 0);
  const std::int64_t samples = each / evaluations(o, m);
  check(samples >= 2, "queries = ", o.queries, " leaves fewer than two samples for each of ", guided_steps,
        " guided steps; allow more queries or take fewer steps");
  return static_cast<int>(samples);
}

// The loop body of Algorithm 1, and the state of one run.
class PolicyGuide : public Guide {
 public:
  PolicyGuide(const DpgOptions& options, const Measurement& m, const Rng& rng,
              std::span<const std::uint32_t> images, int unguided, int samples)
      : options_(options),
        m_(m),
        rng_(rng),
        images_(images),
        unguided_(unguided),
        samples_(samples),
        estimator_(choose_estimator(options, m)),
        noise_levels_(torch::tensor(noise_levels(m), torch::kFloat).to(m.y.device())) {}

  Track track(int i) const override { return i < unguided_ ? Track::nothing : Track::gradient; }

  Guidance at(const ReverseStep& step) override {
    const Tensor& mu = step.denoised.x0;
    const Tensor prediction = m_.A->apply(mu), residual = m_.y - prediction;
    ++operator_calls;
    Guidance guidance{{}, residual_norm(m_.y, prediction)};
    history.t.push_back(step.schedule.timestep(step.i));
    history.residual.push_back(guidance.residual);
    if (step.i < unguided_) return guidance;

    scale_ = next_scale(rule_of(options_), m_.noise->loss(), residual, m_.A->input_shape().elements(),
                        options_.smallest_r, scale_);
    const PolicyStep policy{*m_.A, *m_.noise, m_.y, mu, prediction, scale_};
    if (options_.strength) {
      const Tensor g = with_momentum(pull_back(policy, step), step);
      const Tensor norm = g.flatten(1).norm(2, {1}).clamp_min(1e-30).view({-1, 1, 1, 1});
      guidance.move = step.noise_coefficient * *options_.strength * g / norm;
    } else {
      // x0 is to move by c w; this is what that means for the noise estimate.
      const double abar = step.schedule.alpha_bar()[static_cast<std::size_t>(step.i)];
      const Tensor w = estimator_ == Estimator::exact ? towards_mean(policy, step, abar)
                       : guesses(options_, m_)        ? towards_guessed_mean(policy, step, abar)
                                                      : along_samples(policy, step, abar);
      guidance.move =
          -step.noise_coefficient * std::sqrt(1 - abar) * options_.relaxation * with_momentum(w, step);
    }
    return guidance;
  }

  History history;
  std::int64_t operator_calls = 0;
  int reverse_passes = 0;

 private:
  Tensor pull_back(const PolicyStep& p, const ReverseStep& step) {
    ++reverse_passes;
    return step.denoised.pull_back(policy_gradient(p, step));
  }

  // The move of x0, divided by c, to its mean given the data.
  Tensor towards_mean(const PolicyStep& p, const ReverseStep& step, double abar) {
    const DifferentiableOperator& A = *as_differentiable(*m_.A);
    return solve_mean(p, step, abar, options_.passes, [&](const Tensor& left) {
      ++operator_calls;
      return A.vjp(p.mu, left);
    });
  }

  // The same for a black box whose measurements are pictures: A^T of the residual is sampled, that of what
  // the first pass leaves over is guessed, to scale.
  Tensor towards_guessed_mean(const PolicyStep& p, const ReverseStep& step, double abar) {
    Tensor scale;  // of the guess, [N, 1, 1, 1]
    return solve_mean(p, step, abar, guessed_passes(options_), [&](const Tensor& left) {
      const Tensor guess = residual_as_picture(left, p.mu);
      if (scale.defined()) return scale * guess;
      const Tensor sampled = -policy_gradient(p, step) * reward_unit(left).view({-1, 1, 1, 1});
      const Tensor square = guess.square().sum({1, 2, 3}, true).clamp_min(1e-30);
      scale = (sampled * guess).sum({1, 2, 3}, true) / square;
      return sampled;
    });
  }

  template <class Adjoint>
  Tensor solve_mean(const PolicyStep& p, const ReverseStep& step, double abar, int passes, Adjoint adjoint) {
    const Tensor residual = p.y - p.prediction, variance = noise_variance(p.prediction);
    reverse_passes += passes;
    operator_calls += passes;  // slopes
    return posterior_mean_move(
        {*m_.A, adjoint, step.denoised, p.prediction, residual, variance, scale_.r, abar}, passes);
  }

  // The same, as far as the sampled direction leads there.
  Tensor along_samples(const PolicyStep& p, const ReverseStep& step, double abar) {
    const Tensor residual = p.y - p.prediction;
    const Tensor w = -pull_back(p, step) * reward_unit(residual).view({-1, 1, 1, 1});
    ++operator_calls;
    const SlopeProblem at{*m_.A, p.mu, p.prediction, scale_.r};
    return posterior_step_length({at, residual, noise_levels_}, w, abar).view({-1, 1, 1, 1}) * w;
  }

  // [N, 1, ...], beside the residual. (For Poisson noise a variance for each entry was tried: no better.)
  Tensor noise_variance(const Tensor& prediction) const {
    std::vector<std::int64_t> shape(static_cast<std::size_t>(prediction.dim()), 1);
    shape[0] = -1;
    return noise_levels_.square().view(shape);
  }

  Tensor policy_gradient(const PolicyStep& p, const ReverseStep& step) {
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
    return guessed_policy_gradient(p, samples_, in_pairs(options_, m_), noise,
                                   shape.channels * height * width);
  }

  // From the slope of the rewards to A^T e: p = exp(-loss / Z) has slope (2/Z) A^T e for a squared loss and
  // (1/Z) A^T sign(e) for an absolute one, where sign(e) stands for e / mean|e|. [N]
  Tensor reward_unit(const Tensor& residual) const {
    if (m_.noise->loss() == Loss::squared) return scale_.Z / 2;
    return scale_.Z * residual.flatten(1).abs().sum(1) / static_cast<double>(m_.A->measurements());
  }

  Tensor with_momentum(const Tensor& g, const ReverseStep& step) {
    if (options_.momentum == 0) return g;
    const double beta = options_.momentum * step.i / step.schedule.steps();
    last_g_ = last_g_.defined() ? beta * last_g_ + (1 - beta) * g : g;
    return last_g_;
  }

  const DpgOptions& options_;
  const Measurement& m_;
  const Rng& rng_;
  std::span<const std::uint32_t> images_;
  int unguided_, samples_;
  Estimator estimator_;
  Tensor noise_levels_;  // [N]
  RewardScale scale_;
  Tensor last_g_;
};

}  // namespace

void validate(const DpgOptions& o) {
  validate(o.sampler);
  check(o.estimator == "auto" || o.estimator == "mc" || o.estimator == "exact", "estimator \"", o.estimator,
        "\" is not one of auto, mc, exact");
  check(o.mc >= 2, "mc = ", o.mc, " must be at least 2");
  check(o.pairs == "auto" || o.pairs == "always" || o.pairs == "never", "pairs \"", o.pairs,
        "\" is not one of auto, always, never");
  check(!o.strength || *o.strength >= 0, "strength = ", o.strength.value_or(0), " must not be negative");
  check(o.passes >= 1, "passes = ", o.passes, " must be at least 1");
  check(o.relaxation > 0, "relaxation = ", o.relaxation, " must be positive");
  check(o.rewards == "code" || o.rewards == "text", "rewards \"", o.rewards, "\" is not one of code, text");
  check(o.smallest_r >= 0, "smallest_r = ", o.smallest_r, " must not be negative");
  check(o.momentum >= 0 && o.momentum < 1, "momentum = ", o.momentum, " must lie in [0, 1)");
  check(o.unguided >= -1, "unguided = ", o.unguided, " must be a number of steps, or -1");
  check(o.detail == "auto" || o.detail == "full" || o.detail == "coarse", "detail \"", o.detail,
        "\" is not one of auto, full, coarse");
  check(o.queries >= 0, "queries = ", o.queries, " must not be negative");
}

Dpg::Dpg(DpgOptions options) : options_(std::move(options)) {
  validate(options_);
}

void Dpg::check_problem(const Measurement& m) const {
  if (options_.estimator != "exact") return;  // sampling serves everything
  const bool fits = options_.strength ? as_linear(*m.A) != nullptr : as_differentiable(*m.A) != nullptr;
  check(fits, "the exact estimator needs ",
        options_.strength ? "a linear operator" : "an operator with a derivative", ", and \"", m.A->spec(),
        "\" is ", kind_name(*m.A), "; use --estimator mc, which needs no more than A itself");
}

Result Dpg::solve(const Measurement& measurement, const Prior& prior, const Rng& rng,
                  std::span<const std::uint32_t> images, const Observer& observer) const {
  check_problem(measurement);
  check_sizes(measurement, prior, images);
  const Measurement m = to_device(measurement, prior.device());
  const ImageShape shape = m.A->input_shape();
  const int unguided = options_.unguided >= 0               ? options_.unguided
                       : options_.sampler.sampler == "ddpm" ? 2
                                                            : 1;
  const int samples = samples_within(options_, m, options_.sampler.steps, options_.sampler.steps - unguided);

  PolicyGuide guide(options_, m, rng, images, unguided, samples);
  const ReverseRun run = run_reverse(prior, options_.sampler, rng, images, static_cast<int>(shape.height),
                                     static_cast<int>(shape.width), &guide, observer);
  const Cost cost{run.network_calls, guide.reverse_passes, guide.operator_calls};
  return {run.x.clamp(-1, 1), std::move(guide.history), cost, run.stopped};
}

MethodEntry dpg_entry() {
  return method_entry<Dpg, DpgOptions>(
      {"", "diffusion policy gradient: guidance from sampled rewards, or from their exact limit",
       "Tang et al., Solving General Noisy Inverse Problem via Posterior Sampling: A Policy Gradient "
       "Viewpoint",
       "black box"});
}

}  // namespace dpg
