#include "dpg/metrics/features.h"

#include <torch/torch.h>

#include <algorithm>

#include "dpg/core/error.h"
#include "dpg/metrics/feature_weights.h"

namespace dpg {
namespace {

using metrics::FeatureArchitecture;
using metrics::FeatureChain;

constexpr std::int64_t kPicturesAtOnce = 16;

const FeatureArchitecture& architecture_called(const std::string& name) {
  for (const FeatureArchitecture* architecture :
       {&metrics::inception_architecture(), &metrics::googlenet_architecture()})
    if (architecture->name == name) return *architecture;
  fail("there is no feature network '", name, "'; choose inception or googlenet");
}

}  // namespace

const std::vector<std::string>& FeatureNetwork::names() {
  static const std::vector<std::string> names = {"inception", "googlenet"};
  return names;
}

WantedWeights FeatureNetwork::wanted_weights(const std::string& name) {
  return architecture_called(name).weights;
}

std::string FeatureNetwork::frechet_name(const std::string& name) {
  return architecture_called(name).frechet;
}

std::string FeatureNetwork::kernel_name(const std::string& name) {
  return architecture_called(name).kernel;
}

FeatureNetwork FeatureNetwork::load(const std::string& name,
                                    const std::vector<std::filesystem::path>& folders) {
  const FeatureArchitecture& architecture = architecture_called(name);
  const FoundWeights found = find_metric_weights(architecture.weights, folders);
  if (!found) fail(found.missing);
  const std::filesystem::path& file = found.files.front();
  return {architecture,
          std::make_shared<const FeatureChain>(metrics::read_feature_weights(architecture, file)),
          torch::kCPU, file};
}

FeatureNetwork::FeatureNetwork(const FeatureArchitecture& architecture, std::shared_ptr<const Layers> layers,
                               torch::Device device, std::filesystem::path file)
    : architecture_(&architecture), layers_(std::move(layers)), device_(device), file_(std::move(file)) {}

Tensor FeatureNetwork::features(const Tensor& pictures) const {
  const torch::NoGradGuard no_gradient;
  check(pictures.dim() == 4 && pictures.size(1) == 3 && pictures.size(2) > 0 && pictures.size(3) > 0 &&
            pictures.is_floating_point(),
        "features are of floating-point RGB pictures [N, 3, H, W] in [-1, 1], not of ",
        torch::toString(pictures.scalar_type()), " ", pictures.sizes());
  std::vector<Tensor> rows = {torch::empty({0, dimension()}, torch::kDouble)};
  for (std::int64_t first = 0; first < pictures.size(0); first += kPicturesAtOnce) {
    const std::int64_t count = std::min(kPicturesAtOnce, pictures.size(0) - first);
    const Tensor some = pictures.narrow(0, first, count).to(device_, torch::kFloat).clamp(-1, 1);
    const Tensor last = metrics::run(*layers_, architecture_->prepare(some));
    rows.push_back(last.mean({2, 3}, false, torch::kDouble).to(torch::kCPU));
  }
  return torch::cat(rows);
}

std::int64_t FeatureNetwork::dimension() const {
  return architecture_->features;
}

const std::string& FeatureNetwork::name() const {
  return architecture_->name;
}

std::string FeatureNetwork::frechet_name() const {
  return architecture_->frechet;
}

std::string FeatureNetwork::kernel_name() const {
  return architecture_->kernel;
}

FeatureNetwork FeatureNetwork::to(torch::Device device) const {
  // cuDNN rounds the inputs of float32 convolutions to 19 bits unless told otherwise; a metric must not
  // depend on that.
  if (device.is_cuda()) at::globalContext().setAllowTF32CuDNN(false);
  FeatureChain moved = *layers_;
  metrics::visit_convolutions(moved, 3, [&](metrics::FeatureLayer& layer, std::int64_t) {
    layer.weight = layer.weight.to(device);
    layer.bias = layer.bias.to(device);
  });
  return {*architecture_, std::make_shared<const FeatureChain>(std::move(moved)), device, file_};
}

}  // namespace dpg
