// The mean of x0 given y, put together from those that the steps of one run have on their way.
#pragma once

#include "dpg/measure/operator.h"

namespace dpg {

// A step knows the mean of x0 given x_t and y. Early ones come from a network that has seen little of y, late
// ones contain what the run has drawn. Where y says nothing, their average is better than each; where it says
// something, the last one from before x_t says as much. docs/methods/dpg.md has the figures.
class MeanOnTheWay {
 public:
  // A: linear, or null; the caller's, for as long as this lives. variance: of y's noise, [N, 1, 1, 1].
  MeanOnTheWay(const LinearOperator* A, Tensor variance);

  // Whether the mean of a step is to be added: from the first one where half of x_t is signal on, each time
  // that c = (1 - abar) / sqrt(abar) has fallen to a third.
  bool asks_for(double abar) const;
  // Which pictures it is to be added to, [N, 1, 1, 1]: 1, or 0 where x_t says more than y.
  Tensor still_open(double abar) const;
  // `mean` of the step, [N, C, H, W]. weights: how much more each entry of y is to be trusted than the mean
  // one; undefined: all alike.
  void add(const Tensor& mean, double abar, const Tensor& weights);
  // Applications of A and A^T that the next add() takes.
  int calls() const;

  // Undefined before the first.
  const Tensor& value() const { return mean_; }

 private:
  const LinearOperator* A_;
  Tensor variance_;
  Tensor mean_;
  int count_ = 0;
  double last_c_ = 0;
};

}  // namespace dpg
