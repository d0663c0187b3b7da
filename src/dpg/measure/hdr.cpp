#include "dpg/measure/hdr.h"

#include <torch/torch.h>

#include "dpg/core/error.h"
#include "dpg/measure/spec.h"

namespace dpg {
namespace {

class Hdr : public DifferentiableOperator {
 public:
  Hdr(const ImageShape& shape, const HdrOptions& options) : shape_(shape), options_(options) {}

  Tensor apply(const Tensor& x) const override {
    check_input(x);
    return torch::clamp(options_.scale * x, -1, 1);
  }
  Tensor vjp(const Tensor& x, const Tensor& v) const override {
    check_input(x);
    return v * (options_.scale * ((options_.scale * x).abs() <= 1));
  }
  ImageShape input_shape() const override { return shape_; }
  std::vector<std::int64_t> output_shape() const override {
    return {shape_.channels, shape_.height, shape_.width};
  }
  std::string spec() const override { return options_.spec(); }
  std::shared_ptr<const Operator> to(torch::Device) const override { return std::make_shared<Hdr>(*this); }

 private:
  ImageShape shape_;
  HdrOptions options_;
};

}  // namespace

void HdrOptions::validate() const {
  check(scale > 0 && scale <= 100, "hdr: scale ", scale, " is outside 0 (not included) to 100; 2 is usual");
}

std::string HdrOptions::spec() const {
  return "hdr:scale=" + number_text(scale);
}

std::shared_ptr<const DifferentiableOperator> make_hdr(const ImageShape& shape, const HdrOptions& options) {
  options.validate();
  return std::make_shared<Hdr>(shape, options);
}

}  // namespace dpg
