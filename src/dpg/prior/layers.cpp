#include "dpg/prior/layers.h"

#include <torch/torch.h>

#include <cmath>
#include <cstdlib>
#include <utility>

#include "dpg/core/cpu.h"
#include "dpg/prior/fused_norm.h"
#include "dpg/prior/fused_residual.h"
#ifdef DPG_CUDA
#include "dpg/kernels/norm_cuda.h"
#include "dpg/prior/gpu_residual.h"
#endif

namespace dpg {
namespace {

constexpr auto kChannelsLast = torch::MemoryFormat::ChannelsLast;

bool keep_from_amx() {
  const bool unusable = has_amx() && !lists_amx_tiles();
  if (unusable) setenv("DNNL_MAX_CPU_ISA", "AVX512_CORE_BF16", /*overwrite=*/0);
  return unusable;
}
// oneDNN looks once, at its first use: hence before main.
const bool kKeptFromAmx = keep_from_amx();

std::optional<Convolution> optional_convolution(const WeightSource& weights, const std::string& name,
                                                bool present, torch::ScalarType type) {
  if (!present) return std::nullopt;
  return Convolution(weights, name, type);
}

// softmax(q k^T / sqrt(width)) v; each [N, heads, pixels, width].
Tensor attend(const Tensor& q, const Tensor& k, const Tensor& v) {
#if TORCH_VERSION_MAJOR >= 2
  if (q.is_cuda()) return at::scaled_dot_product_attention(q, k, v);  // one kernel each way
#endif
  // Half of 1/sqrt(width) on each side keeps the products small in 16 bits.
  const double half_scale = 1.0 / std::sqrt(std::sqrt(static_cast<double>(q.size(3))));
  const Tensor scores = torch::matmul(q * half_scale, (k * half_scale).transpose(-1, -2));
  const Tensor attention = torch::softmax(scores, -1, torch::kFloat).to(v.scalar_type());
  return torch::matmul(attention, v);
}

}  // namespace

bool kept_from_amx() {
  return kKeptFromAmx;
}

Convolution::Convolution(const WeightSource& weights, const std::string& name, torch::ScalarType type,
                         int stride_)
    : weight(weights(name + ".weight").to(type).contiguous(kChannelsLast)),
      bias(weights(name + ".bias").to(type)),
      stride(stride_) {}

Tensor Convolution::operator()(const Tensor& x) const {
  return torch::conv2d(x, weight, bias, stride, /*padding=*/weight.size(2) / 2);
}

Linear::Linear(const WeightSource& weights, const std::string& name)
    : weight(weights(name + ".weight").to(torch::kFloat)), bias(weights(name + ".bias").to(torch::kFloat)) {}

Tensor Linear::operator()(const Tensor& x) const {
  return torch::linear(x, weight, bias);
}

Normalisation::Normalisation(const WeightSource& weights, const std::string& name)
    : gamma(weights(name + ".weight").to(torch::kFloat).contiguous()),
      beta(weights(name + ".bias").to(torch::kFloat).contiguous()) {}

Tensor Normalisation::operator()(const Tensor& x, bool silu, const Tensor& scale, const Tensor& shift) const {
  if (fused_norm_available(x)) return fused_norm(x, {gamma, beta, scale, shift, silu});
  return reference(x, silu, scale, shift);
}

std::pair<Tensor, Tensor> Normalisation::passing_on(const Tensor& x) const {
  if (fused_norm_available(x)) return fused_norm_and_input(x, {gamma, beta, {}, {}, /*silu=*/false});
  return {reference(x, /*silu=*/false), x};
}

Tensor Normalisation::reference(const Tensor& x, bool silu, const Tensor& scale, const Tensor& shift) const {
  Tensor h = torch::group_norm(x.to(torch::kFloat), kNormGroups, gamma, beta, kNormEps);
  if (scale.defined()) h = h * (1 + scale).unsqueeze(-1).unsqueeze(-1) + shift.unsqueeze(-1).unsqueeze(-1);
  if (silu) h = torch::silu(h);
  return h.to(x.scalar_type()).contiguous(kChannelsLast);
}

Tensor resample(const Tensor& x, Resample how) {
  switch (how) {
    case Resample::down:
      return torch::avg_pool2d(x, 2);
    case Resample::up:
      return torch::upsample_nearest2d(x, {2 * x.size(2), 2 * x.size(3)});
    case Resample::none:
      break;
  }
  return x;
}

Tensor resample_backward(const Tensor& gradient, Resample how) {
  switch (how) {
    case Resample::down:  // each of four pixels had weight 1/4
      return resample(gradient * 0.25, Resample::up);
    case Resample::up:  // a pixel went to four places: their sum
      return torch::avg_pool2d(gradient, 2, 2, 0, false, true, /*divisor_override=*/1);
    case Resample::none:
      break;
  }
  return gradient;
}

ResidualBlock::ResidualBlock(const WeightSource& weights, const std::string& name, bool scale_shift_,
                             Resample how_, bool has_skip_convolution, torch::ScalarType type)
    : in_norm(weights, name + ".in_layers.0"),
      out_norm(weights, name + ".out_layers.0"),
      in_conv(weights, name + ".in_layers.2", type),
      out_conv(weights, name + ".out_layers.3", type),
      embedding(weights, name + ".emb_layers.1"),
      skip(optional_convolution(weights, name + ".skip_connection", has_skip_convolution, type)),
      scale_shift(scale_shift_),
      how(how_),
      embedding_width(embedding.weight.size(0)) {
#ifdef DPG_CUDA
  if (in_conv.weight.is_cuda()) {
    gpu = std::make_shared<const GpuResidualWeights>(*this);
    return;
  }
#endif
  if (how == Resample::up) upsampled = UpsampledConvolution(weights(name + ".in_layers.2.weight"), type);
}

Linear ResidualBlock::give_embedding(std::int64_t offset) {
  embedding_offset = offset;
  return std::exchange(embedding, Linear(Tensor(), Tensor()));
}

Tensor ResidualBlock::embedding_of(const Tensor& embeddings) const {
  const torch::NoGradGuard constant;
  if (embedding_offset < 0) return embedding(embeddings);
  return embeddings.narrow(1, embedding_offset, embedding_width);
}

Tensor ResidualBlock::operator()(const Tensor& x, const Tensor& embeddings, const Tensor& encoder) const {
  return passing_on(x, embeddings, encoder).first;
}

std::pair<Tensor, Tensor> ResidualBlock::passing_on(const Tensor& x, const Tensor& embeddings,
                                                    const Tensor& encoder) const {
#ifdef DPG_CUDA
  const std::int64_t channels = in_norm.gamma.size(0);
  const bool joins =
      encoder.defined() && !skip;  // two activations straight to the output: too rare to be fast
  if (gpu && !joins && fused_norm_available(x) && channels <= cuda::kMaxNormChannels)
    return gpu_residual(*this, *gpu, x, encoder, embedding_of(embeddings));
#endif
  if (x.is_cpu() && fused_norm_available(x))
    return fused_residual(*this, x, encoder, embedding_of(embeddings));
  return {reference(x, embeddings, encoder), x};
}

Tensor ResidualBlock::reference(const Tensor& x, const Tensor& embeddings, const Tensor& encoder) const {
  const Tensor in = encoder.defined() ? torch::cat({x, encoder}, 1) : x;
  Tensor h = in_conv(resample(in_norm.reference(in, /*silu=*/true), how));
  const Tensor e = embedding_of(embeddings);
  if (scale_shift) {
    const auto parts = e.chunk(2, 1);
    h = out_norm.reference(h, /*silu=*/true, parts[0], parts[1]);
  } else {
    h = out_norm.reference(h + e.to(h.scalar_type()).unsqueeze(-1).unsqueeze(-1), /*silu=*/true);
  }
  const Tensor straight = resample(in, how);
  return out_conv(h) + (skip ? (*skip)(straight) : straight);
}

AttentionBlock::AttentionBlock(const WeightSource& weights, const std::string& name, int heads,
                               bool new_order, torch::ScalarType type)
    : norm_(weights, name + ".norm"),
      qkv_weight_(weights(name + ".qkv.weight").to(type).flatten(1)),
      qkv_bias_(weights(name + ".qkv.bias").to(type)),
      projection_weight_(weights(name + ".proj_out.weight").to(type).flatten(1)),
      projection_bias_(weights(name + ".proj_out.bias").to(type)),
      heads_(heads),
      new_order_(new_order) {}

Tensor AttentionBlock::operator()(const Tensor& x) const {
  const auto n = x.size(0), c = x.size(1), height = x.size(2), width = x.size(3), pixels = height * width;
  const auto head_width = c / heads_;
  // Channels last makes [N, pixels, C] a view.
  const auto as_rows = [&](const Tensor& t) { return t.permute({0, 2, 3, 1}).reshape({n, pixels, c}); };
  const auto [normed, straight] = norm_.passing_on(x);
  const Tensor qkv = torch::linear(as_rows(normed), qkv_weight_, qkv_bias_);
  // The 3C channels are (q, k, v) per head in the old order, heads per q, k, v in the new one: [3][N, heads,
  // pixels, w].
  const auto parts = (new_order_ ? qkv.view({n, pixels, 3, heads_, head_width}).permute({2, 0, 3, 1, 4})
                                 : qkv.view({n, pixels, heads_, 3, head_width}).permute({3, 0, 2, 1, 4}))
                         .unbind();
  const Tensor mixed = attend(parts[0], parts[1], parts[2]).transpose(1, 2).reshape({n, pixels, c});
  const Tensor out = torch::linear(mixed, projection_weight_, projection_bias_);
  return straight + out.view({n, height, width, c}).permute({0, 3, 1, 2});
}

}  // namespace dpg
