#include "dpg/solve/solver.h"

#include <torch/torch.h>

#include <cmath>

#include "dpg/core/error.h"

namespace dpg {

std::vector<double> History::residual_of(std::int64_t image) const {
  // One transfer for all steps: on a GPU each would wait for the card.
  const Tensor all = residual.empty()
                         ? torch::empty({0}, torch::kDouble)
                         : torch::stack(residual).select(1, image).to(torch::kCPU, torch::kDouble);
  const Tensor values = all.contiguous();
  return {values.data_ptr<double>(), values.data_ptr<double>() + values.numel()};
}

Measurement to_device(const Measurement& m, torch::Device device) {
  return {m.y.to(device), m.A->to(device), m.noise};
}

Tensor residual_norm(const Tensor& y, const Tensor& prediction) {
  return (y - prediction).flatten(1).norm(2, {1});
}

std::vector<double> noise_floors(const Measurement& m) {
  std::vector<double> floors = noise_levels(m);
  for (double& value : floors) value *= std::sqrt(static_cast<double>(m.A->measurements()));
  return floors;
}

void check_sizes(const Measurement& m, const Prior& prior, std::span<const std::uint32_t> images) {
  m.A->check_output(m.y);
  check(m.y.size(0) == static_cast<std::int64_t>(images.size()), "the measurement has ", m.y.size(0),
        " rows and ", images.size(), " image numbers were given; give one for each row");
  const ImageShape shape = m.A->input_shape();
  check(shape.channels == prior.channels(), "the operator \"", m.A->spec(), "\" is for pictures of ",
        shape.channels, " channels and the prior makes ", prior.channels());
}

}  // namespace dpg
