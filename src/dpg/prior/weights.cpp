// Where a U-Net's tensors come from: a checkpoint, or a random generator.
#include <torch/torch.h>

#include <cmath>
#include <map>

#include "dpg/core/error.h"
#include "dpg/core/rng.h"
#include "dpg/prior/unet.h"
#include "dpg/tensor/convert.h"

namespace dpg {

WeightSource checkpoint_weights(const StateDict& checkpoint, const UNetConfig& config, torch::Device device) {
  std::vector<NamedShape> found;
  for (const TensorView& view : checkpoint.tensors()) found.push_back({view.name, view.shape});
  check_tensors(config, found, checkpoint.source());
  return [checkpoint, device](const std::string& name) {
    const TensorView* view = checkpoint.find(name);
    check(view != nullptr, checkpoint.source(), " has no tensor ", name);
    check(is_floating(view->dtype), checkpoint.source(), ": tensor ", name, " has type ",
          dtype_name(view->dtype), " where weights must be floating point");
    return to_tensor(*view).to(device);
  };
}

WeightSource random_weights(const UNetConfig& config, std::uint64_t seed, torch::Device device) {
  std::map<std::string, std::pair<std::uint32_t, std::vector<std::int64_t>>> shapes;
  std::uint32_t index = 0;
  for (const NamedShape& t : expected_tensors(config)) shapes[t.name] = {index++, t.shape};
  return [shapes, seed, device](const std::string& name) {
    const auto found = shapes.find(name);
    check(found != shapes.end(), "no tensor ", name, " in this architecture");
    const auto& [stream, shape] = found->second;
    const std::uint32_t streams[] = {stream};
    const Tensor noise = normal_noise(Rng(seed), streams, kBeforeFirstStep, 0, shape, device)[0];
    if (shape.size() > 1) {  // weights: keeps the size of activations
      double fan_in = 1;
      for (std::size_t i = 1; i < shape.size(); ++i) fan_in *= static_cast<double>(shape[i]);
      return noise / std::sqrt(fan_in);
    }
    // Norm weights near one, every bias near zero; a norm has a bias of the same name and is the only 1-d
    // weight.
    const bool is_weight = name.size() > 7 && name.compare(name.size() - 7, 7, ".weight") == 0;
    return is_weight ? 1 + 0.1 * noise : 0.1 * noise;
  };
}

}  // namespace dpg
