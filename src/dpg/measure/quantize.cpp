#include "dpg/measure/quantize.h"

#include <torch/torch.h>

#include "dpg/core/error.h"

namespace dpg {
namespace {

class Quantize : public Operator {
 public:
  Quantize(const ImageShape& shape, const QuantizeOptions& options) : shape_(shape), options_(options) {}

  Tensor apply(const Tensor& x) const override {
    check_input(x);
    const double steps = static_cast<double>((std::int64_t{1} << options_.bits) - 1);
    return torch::round((x.clamp(-1, 1) + 1) * (steps / 2)) * (2 / steps) - 1;
  }
  ImageShape input_shape() const override { return shape_; }
  std::vector<std::int64_t> output_shape() const override {
    return {shape_.channels, shape_.height, shape_.width};
  }
  std::string spec() const override { return options_.spec(); }
  std::shared_ptr<const Operator> to(torch::Device) const override {
    return std::make_shared<Quantize>(*this);
  }

 private:
  ImageShape shape_;
  QuantizeOptions options_;
};

}  // namespace

void QuantizeOptions::validate() const {
  check(bits >= 1 && bits <= 16, "quantize: bits ", bits, " is outside 1 to 16; the nearest valid value is ",
        bits < 1 ? 1 : 16);
}

std::string QuantizeOptions::spec() const {
  return str("quantize:bits=", bits);
}

std::shared_ptr<const Operator> make_quantize(const ImageShape& shape, const QuantizeOptions& options) {
  options.validate();
  return std::make_shared<Quantize>(shape, options);
}

}  // namespace dpg
