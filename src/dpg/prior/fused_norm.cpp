#include "dpg/prior/fused_norm.h"

#include <torch/torch.h>

#include "dpg/kernels/norm.h"

namespace dpg {
namespace {

constexpr auto kChannelsLast = torch::MemoryFormat::ChannelsLast;

const float* pointer_or_null(const Tensor& t) { return t.defined() ? t.data_ptr<float>() : nullptr; }

kernels::NormShape shape_of(const Tensor& x, bool silu) {
  return {x.size(0), x.size(2) * x.size(3), x.size(1), kNormGroups, kNormEps, silu};
}

// Calls f with the element type the kernels use for this tensor's storage.
template <class F>
void with_element(const Tensor& x, F f) {
  if (x.scalar_type() == torch::kBFloat16)
    f(kernels::Bf16{});
  else
    f(float{});
}

Tensor run_forward(const Tensor& x, const kernels::NormParameters& parameters, bool silu, Tensor& statistics) {
  Tensor y = torch::empty_like(x, x.options(), kChannelsLast);
  statistics = torch::empty({x.size(0), kNormGroups, 2});
  with_element(x, [&](auto element) {
    using E = decltype(element);
    kernels::norm_forward(shape_of(x, silu), parameters, static_cast<const E*>(x.data_ptr()),
                          static_cast<E*>(y.data_ptr()), statistics.data_ptr<float>());
  });
  return y;
}

class FusedNorm : public torch::autograd::Function<FusedNorm> {
 public:
  static Tensor forward(torch::autograd::AutogradContext* context, const Tensor& x, const Tensor& gamma,
                        const Tensor& beta, const Tensor& scale, const Tensor& shift, bool silu) {
    Tensor statistics;
    Tensor y = run_forward(x, {gamma.data_ptr<float>(), beta.data_ptr<float>(), pointer_or_null(scale),
                               pointer_or_null(shift)}, silu, statistics);
    context->save_for_backward({x, statistics, gamma, beta, scale, shift});
    context->saved_data["silu"] = silu;
    return y;
  }

  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 torch::autograd::variable_list gradients) {
    const auto saved = context->get_saved_variables();
    const Tensor &x = saved[0], &statistics = saved[1];
    const kernels::NormParameters parameters{saved[2].data_ptr<float>(), saved[3].data_ptr<float>(),
                                             pointer_or_null(saved[4]), pointer_or_null(saved[5])};
    const Tensor dy = gradients[0].contiguous(kChannelsLast);
    Tensor dx = torch::empty_like(x, x.options(), kChannelsLast);
    with_element(x, [&](auto element) {
      using E = decltype(element);
      kernels::norm_backward(shape_of(x, context->saved_data["silu"].toBool()), parameters,
                             static_cast<const E*>(x.data_ptr()), statistics.data_ptr<float>(),
                             static_cast<const E*>(dy.data_ptr()), static_cast<E*>(dx.data_ptr()));
    });
    return {dx, Tensor(), Tensor(), Tensor(), Tensor(), Tensor()};
  }
};

}  // namespace

bool fused_norm_available(const Tensor& x) {
  return x.device().is_cpu() && (x.scalar_type() == torch::kFloat || x.scalar_type() == torch::kBFloat16);
}

Tensor fused_norm(const Tensor& x, const Tensor& gamma, const Tensor& beta, const Tensor& scale, const Tensor& shift,
                  bool silu) {
  const Tensor in = x.contiguous(kChannelsLast);
  const Tensor scale_rows = scale.defined() ? scale.contiguous() : scale;
  const Tensor shift_rows = shift.defined() ? shift.contiguous() : shift;
  return FusedNorm::apply(in, gamma, beta, scale_rows, shift_rows, silu);
}

}  // namespace dpg
