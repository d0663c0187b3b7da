#include "dpg/solve/policy_gradient.h"

#include <torch/torch.h>

#include <algorithm>
#include <cmath>

#include "dpg/core/error.h"
#include "dpg/solve/coarse_noise.h"

namespace dpg {
namespace {

constexpr double kSmoothing = 0.9;  // of Z, in the authors' program
constexpr double kTiny = 1e-30;     // keeps 0 / 0 of a perfect fit at 0

// [N] against [N, C, H, W].
Tensor as_images(const Tensor& per_image) {
  return per_image.view({-1, 1, 1, 1});
}

// Samples whose values fit into about this many numbers are handled at once: enough to fill a GPU, little
// enough for a processor's memory not to matter.
std::int64_t samples_at_once(const Tensor& mu) {
  const std::int64_t values = mu.is_cuda() ? 16 << 20 : 2 << 20;
  return std::max<std::int64_t>(1, values / mu.numel());
}

// sum_k q_k xi_k, sum_k q_k and sum_k xi_k, with q_k = (p_k - reference) / exp(shift). A common factor of the
// rewards does not change the direction and a common term not the shaped gradient, so both are chosen such
// that nothing over- or underflows and that what is added up is small.
class RewardSums {
 public:
  // log_reward: [k, N]; xi: [k * N, C, H, W].
  void add(const Tensor& log_reward, const Tensor& xi) {
    const Tensor q = shifted(log_reward, xi);
    add_weighted(q, xi);
    plain_ = plain_ + xi.view({q.size(0), q.size(1), -1}).sum(0).view_as(plain_);
    total_ = total_ + q.sum(0);
  }

  // The same for xi and -xi together: the plain sum stays as it is.
  void add_pairs(const Tensor& log_plus, const Tensor& log_minus, const Tensor& xi) {
    const std::int64_t k = log_plus.size(0);
    const Tensor q = shifted(torch::cat({log_plus, log_minus}), xi);
    add_weighted(q.slice(0, 0, k) - q.slice(0, k), xi);
    total_ = total_ + q.sum(0);
  }

  // Of the rewards' logarithms over the samples: r^2 times the squared length of their slope, for white
  // noise.
  Tensor log_variance(std::int64_t samples) const {
    const auto count = static_cast<double>(samples);
    return ((log_squares_ - log_sum_.square() / count) / (count - 1)).clamp_min(0);
  }

  // sum_k (p_k - b_k) xi_k / N of N samples, b_k the mean of the others.
  Tensor shaped(std::int64_t samples) const {
    const auto count = static_cast<double>(samples);
    const Tensor sum = count * weighted_ - as_images(total_) * plain_;
    return sum * as_images(unshifted()) / (count * (count - 1));
  }

 private:
  // q of these rewards, [k, N]; what was summed before is brought to a common shift with them.
  Tensor shifted(const Tensor& log_reward, const Tensor& xi) {
    const Tensor highest = std::get<0>(log_reward.max(0));
    if (!shift_.defined()) {
      shift_ = highest;
      reference_ = (log_reward - shift_).exp().mean(0);
      weighted_ = torch::zeros_like(xi.slice(0, 0, log_reward.size(1)));
      plain_ = torch::zeros_like(weighted_);
      total_ = torch::zeros_like(shift_);
      log_sum_ = torch::zeros_like(shift_);
      log_squares_ = torch::zeros_like(shift_);
    }
    const Tensor higher = torch::maximum(shift_, highest), factor = (shift_ - higher).exp();
    shift_ = higher;
    reference_ = reference_ * factor;
    weighted_ = weighted_ * as_images(factor);
    total_ = total_ * factor;
    log_sum_ = log_sum_ + log_reward.sum(0);
    log_squares_ = log_squares_ + log_reward.square().sum(0);
    return (log_reward - shift_).exp() - reference_;
  }

  // [N, 1, k] x [N, k, d]
  void add_weighted(const Tensor& weights, const Tensor& xi) {
    const Tensor by_image = xi.view({weights.size(0), weights.size(1), -1}).transpose(0, 1);
    weighted_ = weighted_ + torch::bmm(weights.t().unsqueeze(1), by_image).view_as(weighted_);
  }

  // exp(shift), where the gradient's squares still fit into a float: only then do those of two steps compare.
  Tensor unshifted() const { return shift_.clamp(-20, 20).exp(); }

  Tensor weighted_, plain_;           // [N, C, H, W]
  Tensor total_, shift_, reference_;  // [N]
  Tensor log_sum_, log_squares_;      // [N]
};

// [k * N, ...] as [k, N, ...]: what belongs to the images then stands for all k samples of each.
Tensor by_sample(const Tensor& rows, std::int64_t images) {
  return rows.unflatten(0, torch::IntArrayRef{-1, images});
}

// [N] against [k, N, ...].
Tensor over_samples(const Tensor& per_image, const Tensor& samples) {
  std::vector<std::int64_t> shape(static_cast<std::size_t>(samples.dim()), 1);
  shape[1] = -1;
  return per_image.view(shape);
}

// loss(y, A(mu) + change) - loss(y, A(mu)) of each sample of each image, [k, N]; `residual` is [N, ...] and
// `change` [k, N, ...]. Taken value by value, before anything is added up: the difference is small beside the
// losses, and floats would lose most of it.
Tensor loss_change(Loss loss, const Tensor& residual, const Tensor& change) {
  const Tensor difference =
      loss == Loss::squared ? change * (change - 2 * residual) : (residual - change).abs() - residual.abs();
  return difference.flatten(2).sum(2);
}

// log p for both signs of a chunk of samples, [k, N] each. A linear operator sees each sample once.
struct LogRewards {
  Tensor plus, minus;
};
LogRewards log_rewards(const PolicyStep& s, const Tensor& xi, bool both) {
  const std::int64_t n = s.mu.size(0);
  const Tensor residual = s.y - s.prediction, Z = s.scale.Z.clamp_min(kTiny);
  const auto log_reward = [&](const Tensor& change) {
    return -loss_change(s.noise.loss(), residual, change) / Z;
  };
  if (as_linear(s.A)) {
    const Tensor unit = by_sample(s.A.apply(xi), n);  // A's output is often the smaller one
    const Tensor change = unit * over_samples(s.scale.r, unit);
    return {log_reward(change), both ? log_reward(-change) : Tensor()};
  }
  const Tensor samples = by_sample(xi, n), radius = over_samples(s.scale.r, samples);
  const auto at = [&](double sign) {
    const Tensor x = torch::addcmul(s.mu, samples, radius, sign).flatten(0, 1);
    return log_reward(by_sample(s.A.apply(x), n) - s.prediction);
  };
  return {at(1), both ? at(-1) : Tensor()};
}

RewardSums stream(const PolicyStep& s, std::int64_t draws, bool pairs, const NoiseSource& noise) {
  RewardSums sums;
  for (std::int64_t done = 0; done < draws;) {
    const std::int64_t count = std::min(samples_at_once(s.mu), draws - done);
    const Tensor xi = noise(done, count);
    const LogRewards rewards = log_rewards(s, xi, pairs);
    if (pairs)
      sums.add_pairs(rewards.plus, rewards.minus, xi);
    else
      sums.add(rewards.plus, xi);
    done += count;
  }
  return sums;
}

Tensor length_of(const Tensor& images) {
  return images.flatten(1).norm(2, {1});
}

const LinearOperator& need_linear(const PolicyStep& s, const char* what) {
  const LinearOperator* linear = as_linear(s.A);
  check(linear, what, " needs a linear operator, and \"", s.A.spec(), "\" is ", kind_name(s.A),
        "; use estimator mc");
  return *linear;
}

}  // namespace

RewardScale next_scale(RewardRule rule, Loss loss, const Tensor& residual, std::int64_t image_values,
                       double smallest_r, const RewardScale& previous) {
  const auto d = static_cast<double>(image_values);
  const Tensor e = residual.flatten(1);
  const Tensor square = e.square().sum(1), absolute = e.abs().sum(1);
  Tensor Z, r;
  if (rule == RewardRule::text) {
    Z = loss == Loss::squared ? square / d : absolute;
    r = (square / d).sqrt();
  } else if (loss == Loss::squared) {
    Z = previous.Z.defined() ? kSmoothing * previous.Z + (1 - kSmoothing) * square : square;
    r = (Z / d).sqrt() / 2;
  } else {
    Z = absolute;
    r = Z / d;
  }
  return {Z, r.clamp_min(std::max(smallest_r, 1e-6))};
}

Tensor streamed_policy_gradient(const PolicyStep& s, std::int64_t draws, bool pairs,
                                const NoiseSource& noise) {
  check(draws >= (pairs ? 1 : 2), "mc = ", draws, " samples are too few");
  const RewardSums sums = stream(s, draws, pairs, noise);
  return -sums.shaped(pairs ? 2 * draws : draws) / as_images(s.scale.r);
}

bool residual_is_a_picture(const Operator& A) {
  const std::vector<std::int64_t> shape = A.output_shape();
  return shape.size() == 3 && shape[0] == A.input_shape().channels;
}

Tensor residual_as_picture(const Tensor& residual, const Tensor& mu) {
  return residual.sizes() == mu.sizes() ? residual : resized(residual, mu.size(2), mu.size(3));
}

Tensor guessed_policy_gradient(const PolicyStep& s, std::int64_t draws, bool pairs, const NoiseSource& noise,
                               std::int64_t freedoms) {
  const double d = static_cast<double>(s.mu.numel() / s.mu.size(0)),
               share = static_cast<double>(freedoms) / d;
  const Tensor Z = s.scale.Z.clamp_min(kTiny);

  // Along the guess: as far as a sample goes, forth and back.
  const Tensor guess = residual_as_picture(s.y - s.prediction, s.mu);
  const Tensor direction = guess / as_images(length_of(guess).clamp_min(kTiny));
  const Tensor distance = s.scale.r * std::sqrt(d);
  const Tensor step = as_images(distance) * direction, residual = s.y - s.prediction;
  const auto change_of_loss = [&](const Tensor& x) {
    return loss_change(s.noise.loss(), residual, (s.A.apply(x) - s.prediction).unsqueeze(0)).squeeze(0);
  };
  const Tensor slope = (change_of_loss(s.mu + step) - change_of_loss(s.mu - step)) / (2 * distance * Z);

  // Across it: coarse noise of variance 1 overstates each of its directions by 1 / share.
  const RewardSums sums = stream(s, draws, pairs, noise);
  const std::int64_t samples = pairs ? 2 * draws : draws;
  const Tensor sampled = -share * sums.shaped(samples) / as_images(s.scale.r);
  const Tensor across = sampled - as_images((sampled * direction).flatten(1).sum(1)) * direction;
  // The slope's whole squared length, what of it the guess leaves over, and the sampling noise.
  const Tensor squared = share * sums.log_variance(samples) / s.scale.r.square();
  const Tensor left = (squared - slope.square()).clamp_min(0);
  const Tensor sampling = squared * (static_cast<double>(freedoms) / static_cast<double>(draws));
  const Tensor shrink = left / (left + sampling).clamp_min(kTiny);
  return as_images(slope) * direction + as_images(shrink) * across;
}

Tensor collapsed_policy_gradient(const PolicyStep& s, const Tensor& along, const Tensor& across) {
  const LinearOperator& A = need_linear(s, "the collapsed policy gradient");
  check(s.noise.loss() == Loss::squared, "the collapsed policy gradient needs a squared loss, and ",
        s.noise.spec(), " has an absolute one");
  const Tensor w = A.adjoint(s.y - s.prediction);
  const Tensor length = w.flatten(1).norm(2, {1}).clamp_min(kTiny);
  const Tensor direction = w / as_images(length);
  // p(xi) - p(-xi) = 2 sinh(2 r <w, xi> / Z), up to the common factor.
  const Tensor slope = 2 * s.scale.r * length / s.scale.Z.clamp_min(kTiny);
  const Tensor weight = 2 * torch::sinh(slope.unsqueeze(1) * along);
  const Tensor signal = (weight * along).sum(1), spread = weight.norm(2, {1});
  const Tensor overlap = (direction * across).flatten(1).sum(1);
  const Tensor sum = as_images(signal - spread * overlap) * direction + as_images(spread) * across;
  return -sum / as_images(s.scale.r * static_cast<double>(2 * along.size(1) - 1));
}

Tensor exact_policy_gradient(const PolicyStep& s, double lambda) {
  const LinearOperator& A = need_linear(s, "the exact policy gradient");
  const Tensor w = A.adjoint(s.y - s.prediction);
  return std::isinf(lambda) ? -w : -lambda * A.regularised_solve(w, lambda);
}

}  // namespace dpg
