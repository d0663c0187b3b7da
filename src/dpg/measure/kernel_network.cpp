#include "dpg/measure/kernel_network.h"

#include <torch/torch.h>

#include <functional>

#include "dpg/core/error.h"
#include "dpg/measure/spec.h"
#include "dpg/tensor/convert.h"

namespace dpg {
namespace {

namespace functional = torch::nn::functional;

using WeightOf = std::function<Tensor(const std::string&)>;  // by name; undefined when the file has none

struct Convolution {
  Tensor weight, bias;  // bias may be undefined
  int stride = 1, padding = 1;

  Tensor operator()(const Tensor& x) const { return torch::conv2d(x, weight, bias, stride, padding); }
};

Tensor leaky(const Tensor& x) {
  return torch::leaky_relu(x, 0.1);
}

struct ResidualBlock {
  Convolution first, second;
  Tensor operator()(const Tensor& x) const { return x + second(torch::relu(first(x))); }
};

// One level of the adapter, a U-Net whose bottom sees the kernel's code beside the picture's features.
struct AdapterLevel {
  Convolution down, up_first, up_second;

  Tensor upward(const Tensor& x) const {
    const Tensor h = torch::relu(up_second(torch::relu(up_first(torch::relu(x)))));
    return functional::interpolate(h, functional::InterpolateFuncOptions()
                                          .size(std::vector<std::int64_t>{2 * h.size(2), 2 * h.size(3)})
                                          .mode(torch::kBilinear)
                                          .align_corners(true));
  }
};

constexpr int kAdapterLevels = 5;

}  // namespace

struct KernelNetwork::Layers {
  std::vector<Convolution> extract;  // at full, half and quarter resolution
  std::vector<ResidualBlock> extract_blocks;
  std::vector<AdapterLevel> adapter;  // from the outermost in
  std::vector<ResidualBlock> rebuild_blocks;
  std::vector<Convolution> rebuild;  // two enlargements, then two at full resolution

  static Layers read(const WeightOf& weight_of);
  Tensor adapt(const Tensor& features, const Tensor& codes, std::size_t level = 0) const;
};

namespace {

Convolution read_convolution(const WeightOf& weight_of, const std::string& name, int stride, int kernel) {
  Convolution layer{weight_of(name + ".weight"), weight_of(name + ".bias"), stride, (kernel - 1) / 2};
  check(layer.weight.defined(), "the blur network's file lacks ", name,
        ".weight; give the authors' GOPRO_wVAE.pth or one of the same architecture");
  check(layer.weight.dim() == 4 && layer.weight.size(2) == kernel && layer.weight.size(3) == kernel, name,
        ".weight of the blur network is not a convolution of ", kernel, "x", kernel,
        "; the file is of another network");
  check(!layer.bias.defined() || (layer.bias.dim() == 1 && layer.bias.size(0) == layer.weight.size(0)), name,
        ".bias of the blur network does not fit its weight; the file is damaged");
  return layer;
}

// Blocks are numbered without a gap; their number is whatever the file has.
std::vector<ResidualBlock> read_blocks(const WeightOf& weight_of, const std::string& trunk, int first) {
  std::vector<ResidualBlock> blocks;
  for (int i = first;; ++i) {
    const std::string name = str(trunk, ".", i);
    if (!weight_of(name + ".conv1.weight").defined()) return blocks;
    blocks.push_back({read_convolution(weight_of, name + ".conv1", 1, 3),
                      read_convolution(weight_of, name + ".conv2", 1, 3)});
  }
}

}  // namespace

KernelNetwork::Layers KernelNetwork::Layers::read(const WeightOf& weight_of) {
  Layers layers;
  // Places between are activations, which have no weights.
  for (const int i : {0, 2, 4})
    layers.extract.push_back(read_convolution(weight_of, str("feature_extractor.", i), i == 0 ? 1 : 2, 3));
  layers.extract_blocks = read_blocks(weight_of, "feature_extractor", 6);
  std::string level = "adapter.model";
  for (int i = 0; i < kAdapterLevels; ++i, level += ".submodule")
    layers.adapter.push_back({read_convolution(weight_of, level + (i == 0 ? ".down.0" : ".down.1"), 2, 4),
                              read_convolution(weight_of, level + ".up.1.double_conv.0", 1, 5),
                              read_convolution(weight_of, level + ".up.1.double_conv.2", 1, 5)});
  layers.rebuild_blocks = read_blocks(weight_of, "recon_trunk", 0);
  const int after = static_cast<int>(layers.rebuild_blocks.size());
  for (const int i : {0, 3, 6, 8})
    layers.rebuild.push_back(read_convolution(weight_of, str("recon_trunk.", after + i), 1, 3));
  return layers;
}

// Down, through the levels inside, and up again; every level but the outermost also hands its input on.
Tensor KernelNetwork::Layers::adapt(const Tensor& features, const Tensor& codes, std::size_t level) const {
  const AdapterLevel& here = adapter[level];
  const bool outermost = level == 0, innermost = level + 1 == adapter.size();
  const Tensor below = here.down(outermost ? features : torch::leaky_relu(features, 0.2));
  const Tensor h = here.upward(innermost ? torch::cat({below, codes}, 1) : adapt(below, codes, level + 1));
  // Handed on as it came: the level above rectifies it first, and relu(leaky_relu(x)) = relu(x).
  return outermost ? torch::tanh(h) : torch::cat({h, features}, 1);
}

KernelNetwork::KernelNetwork(const StateDict& weights) {
  const WeightOf weight_of = [&](const std::string& name) {
    const TensorView* view = weights.find(name);
    if (!view) return Tensor();
    check(is_floating(view->dtype), weights.source(), ": ", name, " is of type ", dtype_name(view->dtype),
          " where weights must be floating point");
    return to_tensor(*view).to(torch::kFloat32);
  };
  layers_ = std::make_shared<const Layers>(Layers::read(weight_of));
  image_channels_ = layers_->extract.front().weight.size(1);
  const AdapterLevel& bottom = layers_->adapter.back();
  code_channels_ = bottom.up_first.weight.size(1) - bottom.down.weight.size(0);
  check(code_channels_ > 0, weights.source(), " leaves no room for a kernel code; it is of another network");
  const torch::NoGradGuard no_gradient;
  const std::int64_t side = kKernelNetworkMultiple;
  try {
    blur(torch::zeros({1, image_channels_, side, side}), torch::zeros({1, code_channels_, 1, 1}));
  } catch (const c10::Error&) {
    fail("the layers of ", weights.source(), " do not fit together; it is damaged or of another network");
  }
}

Tensor KernelNetwork::blur(const Tensor& pictures, const Tensor& codes) const {
  Tensor h = pictures;
  for (const Convolution& layer : layers_->extract) h = leaky(layer(h));
  for (const ResidualBlock& block : layers_->extract_blocks) h = block(h);
  h = layers_->adapt(h, codes);
  for (const ResidualBlock& block : layers_->rebuild_blocks) h = block(h);
  for (const int i : {0, 1}) h = leaky(torch::pixel_shuffle(layers_->rebuild[i](h), 2));
  return pictures + layers_->rebuild[3](leaky(layers_->rebuild[2](h)));
}

KernelNetwork KernelNetwork::to(torch::Device device) const {
  Layers moved = *layers_;
  const auto move = [&](Convolution& layer) {
    layer.weight = layer.weight.to(device);
    if (layer.bias.defined()) layer.bias = layer.bias.to(device);
  };
  for (auto* layers : {&moved.extract, &moved.rebuild})
    for (Convolution& layer : *layers) move(layer);
  for (auto* blocks : {&moved.extract_blocks, &moved.rebuild_blocks})
    for (ResidualBlock& block : *blocks) move(block.first), move(block.second);
  for (AdapterLevel& level : moved.adapter) move(level.down), move(level.up_first), move(level.up_second);
  KernelNetwork copy = *this;
  copy.layers_ = std::make_shared<const Layers>(std::move(moved));
  return copy;
}

namespace {

class KernelNetworkBlur : public DifferentiableOperator {
 public:
  KernelNetworkBlur(const ImageShape& shape, KernelNetwork network, Tensor codes, std::string spec)
      : shape_(shape), network_(std::move(network)), codes_(std::move(codes)), spec_(std::move(spec)) {}

  Tensor apply(const Tensor& x) const override {
    check_input(x);
    const Tensor codes = codes_.repeat({x.size(0) / codes_.size(0), 1, 1, 1});  // row j: code j mod batch
    return (2 * network_.blur((x + 1) / 2, codes) - 1).clamp(-1, 1);
  }
  ImageShape input_shape() const override { return shape_; }
  std::vector<std::int64_t> output_shape() const override {
    return {shape_.channels, shape_.height, shape_.width};
  }
  std::int64_t batch() const override { return codes_.size(0); }
  std::string spec() const override { return spec_; }
  std::shared_ptr<const Operator> to(torch::Device device) const override {
    return std::make_shared<KernelNetworkBlur>(shape_, network_.to(device), codes_.to(device), spec_);
  }

 private:
  ImageShape shape_;
  KernelNetwork network_;
  Tensor codes_;  // [batch, code channels, H / 128, W / 128]
  std::string spec_;
};

}  // namespace

void KernelNetworkOptions::validate() const {
  check(!weights.empty(), "nonlinear-blur: weights needs the network's file");
  check(spread >= 0 && spread <= 100, "nonlinear-blur: spread ", spread,
        " is outside 0 to 100; 1.2 is usual");
}

std::string KernelNetworkOptions::spec() const {
  return to_text({"nonlinear-blur", {{"weights", weights.string()}, {"spread", number_text(spread)}}});
}

std::shared_ptr<const DifferentiableOperator> make_kernel_network_blur(
    const ImageShape& shape, const KernelNetworkOptions& options, const Rng& rng,
    std::span<const std::uint32_t> images) {
  options.validate();
  check(shape.height % kKernelNetworkMultiple == 0 && shape.width % kKernelNetworkMultiple == 0,
        "the blur network takes sides that are multiples of ", kKernelNetworkMultiple, ", not ", shape.width,
        "x", shape.height, "; resize the picture");
  KernelNetwork network(StateDict::open(options.weights));
  check(network.image_channels() == shape.channels, options.weights.string(), " blurs pictures of ",
        network.image_channels(), " channels, not ", shape.channels, "; convert the picture first");
  const Tensor codes =
      options.spread * normal_noise(rng, images, kBeforeFirstStep, kOperatorChoices,
                                    {network.code_channels(), shape.height / kKernelNetworkMultiple,
                                     shape.width / kKernelNetworkMultiple});
  return std::make_shared<KernelNetworkBlur>(shape, std::move(network), codes, options.spec());
}

}  // namespace dpg
