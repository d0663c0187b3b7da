#include "dpg/metrics/feature_weights.h"

#include <torch/torch.h>

#include <set>

#include "dpg/core/error.h"
#include "dpg/core/text.h"
#include "dpg/tensor/convert.h"

namespace dpg::metrics {
namespace {

Shape weight_shape(const FeatureLayer& layer, std::int64_t in) {
  return {layer.channels, in, layer.kernel.height, layer.kernel.width};
}

void check_tensors(const FeatureArchitecture& architecture, const StateDict& file) {
  const std::string other =
      "; that is another network, make the file anew with tools/export_metric_weights.py";
  std::set<std::string_view> wanted;
  const auto expected = expected_tensors(architecture);
  for (const auto& [name, shape] : expected) {
    const TensorView* view = file.find(name);
    check(view, architecture.name, ": ", name, " is not in ", file.source(), other);
    check(view->shape == shape && is_floating(view->dtype), architecture.name, ": ", name, " in ",
          file.source(), " is ", dtype_name(view->dtype), " ", torch::IntArrayRef(view->shape),
          " where floating ", torch::IntArrayRef(shape), " is needed", other);
    wanted.insert(name);
  }
  for (const TensorView& view : file.tensors())
    check(wanted.contains(view.name) || view.name.starts_with(architecture.unused_prefix) ||
              view.name.ends_with(".num_batches_tracked"),
          architecture.name, ": ", file.source(), " holds ", printable(view.name),
          ", which this network does not have", other);
}

}  // namespace

std::vector<std::pair<std::string, Shape>> expected_tensors(const FeatureArchitecture& architecture) {
  std::vector<std::pair<std::string, Shape>> expected;
  FeatureChain chain = architecture.chain;
  visit_convolutions(chain, 3, [&](const FeatureLayer& layer, std::int64_t in) {
    if (!architecture.batch_norm) {
      expected.emplace_back(layer.name + "/weight", weight_shape(layer, in));
      expected.emplace_back(layer.name + "/bias", Shape{layer.channels});
      return;
    }
    expected.emplace_back(layer.name + ".conv.weight", weight_shape(layer, in));
    for (const char* part : {".bn.weight", ".bn.bias", ".bn.running_mean", ".bn.running_var"})
      expected.emplace_back(layer.name + part, Shape{layer.channels});
  });
  return expected;
}

FoldedConvolution fold_batch_norm(const Tensor& weight, const Tensor& gamma, const Tensor& beta,
                                  const Tensor& mean, const Tensor& variance) {
  constexpr double epsilon = 1e-3;
  const Tensor scale = gamma.to(torch::kDouble) / (variance.to(torch::kDouble) + epsilon).sqrt();
  return {(weight.to(torch::kDouble) * scale.view({-1, 1, 1, 1})).to(torch::kFloat),
          (beta.to(torch::kDouble) - mean.to(torch::kDouble) * scale).to(torch::kFloat)};
}

FeatureChain read_feature_weights(const FeatureArchitecture& architecture,
                                  const std::filesystem::path& path) {
  const StateDict file = StateDict::open(path);
  check_tensors(architecture, file);
  const auto take = [&](const std::string& name) { return to_tensor(*file.find(name)).to(torch::kFloat); };
  FeatureChain chain = architecture.chain;
  visit_convolutions(chain, 3, [&](FeatureLayer& layer, std::int64_t) {
    if (!architecture.batch_norm) {
      layer.weight = take(layer.name + "/weight");
      layer.bias = take(layer.name + "/bias");
      return;
    }
    const std::string norm = layer.name + ".bn.";
    const FoldedConvolution folded =
        fold_batch_norm(take(layer.name + ".conv.weight"), take(norm + "weight"), take(norm + "bias"),
                        take(norm + "running_mean"), take(norm + "running_var"));
    layer.weight = folded.weight;
    layer.bias = folded.bias;
  });
  return chain;
}

}  // namespace dpg::metrics
