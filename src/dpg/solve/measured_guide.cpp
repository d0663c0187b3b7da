#include "dpg/solve/measured_guide.h"

#include <torch/torch.h>

#include "dpg/core/error.h"

namespace dpg {

Guidance MeasuredGuide::at(const ReverseStep& step) {
  const Tensor prediction = m_.A->apply(step.denoised.x0);
  ++operator_calls;
  Guidance guidance{{}, residual_norm(m_.y, prediction)};
  history.t.push_back(step.schedule.timestep(step.i));
  history.residual.push_back(guidance.residual);
  guidance.move = move(step, prediction, m_.y - prediction);
  if (guidance.move.defined()) ++reverse_passes;
  return guidance;
}

Result run_guided(MeasuredGuide& guide, const SamplerOptions& sampler, const ImageShape& shape,
                  const Prior& prior, const Rng& rng, std::span<const std::uint32_t> images,
                  const Observer& observer) {
  const ReverseRun run = run_reverse(prior, sampler, rng, images, static_cast<int>(shape.height),
                                     static_cast<int>(shape.width), &guide, observer);
  const Tensor answer = run.stopped ? run.x : guide.finish(run.x);
  const Cost cost{run.network_calls, guide.reverse_passes, guide.operator_calls};
  return {answer.clamp(-1, 1), std::move(guide.history), cost, run.stopped};
}

const DifferentiableOperator& need_differentiable(const char* method, const Measurement& m) {
  const DifferentiableOperator* A = as_differentiable(*m.A);
  check(A, method, " needs the derivative of the operator, and \"", m.A->spec(), "\" is a ", kind_name(*m.A),
        "; use --method dpg or enkg, which need no more than A itself");
  return *A;
}

const LinearOperator& need_linear(const char* method, const Measurement& m) {
  const LinearOperator* A = as_linear(*m.A);
  check(A, method, " needs a linear operator, and \"", m.A->spec(), "\" is ",
        as_differentiable(*m.A) ? "differentiable but not linear; use --method dps or dpg"
                                : "a black box; use --method dpg or enkg, which need no more than A itself");
  return *A;
}

Tensor over_pictures(const Tensor& per_image) {
  return per_image.view({-1, 1, 1, 1});
}

Tensor over_rows(const Tensor& per_image, const Tensor& like) {
  std::vector<std::int64_t> shape(static_cast<std::size_t>(like.dim()), 1);
  shape[0] = -1;
  return per_image.view(shape);
}

Tensor image_product(const Tensor& a, const Tensor& b) {
  std::vector<std::int64_t> inner;
  for (std::int64_t i = 1; i < a.dim(); ++i) inner.push_back(i);
  return (a * b).sum(inner, true);
}

Tensor noise_levels_tensor(const Measurement& m) {
  return torch::tensor(noise_levels(m), torch::kFloat).to(m.y.device());
}

}  // namespace dpg
