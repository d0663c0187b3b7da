#include "dpg/measure/phase_retrieval.h"

#include <torch/torch.h>

#include <cmath>

#include "dpg/core/error.h"
#include "dpg/measure/spec.h"

namespace dpg {
namespace {

// The amplitudes at columns 0 to columns / 2, which are all that a real picture has, made whole with the
// lowest frequency in the middle: |F(-k)| = |F(k)|.
Tensor whole_spectrum(const Tensor& half, std::int64_t columns) {
  const std::int64_t rows = half.size(-2), middle = columns / 2;
  const Tensor right = torch::roll(half, {rows / 2}, {-2});
  const Tensor left = torch::roll(right.slice(-1, 1, middle + 1).flip({-2, -1}), {1 - rows % 2}, {-2});
  return torch::cat({left, right.slice(-1, 0, columns - middle)}, -1);
}

class PhaseRetrieval : public DifferentiableOperator {
 public:
  PhaseRetrieval(const ImageShape& shape, const PhaseRetrievalOptions& options)
      : shape_(shape),
        options_(options),
        pad_rows_(std::llround(options.oversample / 8 * static_cast<double>(shape.height))),
        pad_columns_(std::llround(options.oversample / 8 * static_cast<double>(shape.width))) {}

  Tensor apply(const Tensor& x) const override {
    check_input(x);
    // Zeros may all follow the picture: a shift changes no amplitude, and the transform pads by itself.
    const std::int64_t rows = shape_.height + 2 * pad_rows_, columns = shape_.width + 2 * pad_columns_;
    return whole_spectrum(torch::fft::rfft2(x, torch::IntArrayRef{rows, columns}, {-2, -1}, "ortho").abs(),
                          columns);
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
