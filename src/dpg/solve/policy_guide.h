// The loop body of Algorithm 1: one step's guidance of DPG, and the state of one run.
#pragma once

#include "dpg/solve/dpg.h"
#include "dpg/solve/mean_on_the_way.h"
#include "dpg/solve/measured_guide.h"

namespace dpg {

class PolicyGuide : public MeasuredGuide {
 public:
  // Which estimator runs, once the problem is known.
  enum class Estimator { exact, collapsed, streamed };

  // What finish() makes of the loop's last x: the answer that the options ask for; or what the answer of
  // several draws is to be near to, the mean that was on the way, where the options ask for none that x.
  enum class Answer { finished, near_to };

  // The options, the measurement and the pictures' numbers are the caller's, for as long as the run lasts.
  PolicyGuide(const DpgOptions& options, const Measurement& m, const Rng& rng,
              std::span<const std::uint32_t> images, Answer answer = Answer::finished);
  Track track(int i) const override { return i < unguided_ ? Track::nothing : Track::gradient; }
  bool stays_on_gpu() const override;
  Tensor finish(const Tensor& x) override;
  // `count` other runs for the same measurements, the sum of what they are to be near to.
  void beside(const Tensor& sum, int count) { others_ = sum, other_draws_ = count; }
  // The reverse loop's options, with a spacing and an order for this problem where none is given.
  SamplerOptions sampler() const;

 private:
  Tensor move(const ReverseStep& step, const Tensor& prediction, const Tensor& e) override;

  // A strength B: along the sampled (or exact) direction.
  Tensor by_strength(const PolicyStep& policy, const ReverseStep& step);
  // Without one: x0 is to move by c w, c = (1 - abar) / sqrt(abar). These find w.
  Tensor towards_mean(const PolicyStep& policy, const ReverseStep& step, double abar, bool keeps_mean);
  Tensor towards_guessed_mean(const PolicyStep& policy, const ReverseStep& step, double abar);
  Tensor along_samples(const PolicyStep& policy, const ReverseStep& step, double abar);
  template <class Adjoint>
  Tensor solve_mean(const PolicyStep& policy, const Tensor& residual, const ReverseStep& step, double abar,
                    int passes, const Tensor& weights, Adjoint adjoint);
  Tensor residual_with_noise(const PolicyStep& policy, const ReverseStep& step, double abar,
                             const Tensor& trust, bool keeps_mean);
  bool guessed() const;

  Tensor policy_gradient(const PolicyStep& policy, const ReverseStep& step);
  Tensor reward_unit(const Tensor& residual) const;
  Tensor noise_variance(const Tensor& prediction) const;
  Tensor weights(const PolicyStep& policy) const;
  Tensor with_momentum(const Tensor& g, const ReverseStep& step);

  const DpgOptions& options_;
  const Rng rng_;
  std::span<const std::uint32_t> images_;
  int unguided_, samples_;
  Estimator estimator_;
  Tensor noise_levels_;  // [N]
  RewardScale scale_;
  Tensor last_g_;
  Answer answer_;
  double smoothing_;
  MeanOnTheWay mean_;
  Tensor others_;
  int other_draws_ = 0;
  bool keeps_to_floor_;  // the answer's residual: raised where it lies below, not led above
};

}  // namespace dpg
