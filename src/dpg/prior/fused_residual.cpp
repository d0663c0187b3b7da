#include "dpg/prior/fused_residual.h"

#include <torch/torch.h>

#include "dpg/prior/fused_norm.h"

namespace dpg {
namespace {

constexpr auto kChannelsLast = torch::MemoryFormat::ChannelsLast;

// The block's parts as one call uses them. Shared tensors: copying is cheap.
struct Constants {
  NormConstants in_norm, out_norm;
  Tensor in_weight, in_bias, out_weight, out_bias, skip_weight,
      skip_bias;                   // skip: undefined for the identity
  UpsampledConvolution upsampled;  // the first convolution when `how` is up
  Tensor added_embedding;          // without scale-shift: [N, C, 1, 1], added before the second norm
  Resample how;
};

Constants constants_of(const ResidualBlock& block, const Tensor& e, torch::ScalarType type) {
  const torch::NoGradGuard no_grad;
  Constants c{{block.in_norm.gamma, block.in_norm.beta, {}, {}, true},
              {block.out_norm.gamma, block.out_norm.beta, {}, {}, true},
              block.in_conv.weight,
              block.in_conv.bias,
              block.out_conv.weight,
              block.out_conv.bias,
              block.skip ? block.skip->weight : Tensor(),
              block.skip ? block.skip->bias : Tensor(),
              block.upsampled,
              {},
              block.how};
  if (block.scale_shift) {
    const auto parts = e.chunk(2, 1);
    c.out_norm.scale = parts[0].contiguous();
    c.out_norm.shift = parts[1].contiguous();
  } else {
    c.added_embedding = e.to(type).unsqueeze(-1).unsqueeze(-1);
  }
  return c;
}

Tensor convolve(const Tensor& x, const Tensor& weight, const Tensor& bias) {
  return torch::conv2d(x, weight, bias, 1, weight.size(2) / 2);
}

// The input gradient alone. It depends on the input's shape, not on its values, so the input need not be
// kept: an unfilled tensor of that shape stands in for it.
Tensor convolve_backward(const Tensor& gradient, const Tensor& weight) {
  const auto pad = weight.size(2) / 2;
  const Tensor input = torch::empty({gradient.size(0), weight.size(1), gradient.size(2), gradient.size(3)},
                                    gradient.options(), kChannelsLast);
  return std::get<0>(torch::convolution_backward(gradient, input, weight, torch::nullopt, {1, 1}, {pad, pad},
                                                 {1, 1},
                                                 /*transposed=*/false, {0, 0}, 1, {true, false, false}));
}

class FusedResidual : public torch::autograd::Function<FusedResidual> {
 public:
  static torch::autograd::variable_list forward(torch::autograd::AutogradContext* context, const Tensor& x,
                                                const torch::optional<Tensor>& encoder, const Constants& c) {
    const Tensor in = encoder ? torch::cat({x, *encoder}, 1) : x;
    Tensor in_statistics, out_statistics;
    const Tensor h = [&] {
      const Tensor normed = norm_forward(in, c.in_norm, in_statistics);
      Tensor conv = c.how == Resample::up ? c.upsampled.forward(normed, c.in_bias)
                                          : convolve(resample(normed, c.how), c.in_weight, c.in_bias);
      return c.added_embedding.defined() ? conv.add_(c.added_embedding) : conv;
    }();
    Tensor out = convolve(norm_forward(h, c.out_norm, out_statistics), c.out_weight, c.out_bias);
    const Tensor straight = resample(in, c.how);
    out.add_(c.skip_weight.defined() ? convolve(straight, c.skip_weight, c.skip_bias) : straight);

    context->save_for_backward({in, in_statistics, h, out_statistics, c.in_norm.gamma, c.in_norm.beta,
                                c.out_norm.gamma, c.out_norm.beta, c.out_norm.scale, c.out_norm.shift,
                                c.how == Resample::up ? c.upsampled.strided : c.in_weight, c.out_weight,
                                c.skip_weight});
    context->saved_data["how"] = static_cast<std::int64_t>(c.how);
    context->saved_data["first_channels"] = x.size(1);
    context->set_materialize_grads(false);  // nothing, where nobody else took x
    return {out, x.detach()};
  }

  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 torch::autograd::variable_list gradients) {
    const auto saved = context->get_saved_variables();
    const Tensor &in = saved[0], &in_statistics = saved[1], &h = saved[2], &out_statistics = saved[3];
    const NormConstants in_norm{saved[4], saved[5], {}, {}, true};
    const NormConstants out_norm{saved[6], saved[7], saved[8], saved[9], true};
    const Tensor &in_weight = saved[10], &out_weight = saved[11], &skip_weight = saved[12];
    const auto how = static_cast<Resample>(context->saved_data["how"].toInt());
    const std::int64_t first_channels = context->saved_data["first_channels"].toInt();

    const Tensor g = gradients[0].contiguous(kChannelsLast);
    const Tensor dh =
        norm_backward(h, out_norm, out_statistics, convolve_backward(g, out_weight), {}, h.size(1)).first;
    const Tensor along_body = how == Resample::up ? UpsampledConvolution::backward(dh, in_weight)
                                                  : resample_backward(convolve_backward(dh, in_weight), how);
    Tensor along_skip = resample_backward(skip_weight.defined() ? convolve_backward(g, skip_weight) : g, how);
    if (gradients[1].defined()) {
      const bool ours =
          skip_weight.defined() || how != Resample::none;  // otherwise it is g, which others hold
      along_skip = ours ? along_skip.add_(gradients[1]) : along_skip + gradients[1];
    }
    auto [dx, d_encoder] = norm_backward(in, in_norm, in_statistics, along_body, along_skip, first_channels);
    return {dx, d_encoder, Tensor()};
  }
};

}  // namespace

std::pair<Tensor, Tensor> fused_residual(const ResidualBlock& block, const Tensor& x, const Tensor& encoder,
                                         const Tensor& embedding) {
  const auto second =
      encoder.defined() ? torch::optional<Tensor>(encoder.contiguous(kChannelsLast)) : torch::nullopt;
  const auto both = FusedResidual::apply(x.contiguous(kChannelsLast), second,
                                         constants_of(block, embedding, x.scalar_type()));
  return {both[0], both[1]};
}

}  // namespace dpg
