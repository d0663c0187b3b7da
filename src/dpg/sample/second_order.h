// Reverse steps to second order, without a further call of the network.
#pragma once

#include "dpg/prior/prior.h"
#include "dpg/prior/schedule.h"

namespace dpg {

// A first-order step takes x0 for constant while the noise falls from index i to i - 1. Second-order solvers
// with memory (Lu et al., DPM-Solver++ 2M, and its form with noise) continue the line from the last step's x0
// to the middle of this one, in units of half the logarithm of the signal-to-noise ratio. `share` of that: 0
// is first order, 1 second. With fresh noise at each step the mean of x0's change is zero and there is
// nothing to foresee; then this makes more of what the noise has changed (docs/methods/dpg.md).
class SecondOrder {
 public:
  explicit SecondOrder(double share) : share_(share) {}

  // What is added to x0 (guided, at index i) for its step; undefined: nothing, as in the first step and in
  // the last, whose end has no noise. To be called at every step, from the noisiest on.
  Tensor beyond(const Schedule& schedule, int i, const Tensor& x0);

 private:
  double share_;
  Tensor last_x0_;
  double last_length_ = 0;
};

}  // namespace dpg
