#include "dpg/measure/downsample.h"

#include <torch/torch.h>

#include "dpg/core/error.h"
#include "dpg/measure/householder.h"

namespace dpg {
namespace {

// On one block of f x f pixels A is the row (1/f^2, ..., 1/f^2), with the single singular value 1/f. V's
// first column there is the constant 1/f, the others complete it; U = I.
class Downsample final : public SpectralOperator {
 public:
  Downsample(const ImageShape& shape, const DownsampleOptions& options)
      : shape_(shape),
        options_(options),
        factor_(options.factor),
        block_(std::vector<double>(static_cast<std::size_t>(factor_ * factor_), 1.0)),
        singular_values_(torch::zeros({shape.channels * rows() * columns(), factor_ * factor_})) {
    singular_values_.select(1, 0).fill_(1.0 / static_cast<double>(factor_));
    singular_values_ = singular_values_.view({1, -1});
  }

  ImageShape input_shape() const override { return shape_; }
  std::vector<std::int64_t> output_shape() const override { return {shape_.channels, rows(), columns()}; }
  std::string spec() const override { return options_.spec(); }
  std::shared_ptr<const Operator> to(torch::Device device) const override {
    auto copy = std::make_shared<Downsample>(*this);
    copy->block_ = block_.to(device);
    copy->singular_values_ = singular_values_.to(device);
    return copy;
  }

  Tensor apply(const Tensor& x) const override {
    check_input(x);
    return torch::avg_pool2d(x, factor_);
  }
  Tensor adjoint(const Tensor& y) const override { return pseudo_inverse(y) / squared_factor(); }
  // A A^T = I / f^2, so A^+ = f^2 A^T: every pixel of a block takes the measured value.
  Tensor pseudo_inverse(const Tensor& y) const override {
    check_output(y);
    return y.reshape({y.size(0), shape_.channels, rows(), 1, columns(), 1})
        .expand({-1, -1, -1, factor_, -1, factor_})
        .reshape({y.size(0), shape_.channels, shape_.height, shape_.width});
  }
  // Only the block means (the range of A^T) see A^T A = 1/f^2; the rest sees lambda alone.
  Tensor regularised_solve(const Tensor& v, double lambda) const override {
    check_lambda(lambda);
    const double excess = 1 / (lambda + 1 / squared_factor()) - 1 / lambda;
    return v / lambda + pseudo_inverse(apply(v) * excess);
  }

  Tensor singular_values() const override { return singular_values_; }
  Tensor Vt(const Tensor& x) const override {
    check_input(x);
    const Tensor blocks = x.reshape({x.size(0), shape_.channels, rows(), factor_, columns(), factor_})
                              .permute({0, 1, 2, 4, 3, 5})
                              .reshape({x.size(0), -1, factor_ * factor_});
    return block_.apply(blocks, -1).flatten(1);
  }
  Tensor V(const Tensor& s) const override {
    const Tensor blocks = block_.apply(s.reshape({s.size(0), -1, factor_ * factor_}), -1);
    return blocks.view({s.size(0), shape_.channels, rows(), columns(), factor_, factor_})
        .permute({0, 1, 2, 4, 3, 5})
        .reshape({s.size(0), shape_.channels, shape_.height, shape_.width});
  }
  Tensor U(const Tensor& s) const override {
    return s.reshape({s.size(0), shape_.channels, rows(), columns(), factor_ * factor_})
        .select(-1, 0)
        .contiguous();
  }
  Tensor Ut(const Tensor& y) const override {
    check_output(y);
    return torch::constant_pad_nd(y.unsqueeze(-1), {0, factor_ * factor_ - 1}).flatten(1);
  }

 private:
  std::int64_t rows() const { return shape_.height / factor_; }
  std::int64_t columns() const { return shape_.width / factor_; }
  double squared_factor() const { return static_cast<double>(factor_ * factor_); }

  ImageShape shape_;
  DownsampleOptions options_;
  std::int64_t factor_;
  Householder block_;
  Tensor singular_values_;  // [1, C * h * w * f^2]
};

}  // namespace

void DownsampleOptions::validate(const ImageShape& shape) const {
  check(factor >= 1, "sr has factor = ", factor, ": it must be at least 1.");
  check(shape.height % factor == 0 && shape.width % factor == 0, "sr has factor = ", factor,
        ": it must divide the image's ", shape.width, " x ", shape.height, " pixels.");
}

std::string DownsampleOptions::spec() const {
  return str("sr:", factor);
}

std::shared_ptr<const SpectralOperator> make_downsample(const ImageShape& shape,
                                                        const DownsampleOptions& options) {
  check_shape(options.spec(), shape);
  options.validate(shape);
  return std::make_shared<Downsample>(shape, options);
}

}  // namespace dpg
