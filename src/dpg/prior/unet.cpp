#include "dpg/prior/unet.h"

#include <torch/torch.h>

#include <cmath>

#include "dpg/core/error.h"
#ifdef DPG_CUDA
#include <cstdlib>

#include "dpg/prior/gpu_ends.h"
#endif

namespace dpg {
namespace {

constexpr auto kChannelsLast = torch::MemoryFormat::ChannelsLast;

torch::ScalarType scalar_type(Precision precision) {
  return precision == Precision::bf16 ? torch::kBFloat16 : torch::kFloat;
}

}  // namespace

const char* precision_name(Precision precision) {
  switch (precision) {
    case Precision::bf16:
      return "bf16";
    case Precision::tf32:
      return "tf32";
    case Precision::fp32:
      break;
  }
  return "fp32";
}

GpuArithmetic::GpuArithmetic(Precision precision)
    : convolutions_(at::globalContext().allowTF32CuDNN()),
      products_(at::globalContext().allowTF32CuBLAS())
#ifdef DPG_CUDA
      ,
      deterministic_(at::globalContext().deterministicAlgorithms()),
      only_warn_(at::globalContext().deterministicAlgorithmsWarnOnly()),
      fill_(at::globalContext().deterministicFillUninitializedMemory())
#endif
{
#ifdef DPG_CUDA
  // The product library gives the same bits every time with this size of its workspace, and asks to be told.
  static const int told = setenv("CUBLAS_WORKSPACE_CONFIG", ":4096:8", /*overwrite=*/0);
  (void)told;
  at::globalContext().setDeterministicFillUninitializedMemory(false);
  at::globalContext().setDeterministicAlgorithms(true, /*warn_only=*/false);
#endif
  at::globalContext().setAllowTF32CuDNN(precision != Precision::fp32);
  at::globalContext().setAllowTF32CuBLAS(precision == Precision::tf32);
}

GpuArithmetic::~GpuArithmetic() {
#ifdef DPG_CUDA
  at::globalContext().setDeterministicAlgorithms(deterministic_, only_warn_);
  at::globalContext().setDeterministicFillUninitializedMemory(fill_);
#endif
  at::globalContext().setAllowTF32CuDNN(convolutions_);
  at::globalContext().setAllowTF32CuBLAS(products_);
}

Precision choose_precision(const std::string& name, torch::Device device) {
  if (name == "fp32") return Precision::fp32;
  if (name == "bf16") return Precision::bf16;
  check(name != "tf32" || device.is_cuda(), "precision tf32 is the GPU's; use fp32 or bf16 on the CPU");
  if (name == "tf32") return Precision::tf32;
  check(name == "auto", "precision \"", name, "\" is not one of auto, fp32, tf32, bf16");
#if defined(__x86_64__)
  // Without these instructions 16-bit convolutions are emulated and slower than fp32. Processors with AMX
  // have them too, but without AMX they are slow there (the bundled network: 173 ms, fp32 129, with AMX 42).
  const bool fast = __builtin_cpu_supports("avx512bf16") && !kept_from_amx();
  const bool native = device.is_cuda() || (device.is_cpu() && fast);
#else
  const bool native = device.is_cuda();
#endif
  return native ? Precision::bf16 : Precision::fp32;
}

// Walks the architecture in the order of guided-diffusion's constructor, so that names come out as in
// checkpoints.
struct UNet::Builder {
  const UNetConfig& config;
  const WeightSource& weights;
  torch::ScalarType type;
  int channels = 0;  // of the running activation
  int factor = 1;    // downsampling so far
  std::vector<int> skip_channels;
  bool join_embeddings;  // into one layer
  std::vector<Tensor> embedding_weights, embedding_biases;
  std::int64_t embedding_width = 0;

  ResidualBlock block(const std::string& name, int out_channels, Resample how) {
    ResidualBlock made(weights, name, config.use_scale_shift_norm, how, channels != out_channels, type);
    channels = out_channels;
    if (join_embeddings) {
      const Linear own = made.give_embedding(embedding_width);
      embedding_width += own.weight.size(0);
      embedding_weights.push_back(own.weight);
      embedding_biases.push_back(own.bias);
    }
    return made;
  }

  Layer residual(const std::string& name, int out_channels, Resample how = Resample::none) {
    return [made = block(name, out_channels, how)](const Tensor& x, const Tensor& e) { return made(x, e); };
  }

  PassingLayer passing(const std::string& name, int out_channels, Resample how = Resample::none) {
    return [made = block(name, out_channels, how)](const Tensor& x, const Tensor& e) {
      return made.passing_on(x, e);
    };
  }

  Layer attention(const std::string& name, bool decoder) {
    AttentionBlock block(weights, name, config.heads(channels, decoder), config.use_new_attention_order,
                         type);
    return [block](const Tensor& x, const Tensor&) { return block(x); };
  }

  PassingLayer downsample(const std::string& name) {
    factor *= 2;
    if (config.resblock_updown) return passing(name, channels, Resample::down);
    if (!config.conv_resample)
      return [](const Tensor& x, const Tensor&) { return std::pair(resample(x, Resample::down), x); };
    Convolution op(weights, name + ".op", type, /*stride=*/2);
    return [op](const Tensor& x, const Tensor&) { return std::pair(op(x), x); };
  }

  Layer upsample(const std::string& name) {
    factor /= 2;
    if (config.resblock_updown) return residual(name, channels, Resample::up);
    if (!config.conv_resample)
      return [](const Tensor& x, const Tensor&) { return resample(x, Resample::up); };
    Convolution conv(weights, name + ".conv", type);
    return [conv](const Tensor& x, const Tensor&) { return conv(resample(x, Resample::up)); };
  }

  std::vector<EncoderStage> encoder() {
    std::vector<EncoderStage> stages;
    channels = config.level_channels(0);
    skip_channels.push_back(channels);
    const auto name = [&] { return str("input_blocks.", stages.size() + 1, "."); };
    for (int level = 0; level < config.levels(); ++level) {
      for (int i = 0; i < config.num_res_blocks; ++i) {
        EncoderStage stage{passing(name() + "0", config.level_channels(level)), {}};
        if (config.has_attention(factor)) stage.rest.push_back(attention(name() + "1", /*decoder=*/false));
        stages.push_back(std::move(stage));
        skip_channels.push_back(channels);
      }
      if (level + 1 == config.levels()) break;
      stages.push_back({downsample(name() + "0"), {}});
      skip_channels.push_back(channels);
    }
    return stages;
  }

  EncoderStage middle() {
    EncoderStage stage{passing("middle_block.0", channels), {}};
    stage.rest.push_back(attention("middle_block.1", /*decoder=*/false));
    stage.rest.push_back(residual("middle_block.2", channels));
    return stage;
  }

  std::vector<DecoderStage> decoder() {
    std::vector<DecoderStage> stages;
    for (int level = config.levels() - 1; level >= 0; --level) {
      for (int i = 0; i <= config.num_res_blocks; ++i) {
        const std::string name = str("output_blocks.", stages.size(), ".");
        channels += skip_channels.back();  // concatenated with the encoder's activation
        skip_channels.pop_back();
        DecoderStage stage{block(name + "0", config.level_channels(level), Resample::none), {}};
        if (config.has_attention(factor)) stage.rest.push_back(attention(name + "1", /*decoder=*/true));
        if (level > 0 && i == config.num_res_blocks)
          stage.rest.push_back(upsample(str(name, stage.rest.size() + 1)));
        stages.push_back(std::move(stage));
      }
    }
    return stages;
  }
};

UNet::UNet(const UNetConfig& config, const WeightSource& weights, Precision precision, torch::Device device)
    : config_((validate(config), config)),
      precision_(precision),
      device_(device),
      time_in_(weights, "time_embed.0"),
      time_out_(weights, "time_embed.2"),
      label_embedding_(config.num_classes > 0 ? weights("label_emb.weight").to(torch::kFloat) : Tensor()),
      first_(weights, "input_blocks.0.0", torch::kFloat),
      last_(weights, "out.2", torch::kFloat),
      last_norm_(weights, "out.0") {
  Builder builder{config_, weights, scalar_type(precision), 0, 1, {}, device.is_cuda(), {}, {}};
  encoder_ = builder.encoder();
  encoder_.push_back(builder.middle());
  decoder_ = builder.decoder();
#ifdef DPG_CUDA
  if (device.is_cuda() && precision == Precision::bf16) {
    gpu_first_ = std::make_shared<const GpuFirst>(first_);
    gpu_last_ = std::make_shared<const GpuLast>(last_norm_, last_);
  }
#endif
  if (builder.join_embeddings)
    block_embeddings_.emplace(torch::cat(builder.embedding_weights), torch::cat(builder.embedding_biases));
}

Tensor UNet::forward(const Tensor& x, const Tensor& t, const Tensor& labels) const {
  check_input(x, t, labels);
  const Tensor embedding = embed(t, labels);
  const auto through = [&](const Stage& stage, Tensor h) {
    for (const Layer& layer : stage) h = layer(h, embedding);
    return h;
  };
  std::vector<Tensor> skips;
  Tensor h = first(x);
  for (const EncoderStage& stage : encoder_) {
    const auto [output, input] = stage.first(h, embedding);
    skips.push_back(input);
    h = through(stage.rest, output);
  }
  for (const DecoderStage& stage : decoder_) {
    h = through(stage.rest, stage.first(h, embedding, skips.back()));
    skips.pop_back();
  }
  return last(h);
}

Tensor UNet::first(const Tensor& x) const {
#ifdef DPG_CUDA
  if (gpu_first_) return (*gpu_first_)(x);
#endif
  return first_(x.contiguous(kChannelsLast)).to(scalar_type(precision_));
}

Tensor UNet::last(const Tensor& h) const {
#ifdef DPG_CUDA
  if (gpu_last_) return (*gpu_last_)(h);
#endif
  return last_(last_norm_(h.to(torch::kFloat), /*silu=*/true));
}

Tensor UNet::embed(const Tensor& t, const Tensor& labels) const {
  const torch::NoGradGuard constant;  // nothing here depends on x
  Tensor e = time_out_(torch::silu(time_in_(timestep_embedding(t.to(device_), config_.model_channels))));
  if (labels.defined()) e = e + label_embedding_.index_select(0, labels.to(device_));
  e = torch::silu(e);
  return block_embeddings_ ? (*block_embeddings_)(e) : e;
}

void UNet::check_input(const Tensor& x, const Tensor& t, const Tensor& labels) const {
  check(x.dim() == 4 && x.size(1) == config_.in_channels, "the network takes [N, ", config_.in_channels,
        ", H, W], not ", x.sizes());
  const int multiple = config_.downsampling();
  check(x.size(2) % multiple == 0 && x.size(3) % multiple == 0 && x.size(2) > 0 && x.size(3) > 0,
        "the network takes sizes that are multiples of ", multiple, ", not ", x.size(3), "x", x.size(2),
        "; resize or crop the image");
  check(x.scalar_type() == torch::kFloat, "the network takes float tensors, not ",
        torch::toString(x.scalar_type()));
  check(t.dim() == 1 && t.size(0) == x.size(0), "one time step per image: ", t.sizes(), " for ", x.size(0));
  if (!labels.defined()) return;
  check(config_.num_classes > 0, "this network is not class-conditional; give it no class");
  check(labels.dim() == 1 && labels.size(0) == x.size(0), "one class per image: ", labels.sizes());
  if (labels.is_cuda()) return;  // to look at them would wait for the card; NetworkPrior has checked its own
  check(labels.min().item<std::int64_t>() >= 0 && labels.max().item<std::int64_t>() < config_.num_classes,
        "classes are 0 to ", config_.num_classes - 1);
}

Tensor timestep_embedding(const Tensor& t, int channels) {
  const int half = channels / 2;
  const auto options = torch::TensorOptions().dtype(torch::kFloat).device(t.device());
  const Tensor frequencies = torch::exp(torch::arange(half, options) * (-std::log(10000.0) / half));
  const Tensor angles = t.to(torch::kFloat).unsqueeze(1) * frequencies.unsqueeze(0);
  Tensor embedding = torch::cat({torch::cos(angles), torch::sin(angles)}, 1);
  if (channels % 2 == 1) embedding = torch::cat({embedding, torch::zeros({t.size(0), 1}, options)}, 1);
  return embedding;
}

}  // namespace dpg
