#include "dpg/measure/colour.h"

#include <torch/torch.h>

#include "dpg/core/error.h"
#include "dpg/measure/householder.h"

namespace dpg {
namespace {

std::vector<double> channel_weights(const ImageShape& shape, const GrayOptions& options) {
  if (options.weights == GrayOptions::Weights::luma) return {0.299, 0.587, 0.114};
  return std::vector<double>(static_cast<std::size_t>(shape.channels),
                             1.0 / static_cast<double>(shape.channels));
}

// On one pixel A is the row w of channel weights, with the single singular value ||w||. V's first column
// there is w / ||w||, the others complete it; U = I.
class Gray final : public SpectralOperator {
 public:
  Gray(const ImageShape& shape, const GrayOptions& options)
      : shape_(shape), options_(options), pixel_(channel_weights(shape, options)) {
    const Tensor weights = torch::tensor(channel_weights(shape, options), torch::kDouble);
    squared_norm_ = weights.square().sum().item<double>();
    weights_ = weights.to(torch::kFloat).view({1, -1, 1, 1});
    singular_values_ = torch::zeros({1, shape.channels, shape.height * shape.width});
    singular_values_.select(1, 0).fill_(std::sqrt(squared_norm_));
    singular_values_ = singular_values_.flatten(1);
  }

  ImageShape input_shape() const override { return shape_; }
  std::vector<std::int64_t> output_shape() const override { return {1, shape_.height, shape_.width}; }
  std::string spec() const override { return options_.spec(); }
  std::shared_ptr<const Operator> to(torch::Device device) const override {
    auto copy = std::make_shared<Gray>(*this);
    copy->pixel_ = pixel_.to(device);
    copy->weights_ = weights_.to(device);
    copy->singular_values_ = singular_values_.to(device);
    return copy;
  }

  Tensor apply(const Tensor& x) const override {
    check_input(x);
    return (x * weights_).sum(1, /*keepdim=*/true);
  }
  Tensor adjoint(const Tensor& y) const override {
    check_output(y);
    return y * weights_;
  }
  Tensor pseudo_inverse(const Tensor& y) const override { return adjoint(y) / squared_norm_; }
  // Only the direction w sees A^T A = ||w||^2; the rest sees lambda alone.
  Tensor regularised_solve(const Tensor& v, double lambda) const override {
    check_lambda(lambda);
    const double excess = 1 / (lambda + squared_norm_) - 1 / lambda;
    return v / lambda + pseudo_inverse(apply(v) * excess);
  }

  Tensor singular_values() const override { return singular_values_; }
  Tensor Vt(const Tensor& x) const override {
    check_input(x);
    return pixel_.apply(x, 1).flatten(1);
  }
  Tensor V(const Tensor& s) const override {
    return pixel_.apply(s.reshape({s.size(0), shape_.channels, shape_.height, shape_.width}), 1);
  }
  Tensor U(const Tensor& s) const override {
    return s.reshape({s.size(0), shape_.channels, shape_.height, shape_.width}).slice(1, 0, 1).contiguous();
  }
  Tensor Ut(const Tensor& y) const override {
    check_output(y);
    return torch::constant_pad_nd(y, {0, 0, 0, 0, 0, shape_.channels - 1}).flatten(1);
  }

 private:
  ImageShape shape_;
  GrayOptions options_;
  Householder pixel_;
  Tensor weights_;  // [1, C, 1, 1]
  double squared_norm_ = 0;
  Tensor singular_values_;  // [1, C * H * W]
};

class Identity final : public SpectralOperator {
 public:
  explicit Identity(const ImageShape& shape)
      : shape_(shape), singular_values_(torch::ones({1, shape.elements()})) {}

  ImageShape input_shape() const override { return shape_; }
  std::vector<std::int64_t> output_shape() const override {
    return {shape_.channels, shape_.height, shape_.width};
  }
  std::string spec() const override { return "identity"; }
  std::shared_ptr<const Operator> to(torch::Device device) const override {
    auto copy = std::make_shared<Identity>(*this);
    copy->singular_values_ = singular_values_.to(device);
    return copy;
  }

  Tensor apply(const Tensor& x) const override {
    check_input(x);
    return x;
  }
  Tensor adjoint(const Tensor& y) const override {
    check_output(y);
    return y;
  }
  Tensor pseudo_inverse(const Tensor& y) const override { return adjoint(y); }
  Tensor regularised_solve(const Tensor& v, double lambda) const override {
    check_input(v);
    check_lambda(lambda);
    return v / (1 + lambda);
  }

  Tensor singular_values() const override { return singular_values_; }
  Tensor V(const Tensor& s) const override { return s.unflatten(1, output_shape()); }
  Tensor Vt(const Tensor& x) const override { return x.flatten(1); }
  Tensor U(const Tensor& s) const override { return V(s); }
  Tensor Ut(const Tensor& y) const override { return Vt(y); }

 private:
  ImageShape shape_;
  Tensor singular_values_;
};

}  // namespace

void GrayOptions::validate(const ImageShape& shape) const {
  check(weights == Weights::mean || shape.channels == 3,
        "gray has weights = luma: it needs a colour image of 3 channels, not ", shape.channels, ".");
}

std::string GrayOptions::spec() const {
  return weights == Weights::mean ? "gray" : "gray:weights=luma";
}

std::shared_ptr<const SpectralOperator> make_gray(const ImageShape& shape, const GrayOptions& options) {
  check_shape(options.spec(), shape);
  options.validate(shape);
  return std::make_shared<Gray>(shape, options);
}

std::shared_ptr<const SpectralOperator> make_identity(const ImageShape& shape) {
  check_shape("identity", shape);
  return std::make_shared<Identity>(shape);
}

}  // namespace dpg
