#include "dpg/prior/fused_norm.h"

#include <torch/torch.h>

#include "dpg/kernels/norm.h"
#ifdef DPG_CUDA
#include "dpg/kernels/norm_cuda.h"
#include "dpg/prior/gpu_norm.h"
#endif

namespace dpg {
namespace {

constexpr auto kChannelsLast = torch::MemoryFormat::ChannelsLast;

const float* pointer_or_null(const Tensor& t) {
  return t.defined() ? t.data_ptr<float>() : nullptr;
}

kernels::NormParameters pointers(const NormConstants& c) {
  return {c.gamma.data_ptr<float>(), c.beta.data_ptr<float>(), pointer_or_null(c.scale),
          pointer_or_null(c.shift)};
}

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

Tensor empty_with_channels(const Tensor& x, std::int64_t channels) {
  return torch::empty({x.size(0), channels, x.size(2), x.size(3)}, x.options(), kChannelsLast);
}

Tensor forward_anywhere(const Tensor& x, const NormConstants& c, Tensor& statistics) {
#ifdef DPG_CUDA
  if (x.is_cuda()) return gpu_norm_forward({x, {}, {}}, c, x.scalar_type(), statistics);
#endif
  return norm_forward(x, c, statistics);
}

Tensor backward_anywhere(const Tensor& x, const NormConstants& c, const Tensor& statistics, const Tensor& dy,
                         const Tensor& add) {
#ifdef DPG_CUDA
  if (x.is_cuda()) return gpu_norm_backward({x, {}, {}}, c, statistics, dy, {add, {}, {}}).first;
#endif
  return norm_backward(x, c, statistics, dy.clone(kChannelsLast), add, x.size(1)).first;
}

class FusedNorm : public torch::autograd::Function<FusedNorm> {
 public:
  static torch::autograd::variable_list forward(torch::autograd::AutogradContext* context, const Tensor& x,
                                                const NormConstants& c) {
    Tensor statistics;
    Tensor y = forward_anywhere(x, c, statistics);
    context->save_for_backward({x, statistics, c.gamma, c.beta, c.scale, c.shift});
    context->saved_data["silu"] = c.silu;
    context->set_materialize_grads(false);  // nothing, where nobody else took x
    return {y, x.detach()};
  }

  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 torch::autograd::variable_list gradients) {
    const auto saved = context->get_saved_variables();
    const NormConstants c{saved[2], saved[3], saved[4], saved[5], context->saved_data["silu"].toBool()};
    return {backward_anywhere(saved[0], c, saved[1], gradients[0], gradients[1]), Tensor()};
  }
};

}  // namespace

bool fused_norm_available(const Tensor& x) {
  if (x.scalar_type() != torch::kFloat && x.scalar_type() != torch::kBFloat16) return false;
#ifdef DPG_CUDA
  if (x.is_cuda()) return x.size(1) % 8 == 0 && x.size(1) <= cuda::kMaxNormChannels;
#endif
  return x.device().is_cpu();
}

Tensor norm_forward(const Tensor& x, const NormConstants& constants, Tensor& statistics) {
  Tensor y = empty_with_channels(x, x.size(1));
  statistics = torch::empty({x.size(0), kNormGroups, 2});
  with_element(x, [&](auto element) {
    using E = decltype(element);
    kernels::norm_forward(shape_of(x, constants.silu), pointers(constants),
                          static_cast<const E*>(x.data_ptr()), static_cast<E*>(y.data_ptr()),
                          statistics.data_ptr<float>());
  });
  return y;
}

std::pair<Tensor, Tensor> norm_backward(const Tensor& x, const NormConstants& constants,
                                        const Tensor& statistics, const Tensor& dy, const Tensor& add,
                                        std::int64_t first_channels) {
  const Tensor dy_rows = dy.contiguous(kChannelsLast);
  const Tensor add_rows = add.defined() ? add.contiguous(kChannelsLast) : add;
  const std::int64_t rest = x.size(1) - first_channels;
  std::pair<Tensor, Tensor> dx{empty_with_channels(x, first_channels),
                               rest > 0 ? empty_with_channels(x, rest) : Tensor()};
  with_element(x, [&](auto element) {
    using E = decltype(element);
    const kernels::NormGradient<E> parts{static_cast<E*>(dx.first.data_ptr()), first_channels,
                                         rest > 0 ? static_cast<E*>(dx.second.data_ptr()) : nullptr};
    kernels::norm_backward(shape_of(x, constants.silu), pointers(constants),
                           static_cast<const E*>(x.data_ptr()), statistics.data_ptr<float>(),
                           static_cast<E*>(dy_rows.data_ptr()),
                           add_rows.defined() ? static_cast<const E*>(add_rows.data_ptr()) : nullptr, parts);
  });
  return dx;
}

Tensor fused_norm(const Tensor& x, const NormConstants& constants) {
  return fused_norm_and_input(x, constants).first;
}

std::pair<Tensor, Tensor> fused_norm_and_input(const Tensor& x, const NormConstants& constants) {
  const auto both = FusedNorm::apply(x.contiguous(kChannelsLast), constants);
  return {both[0], both[1]};
}

}  // namespace dpg
