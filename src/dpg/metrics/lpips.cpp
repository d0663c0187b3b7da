#include "dpg/metrics/lpips.h"

#include <torch/torch.h>

#include <algorithm>

#include "dpg/core/error.h"
#include "dpg/metrics/lpips_network.h"
#include "dpg/metrics/picture_pair.h"

namespace dpg {
namespace {

using metrics::LpipsLayer;
using metrics::LpipsNetwork;

// Pictures compared at a time hold about this many pixels, which bounds the features' memory.
constexpr std::int64_t kPixelsAtOnce = std::int64_t{1} << 19;

// Each pixel's features made unit length over channels.
Tensor unit_length(const Tensor& features) {
  return features / (features.square().sum(1, true).sqrt() + 1e-10);
}

// [N] in double. Both pictures pass the network in one batch, a before b.
Tensor distance_of(const LpipsNetwork& network, const Tensor& a, const Tensor& b) {
  Tensor h = (torch::cat({a, b}) - network.shift) / network.scale;
  Tensor distance = torch::zeros({a.size(0)}, h.options().dtype(torch::kDouble));
  for (const LpipsLayer& layer : network.layers) {
    h = layer(h);
    if (!layer.head.defined()) continue;
    const auto features = unit_length(h).chunk(2);
    const Tensor difference = torch::conv2d((features[0] - features[1]).square(), layer.head);
    distance += difference.mean({1, 2, 3}, false, torch::kDouble);
  }
  return distance;
}

}  // namespace

const std::vector<std::string>& Lpips::nets() {
  static const std::vector<std::string> names = {"squeeze", "alex", "vgg"};
  return names;
}

WantedWeights Lpips::wanted_weights(const std::string& net) {
  const std::string classifier = metrics::classifier_name(net);
  return {"LPIPS " + net,
          "lpips_" + net + "_v0.1.safetensors",
          {{"lpips_heads/" + net + ".pth", net + ".pth"}, {classifier + "-*.pth"}}};
}

Lpips Lpips::load(const std::string& net, const std::vector<std::filesystem::path>& folders) {
  const FoundWeights found = find_metric_weights(wanted_weights(net), folders);
  if (!found) fail(found.missing);
  return {std::make_shared<const LpipsNetwork>(metrics::read_lpips_network(net, found.files)), found.files};
}

Lpips::Lpips(std::shared_ptr<const LpipsNetwork> network, std::vector<std::filesystem::path> files)
    : network_(std::move(network)), files_(std::move(files)) {}

std::vector<double> Lpips::distance(const Tensor& a, const Tensor& b) const {
  const torch::NoGradGuard no_gradient;
  metrics::check_pictures(name(), a, b);
  check(a.size(1) == 3, name(), " compares RGB pictures, not ", a.size(1), " channels; convert them first");
  metrics::check_smallest_side(name(), a, network_->smallest_side);
  const auto prepared = [&](const Tensor& pictures, std::int64_t first, std::int64_t count) {
    return pictures.narrow(0, first, count).to(network_->shift.device(), torch::kFloat).clamp(-1, 1);
  };
  const std::int64_t at_once = std::max<std::int64_t>(1, kPixelsAtOnce / (a.size(2) * a.size(3)));
  std::vector<double> distances;
  for (std::int64_t first = 0; first < a.size(0); first += at_once) {
    const std::int64_t count = std::min(at_once, a.size(0) - first);
    const auto some =
        metrics::numbers(distance_of(*network_, prepared(a, first, count), prepared(b, first, count)));
    distances.insert(distances.end(), some.begin(), some.end());
  }
  return distances;
}

Lpips Lpips::to(torch::Device device) const {
  // cuDNN rounds the inputs of float32 convolutions to 19 bits unless told otherwise; a metric must not
  // depend on that.
  if (device.is_cuda()) at::globalContext().setAllowTF32CuDNN(false);
  return {std::make_shared<const LpipsNetwork>(metrics::moved_to(*network_, device)), files_};
}

const std::string& Lpips::net() const {
  return network_->net;
}

std::string Lpips::name() const {
  return "LPIPS " + net();
}

}  // namespace dpg
