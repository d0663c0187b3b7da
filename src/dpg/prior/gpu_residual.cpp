#include "dpg/prior/gpu_residual.h"

#include <torch/torch.h>

#include "dpg/core/error.h"
#include "dpg/prior/gpu_norm.h"

namespace dpg {
namespace {

constexpr auto kChannelsLast = torch::MemoryFormat::ChannelsLast;

// The transpose of a 3x3 convolution with stride 1 is such a convolution itself.
Tensor flipped(const Tensor& weight) {
  return weight.flip({2, 3}).transpose(0, 1).contiguous(kChannelsLast);
}

Tensor convolve(const Tensor& x, const Tensor& weight) {
  return torch::conv2d(x, weight, {}, 1, weight.size(2) / 2);
}

// Channels last makes both of these views.
Tensor as_rows(const Tensor& images) {
  return images.permute({0, 2, 3, 1}).reshape({-1, images.size(1)});
}
Tensor as_images(const Tensor& rows, const Tensor& like) {
  return rows.view({like.size(0), like.size(2), like.size(3), rows.size(1)}).permute({0, 3, 1, 2});
}

// The block's parts as one call uses them. Shared tensors: copying is cheap.
struct Constants {
  NormConstants in_norm, out_norm;
  Tensor in_weight, out_weight;
  Tensor added;  // before the second norm: the first convolution's bias, and an added embedding
  GpuResidualWeights weights;
  Resample how;
};

Constants constants_of(const ResidualBlock& block, const GpuResidualWeights& weights,
                       const Tensor& embedding) {
  const torch::NoGradGuard no_grad;
  Constants c{{block.in_norm.gamma, block.in_norm.beta, {}, {}, true},
              {block.out_norm.gamma, block.out_norm.beta, {}, {}, true},
              block.in_conv.weight,
              block.out_conv.weight,
              weights.in_bias,
              weights,
              block.how};
  if (block.scale_shift) {
    const std::int64_t channels = embedding.size(1) / 2;
    c.out_norm.scale = embedding.narrow(1, 0, channels);
    c.out_norm.shift = embedding.narrow(1, channels, channels);
  } else {
    c.added = embedding + weights.in_bias;
  }
  return c;
}

class GpuResidual : public torch::autograd::Function<GpuResidual> {
 public:
  static torch::autograd::variable_list forward(torch::autograd::AutogradContext* context, const Tensor& x,
                                                const torch::optional<Tensor>& encoder, const Constants& c) {
    const Tensor second = encoder ? *encoder : Tensor();
    check(!second.defined() || (c.weights.skip.defined() && c.how == Resample::none),
          "a residual block that joins two activations has a skip convolution and keeps its size");
    const auto type = x.scalar_type();
    Tensor in_statistics, out_statistics;
    const Tensor h =
        convolve(gpu_norm_forward({x, second, {}, c.how}, c.in_norm, type, in_statistics), c.in_weight);
    const Tensor out =
        convolve(gpu_norm_forward({h, {}, c.added}, c.out_norm, type, out_statistics), c.out_weight);
    if (c.weights.skip.defined()) {
      const std::int64_t channels = x.size(1);
      Tensor sum = torch::addmm(c.weights.skip_bias, as_rows(resample(x, c.how)),
                                c.weights.skip.narrow(1, 0, channels).t());
      if (second.defined())
        sum.addmm_(as_rows(second), c.weights.skip.narrow(1, channels, second.size(1)).t());
      gpu_add(out, as_images(sum, out), Resample::none, {});
    } else {
      gpu_add(out, x, c.how, c.weights.out_bias);
    }
    context->save_for_backward({x, second, in_statistics, h, out_statistics, c.in_norm.gamma, c.in_norm.beta,
                                c.out_norm.gamma, c.out_norm.beta, c.out_norm.scale, c.out_norm.shift,
                                c.added, c.weights.in_flipped, c.weights.out_flipped, c.weights.skip});
    context->saved_data["how"] = static_cast<std::int64_t>(c.how);
    context->set_materialize_grads(false);  // nothing, where nobody else took x
    return {out, x.detach()};
  }

  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 torch::autograd::variable_list gradients) {
    const auto saved = context->get_saved_variables();
    const Tensor &x = saved[0], &second = saved[1], &in_statistics = saved[2], &h = saved[3],
                 &out_statistics = saved[4], &added = saved[11], &in_flipped = saved[12],
                 &out_flipped = saved[13], &skip = saved[14];
    const NormConstants in_norm{saved[5], saved[6], {}, {}, true};
    const NormConstants out_norm{saved[7], saved[8], saved[9], saved[10], true};
    const auto how = static_cast<Resample>(context->saved_data["how"].toInt());

    const Tensor g = gradients[0].contiguous(kChannelsLast);
    const Tensor dh =
        gpu_norm_backward({h, {}, added}, out_norm, out_statistics, convolve(g, out_flipped)).first;
    const Tensor along_body = convolve(dh, in_flipped);
    Tensor along_skip = g, along_skip_second;
    if (skip.defined()) {
      const Tensor rows = as_rows(g);
      along_skip = as_images(rows.mm(skip.narrow(1, 0, x.size(1))), g);
      if (second.defined())
        along_skip_second = as_images(rows.mm(skip.narrow(1, x.size(1), second.size(1))), g);
    }
    auto [dx, d_second] = gpu_norm_backward({x, second, {}, how}, in_norm, in_statistics, along_body,
                                            {along_skip, along_skip_second, gradients[1]});
    return {dx, d_second, Tensor()};
  }
};

}  // namespace

GpuResidualWeights::GpuResidualWeights(const ResidualBlock& block)
    : in_flipped(flipped(block.in_conv.weight)),
      out_flipped(flipped(block.out_conv.weight)),
      in_bias(block.in_conv.bias.to(torch::kFloat)),
      out_bias(block.out_conv.bias.to(torch::kFloat)) {
  if (!block.skip) return;
  skip = block.skip->weight.flatten(1).contiguous();
  out_bias = out_bias + block.skip->bias.to(torch::kFloat);
  skip_bias = out_bias.to(skip.scalar_type());
}

std::pair<Tensor, Tensor> gpu_residual(const ResidualBlock& block, const GpuResidualWeights& weights,
                                       const Tensor& x, const Tensor& encoder, const Tensor& embedding) {
  const auto second =
      encoder.defined() ? torch::optional<Tensor>(encoder.contiguous(kChannelsLast)) : torch::nullopt;
  const auto both =
      GpuResidual::apply(x.contiguous(kChannelsLast), second, constants_of(block, weights, embedding));
  return {both[0], both[1]};
}

}  // namespace dpg
