#include "dpg/metrics/lpips_network.h"

#include <torch/torch.h>

#include <map>

#include "dpg/checkpoint/state_dict.h"
#include "dpg/core/error.h"
#include "dpg/tensor/convert.h"

namespace dpg::metrics {
namespace {

// A layer as torchvision numbers it: place `index` in the classifier's `features`.
struct PlannedLayer {
  enum class Kind { convolution, fire, pool } kind;
  int index = 0;
  int in = 0, out = 0;  // channels; of a fire: `out` channels from the 1x1 and as many from the 3x3
  int kernel = 0, stride = 1, padding = 0;
  int narrow = 0;  // fire: channels between
  bool compared = false;

  int channels() const { return kind == Kind::fire ? 2 * out : out; }
};

struct Plan {
  std::string net, classifier;
  std::int64_t smallest_side;
  int pool_kernel;
  bool pool_ceil;
  std::vector<PlannedLayer> layers;
};

using Kind = PlannedLayer::Kind;

PlannedLayer convolution(int index, int in, int out, int kernel, int stride, int padding) {
  return {Kind::convolution, index, in, out, kernel, stride, padding};
}
PlannedLayer convolution3(int index, int in, int out) {
  return convolution(index, in, out, 3, 1, 1);
}
PlannedLayer fire(int index, int in, int narrow, int out) {
  return {Kind::fire, index, in, out, 3, 1, 1, narrow};
}
PlannedLayer pool() {
  return {Kind::pool};
}
PlannedLayer compared(PlannedLayer layer) {
  layer.compared = true;
  return layer;
}

const std::vector<Plan>& plans() {
  static const std::vector<Plan> all = {
      {"squeeze",
       "squeezenet1_1",
       17,
       3,
       true,
       {compared(convolution(0, 3, 64, 3, 2, 0)), pool(), fire(3, 64, 16, 64), compared(fire(4, 128, 16, 64)),
        pool(), fire(6, 128, 32, 128), compared(fire(7, 256, 32, 128)), pool(),
        compared(fire(9, 256, 48, 192)), compared(fire(10, 384, 48, 192)), compared(fire(11, 384, 64, 256)),
        compared(fire(12, 512, 64, 256))}},
      {"alex",
       "alexnet",
       31,
       3,
       false,
       {compared(convolution(0, 3, 64, 11, 4, 2)), pool(), compared(convolution(3, 64, 192, 5, 1, 2)), pool(),
        compared(convolution3(6, 192, 384)), compared(convolution3(8, 384, 256)),
        compared(convolution3(10, 256, 256))}},
      {"vgg",
       "vgg16",
       16,
       2,
       false,
       {convolution3(0, 3, 64), compared(convolution3(2, 64, 64)), pool(), convolution3(5, 64, 128),
        compared(convolution3(7, 128, 128)), pool(), convolution3(10, 128, 256), convolution3(12, 256, 256),
        compared(convolution3(14, 256, 256)), pool(), convolution3(17, 256, 512), convolution3(19, 512, 512),
        compared(convolution3(21, 512, 512)), pool(), convolution3(24, 512, 512), convolution3(26, 512, 512),
        compared(convolution3(28, 512, 512))}},
  };
  return all;
}

const Plan& plan_of(const std::string& net) {
  for (const Plan& plan : plans())
    if (plan.net == net) return plan;
  fail("LPIPS has no net '", net, "'; choose squeeze, alex or vgg");
}

// One name for both layouts: "net.slice2.3.weight" of LPIPS and "features.3.weight" of torchvision are the
// same tensor.
std::string common_name(const std::string& name) {
  constexpr std::string_view slice = "net.slice";
  if (!name.starts_with(slice)) return name;
  const std::size_t dot = name.find('.', slice.size());
  return dot == std::string::npos ? name : "features" + name.substr(dot);
}

class WeightFiles {
 public:
  WeightFiles(std::string metric, const std::vector<std::filesystem::path>& paths)
      : metric_(std::move(metric)) {
    for (const auto& path : paths) {
      files_.push_back(StateDict::open(path));
      for (const TensorView& view : files_.back().tensors()) views_.emplace(common_name(view.name), &view);
      names_ += (names_.empty() ? "" : " and ") + path.string();
    }
  }

  bool has(const std::string& name) const { return views_.contains(name); }

  Tensor take(const std::string& name, const Shape& shape) const {
    const auto found = views_.find(name);
    check(found != views_.end(), metric_, ": ", name, " is not in ", names_,
          "; that is another network or only a part, make the file anew with tools/export_metric_weights.py");
    const TensorView& view = *found->second;
    check(view.shape == shape && is_floating(view.dtype), metric_, ": ", name, " in ", names_, " is ",
          dtype_name(view.dtype), " ", torch::IntArrayRef(view.shape), " where floating ",
          torch::IntArrayRef(shape), " is needed; that is another network");
    return to_tensor(view).to(torch::kFloat);
  }

 private:
  std::string metric_, names_;
  std::vector<StateDict> files_;  // keep what views_ points into
  std::map<std::string, const TensorView*> views_;
};

LpipsConvolution read_convolution(const WeightFiles& files, const std::string& name, int in, int out,
                                  int kernel, int stride, int padding) {
  return {files.take(name + ".weight", {out, in, kernel, kernel}), files.take(name + ".bias", {out}), stride,
          padding};
}

LpipsLayer read_layer(const WeightFiles& files, const Plan& plan, const PlannedLayer& layer) {
  const std::string name = str("features.", layer.index);
  switch (layer.kind) {
    case Kind::pool:
      return {{}, plan.pool_kernel, plan.pool_ceil, {}};
    case Kind::convolution:
      return {{read_convolution(files, name, layer.in, layer.out, layer.kernel, layer.stride, layer.padding)},
              0,
              false,
              {}};
    case Kind::fire:
      return {{read_convolution(files, name + ".squeeze", layer.in, layer.narrow, 1, 1, 0),
               read_convolution(files, name + ".expand1x1", layer.narrow, layer.out, 1, 1, 0),
               read_convolution(files, name + ".expand3x3", layer.narrow, layer.out, 3, 1, 1)},
              0,
              false,
              {}};
  }
  fail("a layer of no kind");
}

}  // namespace

Tensor LpipsConvolution::operator()(const Tensor& x) const {
  return torch::conv2d(x, weight, bias, stride, padding).relu_();
}

Tensor LpipsLayer::operator()(const Tensor& x) const {
  if (convolutions.empty()) return torch::max_pool2d(x, pool_kernel, 2, 0, 1, pool_ceil);
  const Tensor h = convolutions[0](x);
  return convolutions.size() == 1 ? h : torch::cat({convolutions[1](h), convolutions[2](h)}, 1);
}

std::string classifier_name(const std::string& net) {
  return plan_of(net).classifier;
}

LpipsNetwork read_lpips_network(const std::string& net, const std::vector<std::filesystem::path>& files) {
  const Plan& plan = plan_of(net);
  const WeightFiles weights("LPIPS " + net, files);
  LpipsNetwork network{plan.net, plan.smallest_side, {}, {}, {}};
  // LPIPS' own constants, for pictures in [-1, 1]. The pair of files does not carry them.
  network.shift = torch::tensor({-0.030f, -0.088f, -0.188f}).view({1, 3, 1, 1});
  network.scale = torch::tensor({0.458f, 0.448f, 0.450f}).view({1, 3, 1, 1});
  if (weights.has("scaling_layer.shift")) network.shift = weights.take("scaling_layer.shift", {1, 3, 1, 1});
  if (weights.has("scaling_layer.scale")) network.scale = weights.take("scaling_layer.scale", {1, 3, 1, 1});
  int heads = 0;
  for (const PlannedLayer& planned : plan.layers) {
    network.layers.push_back(read_layer(weights, plan, planned));
    if (planned.compared)
      network.layers.back().head =
          weights.take(str("lin", heads++, ".model.1.weight"), {1, planned.channels(), 1, 1});
  }
  return network;
}

LpipsNetwork moved_to(const LpipsNetwork& network, torch::Device device) {
  LpipsNetwork moved = network;
  moved.shift = moved.shift.to(device);
  moved.scale = moved.scale.to(device);
  for (LpipsLayer& layer : moved.layers) {
    for (LpipsConvolution& convolution : layer.convolutions) {
      convolution.weight = convolution.weight.to(device);
      convolution.bias = convolution.bias.to(device);
    }
    if (layer.head.defined()) layer.head = layer.head.to(device);
  }
  return moved;
}

}  // namespace dpg::metrics
