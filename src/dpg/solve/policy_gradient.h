// The policy gradient of one step: a descent vector in the space of clean images.
//
//   v = -(1/(N r)) sum_k (p_k - b_k) xi_k,   p_k = exp(-(loss(y, A(mu + r xi_k)) - loss(y, A(mu))) / Z)
//
// (paper, eq. dpgshaping; b_k is the mean reward of the other samples). Everything is per image: tensors of
// one number for each image are [N].
#pragma once

#include <cstdint>
#include <functional>
#include <span>

#include "dpg/core/rng.h"
#include "dpg/measure/noise.h"

namespace dpg {

// How Z and r follow from the residual e = y - A(mu). d is the number of values of a clean image.
enum class RewardRule {
  code,  // the authors' program. Squared loss: Z <- 0.9 Z + 0.1 ||e||^2, r = sqrt(Z/d)/2.
         // Absolute loss: Z = ||e||_1, r = Z/d.
  text,  // the paper's text. Squared loss: Z = ||e||^2 / d, absolute: Z = ||e||_1; r = ||e|| / sqrt(d).
};

struct RewardScale {
  Tensor Z, r;  // [N]
};
// `previous` is the last step's scale, with an undefined Z before the first.
RewardScale next_scale(RewardRule rule, Loss loss, const Tensor& residual, std::int64_t image_values,
                       double smallest_r, const RewardScale& previous);

// One step's problem, on one device.
struct PolicyStep {
  const Operator& A;
  const NoiseModel& noise;
  const Tensor& y;
  const Tensor& mu;          // [N, C, H, W]
  const Tensor& prediction;  // A(mu)
  RewardScale scale;
};

// Standard normals for samples first .. first + count - 1: [count * N, C, H, W], row k * N + i for image i.
using NoiseSource = std::function<Tensor(std::int64_t first, std::int64_t count)>;

// Any operator, without a derivative. The samples are streamed: memory does not grow with their number. With
// `pairs` each of the `draws` is used with both signs: the even part of the reward then cancels exactly. That
// is free for a linear operator, and takes a second evaluation of any other.
Tensor streamed_policy_gradient(const PolicyStep& step, std::int64_t draws, bool pairs,
                                const NoiseSource& noise);

// For black boxes whose measurements are pictures: the same with a guess. Most of what degrades a picture
// keeps it recognisable, so that the residual e itself, resized to the picture, points roughly where A^T e
// would. The loss's slope along it is measured with two evaluations, without any sampling noise, and replaces
// what the samples say about that direction; what they say about all others is shrunk by how much of it is
// signal. If the guess is bad its slope is small, and so is its part. `freedoms` is the number of values the
// noise was drawn with (the grid's, for coarse noise). Scaled to the slope of the rewards, as the streamed
// one.
Tensor guessed_policy_gradient(const PolicyStep& step, std::int64_t draws, bool pairs,
                               const NoiseSource& noise, std::int64_t freedoms);
// Whether there is a guess: measurements are pictures with as many channels as the clean ones.
bool residual_is_a_picture(const Operator& A);
// The guess itself: a residual, resized to mu's size.
Tensor residual_as_picture(const Tensor& residual, const Tensor& mu);

// The same in law for a linear A, a squared loss and pairs, at the cost of one sample. The reward of
// mu + r xi depends on xi through <A^T e, xi> and through r^2 ||A xi||^2 / Z. Under RewardRule::code the
// second hardly differs between samples (by about 1/sqrt(8 d), 0.2 % at 128 x 128), and a factor common to
// all of them does not count. So the weights depend on the component of xi along A^T e alone: the samples'
// components orthogonal to it add up to one normal vector. `along` ([N, draws]) and `across` ([N, C, H,
// W]) are standard normals.
Tensor collapsed_policy_gradient(const PolicyStep& step, const Tensor& along, const Tensor& across);

// Infinitely many samples, for a linear A and a squared loss: v = -lambda (lambda I + A^T A)^-1 A^T e with
// lambda = Z / (2 r^2), up to a positive factor. An infinite lambda gives -A^T e. For noise with another loss
// this is what a squared one would give: Gaussian noise of the same level.
Tensor exact_policy_gradient(const PolicyStep& step, double lambda);

}  // namespace dpg
