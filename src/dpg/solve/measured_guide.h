// What the guided methods share: they look at the residual of the denoised pictures, add a move to the
// reverse step, and keep the history and the cost that a Result carries.
#pragma once

#include "dpg/solve/solver.h"

namespace dpg {

// A Guide whose move follows from e = y - A(x0). Holds the state of one run of one batch.
class MeasuredGuide : public Guide {
 public:
  explicit MeasuredGuide(const Measurement& m) : m_(m) {}
  Guidance at(const ReverseStep& step) final;
  // The answer, from the loop's last x.
  virtual Tensor finish(const Tensor& x) { return x; }

  History history;
  std::int64_t operator_calls = 0;
  int reverse_passes = 0;  // one for each move; a guide that takes more adds them

 protected:
  // What is added to x_{i-1}, from A(x0) and e; undefined: nothing, and no reverse pass either.
  virtual Tensor move(const ReverseStep& step, const Tensor& prediction, const Tensor& e) = 0;
  const Measurement& m_;
};

// The reverse loop with this guide, on m's operator and the prior's device. The guide's answer, clamped to
// the range; of a run that was stopped, the last estimate.
Result run_guided(MeasuredGuide& guide, const SamplerOptions& sampler, const ImageShape& shape,
                  const Prior& prior, const Rng& rng, std::span<const std::uint32_t> images,
                  const Observer& observer);

// The measurement's operator as the kind that `method` needs; throws, naming methods that need less.
const DifferentiableOperator& need_differentiable(const char* method, const Measurement& m);
const LinearOperator& need_linear(const char* method, const Measurement& m);

// One number for each image, [N], in a shape that multiplies pictures [N, C, H, W].
Tensor over_pictures(const Tensor& per_image);
// The same for tensors of any rank; per_image may also be [N, 1, ...].
Tensor over_rows(const Tensor& per_image, const Tensor& like);

// <a, b> of each image, [N, 1, ...]: multiplies tensors of the same rank.
Tensor image_product(const Tensor& a, const Tensor& b);

// noise_levels() as a tensor beside y, [N].
Tensor noise_levels_tensor(const Measurement& m);

}  // namespace dpg
