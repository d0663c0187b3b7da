#include "dpg/measure/phase_retrieval.h"

#include <torch/torch.h>

#include <cmath>

#include "dpg/core/error.h"
#include "dpg/measure/spec.h"

namespace dpg {
namespace {

class PhaseRetrieval : public DifferentiableOperator {
 public:
  PhaseRetrieval(const ImageShape& shape, const PhaseRetrievalOptions& options)
      : shape_(shape),
        options_(options),
        pad_rows_(std::llround(options.oversample / 8 * static_cast<double>(shape.height))),
        pad_columns_(std::llround(options.oversample / 8 * static_cast<double>(shape.width))) {}

  Tensor apply(const Tensor& x) const override {
    check_input(x);
    const Tensor padded = torch::constant_pad_nd(x, {pad_columns_, pad_columns_, pad_rows_, pad_rows_});
    const std::int64_t rows = padded.size(-2), columns = padded.size(-1);
    const Tensor amplitude =
        torch::abs(torch::fft::fft2(padded)) / std::sqrt(static_cast<double>(rows * columns));
    return torch::roll(amplitude, {rows / 2, columns / 2}, {-2, -1});
  }
  ImageShape input_shape() const override { return shape_; }
  std::vector<std::int64_t> output_shape() const override {
    return {shape_.channels, shape_.height + 2 * pad_rows_, shape_.width + 2 * pad_columns_};
  }
  std::string spec() const override { return options_.spec(); }
  std::shared_ptr<const Operator> to(torch::Device) const override {
    return std::make_shared<PhaseRetrieval>(*this);
  }

 private:
  ImageShape shape_;
  PhaseRetrievalOptions options_;
  std::int64_t pad_rows_, pad_columns_;
};

}  // namespace

void PhaseRetrievalOptions::validate() const {
  check(oversample >= 0 && oversample <= 8, "phase: oversample ", oversample,
        " is outside 0 to 8; 2 is usual");
}

std::string PhaseRetrievalOptions::spec() const {
  return "phase:oversample=" + number_text(oversample);
}

std::shared_ptr<const DifferentiableOperator> make_phase_retrieval(const ImageShape& shape,
                                                                   const PhaseRetrievalOptions& options) {
  options.validate();
  return std::make_shared<PhaseRetrieval>(shape, options);
}

}  // namespace dpg
