#include "dpg/prior/gpu_ends.h"

#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>
#include <torch/torch.h>

#include "dpg/kernels/split_cuda.h"
#include "dpg/prior/gpu_norm.h"

namespace dpg {
namespace {

constexpr auto kChannelsLast = torch::MemoryFormat::ChannelsLast;

std::int64_t split_width(std::int64_t channels) {
  return (2 * channels + 2 + 7) / 8 * 8;
}

Tensor split(const Tensor& x_) {
  const c10::cuda::CUDAGuard guard(x_.device());
  const Tensor x = x_.to(torch::kFloat).contiguous();
  Tensor out = torch::empty({x.size(0), split_width(x.size(1)), x.size(2), x.size(3)},
                            x.options().dtype(torch::kBFloat16), kChannelsLast);
  cuda::split_channels(x.size(0), x.size(1), x.size(2) * x.size(3), x.data_ptr<float>(), out.size(1),
                       static_cast<kernels::Bf16*>(out.data_ptr()),
                       c10::cuda::getCurrentCUDAStream().stream());
  return out;
}

// A convolution that takes split(x) instead of x. [C_out, C_in, 3, 3] to [C_out, split_width(C_in), 3, 3].
Tensor split_weight(const Tensor& weight, const Tensor& bias) {
  const auto in = weight.size(1), middle = weight.size(2) / 2;
  Tensor wide = torch::zeros({weight.size(0), split_width(in), weight.size(2), weight.size(3)},
                             weight.options().dtype(torch::kFloat));
  wide.narrow(1, 0, in).copy_(weight);
  wide.narrow(1, in, in).copy_(weight);
  if (bias.defined()) {
    const Tensor high = bias.to(torch::kBFloat16).to(torch::kFloat);
    wide.select(3, middle).select(2, middle).select(1, 2 * in).copy_(high);
    wide.select(3, middle).select(2, middle).select(1, 2 * in + 1).copy_(bias - high);
  }
  return wide.to(torch::kBFloat16).contiguous(kChannelsLast);
}

Tensor flipped(const Tensor& weight) {
  return weight.flip({2, 3}).transpose(0, 1);
}

class First : public torch::autograd::Function<First> {
 public:
  static Tensor forward(torch::autograd::AutogradContext* context, const Tensor& x, const Tensor& weight,
                        const Tensor& back) {
    context->save_for_backward({back});
    context->saved_data["channels"] = x.size(1);
    return torch::conv2d(split(x), weight, {}, 1, weight.size(2) / 2);
  }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 torch::autograd::variable_list gradients) {
    const Tensor back = context->get_saved_variables()[0];
    const Tensor dx = torch::conv2d(gradients[0].contiguous(kChannelsLast), back, {}, 1, back.size(2) / 2);
    return {dx.narrow(1, 0, context->saved_data["channels"].toInt()).to(torch::kFloat), Tensor(), Tensor()};
  }
};

class Last : public torch::autograd::Function<Last> {
 public:
  static Tensor forward(torch::autograd::AutogradContext* context, const Tensor& h, const NormConstants& norm,
                        const Convolution& last, const Tensor& back) {
    Tensor statistics;
    const Tensor normed = gpu_norm_forward({h, {}, {}}, norm, torch::kFloat, statistics);
    context->save_for_backward({h, statistics, norm.gamma, norm.beta, back});
    return last(normed);
  }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 torch::autograd::variable_list gradients) {
    const auto saved = context->get_saved_variables();
    const NormConstants norm{saved[2], saved[3], {}, {}, true};
    const Tensor dy = torch::conv2d(split(gradients[0]), saved[4], {}, 1, saved[4].size(2) / 2);
    return {gpu_norm_backward({saved[0], {}, {}}, norm, saved[1], dy).first, Tensor(), Tensor(), Tensor()};
  }
};

}  // namespace

// The gradient with respect to x runs back through the first part's weights; output channels in multiples of
// eight are what the matrix units like, so the split weight as a whole is transposed and the rest left
// unread.
GpuFirst::GpuFirst(const Convolution& first)
    : weight_(split_weight(first.weight, first.bias)), flipped_(flipped(weight_).contiguous(kChannelsLast)) {}

Tensor GpuFirst::operator()(const Tensor& x) const {
  return First::apply(x, weight_, flipped_);
}

GpuLast::GpuLast(const Normalisation& norm, const Convolution& last)
    : norm_(norm), last_(last), flipped_(split_weight(flipped(last.weight), {})) {}

Tensor GpuLast::operator()(const Tensor& h) const {
  return Last::apply(h.contiguous(kChannelsLast), NormConstants{norm_.gamma, norm_.beta, {}, {}, true}, last_,
                     flipped_);
}

}  // namespace dpg
