#include "dpg/measure/cropped.h"

#include <torch/torch.h>

#include "dpg/core/error.h"

namespace dpg {
namespace {

template <class Base>
class Cropped : public Base {
 public:
  Cropped(std::shared_ptr<const Base> inner, std::int64_t height, std::int64_t width)
      : inner_(std::move(inner)), height_(height), width_(width) {}

  Tensor apply(const Tensor& x) const override {
    this->check_input(x);
    return inner_->apply(seen(x));
  }
  ImageShape input_shape() const override { return {inner_->input_shape().channels, height_, width_}; }
  std::vector<std::int64_t> output_shape() const override { return inner_->output_shape(); }
  std::int64_t batch() const override { return inner_->batch(); }
  std::string spec() const override { return inner_->spec(); }
  std::shared_ptr<const Operator> to(torch::Device device) const override {
    return on_larger(inner_->to(device), height_, width_);
  }
  Tensor observed_mask() const override { return inner_->observed_mask(); }
  std::int64_t measurements() const override { return inner_->measurements(); }

 protected:
  Tensor seen(const Tensor& x) const {
    const ImageShape shape = inner_->input_shape();
    return x.slice(2, 0, shape.height).slice(3, 0, shape.width);
  }
  Tensor enlarged(const Tensor& x) const {
    return torch::constant_pad_nd(x, {0, width_ - x.size(3), 0, height_ - x.size(2)}, 0);
  }

  std::shared_ptr<const Base> inner_;
  std::int64_t height_, width_;
};

class CroppedDifferentiable : public Cropped<DifferentiableOperator> {
 public:
  using Cropped::Cropped;
  Tensor vjp(const Tensor& x, const Tensor& v) const override { return enlarged(inner_->vjp(seen(x), v)); }
};

class CroppedLinear : public Cropped<LinearOperator> {
 public:
  using Cropped::Cropped;
  Tensor adjoint(const Tensor& y) const override { return enlarged(inner_->adjoint(y)); }
  Tensor pseudo_inverse(const Tensor& y) const override { return enlarged(inner_->pseudo_inverse(y)); }
  // Outside of what A sees, A^T A is zero.
  Tensor regularised_solve(const Tensor& v, double lambda) const override {
    check_lambda(lambda);
    Tensor solution = v / lambda;
    seen(solution).copy_(inner_->regularised_solve(seen(v), lambda));
    return solution;
  }
};

}  // namespace

std::shared_ptr<const Operator> on_larger(std::shared_ptr<const Operator> A, std::int64_t height,
                                          std::int64_t width) {
  const ImageShape shape = A->input_shape();
  check(height >= shape.height && width >= shape.width, "\"", A->spec(), "\" is for ", shape.width, "x",
        shape.height, " pictures and cannot be put on smaller ones of ", width, "x", height);
  if (height == shape.height && width == shape.width) return A;
  if (auto linear = std::dynamic_pointer_cast<const LinearOperator>(A))
    return std::make_shared<CroppedLinear>(std::move(linear), height, width);
  if (auto smooth = std::dynamic_pointer_cast<const DifferentiableOperator>(A))
    return std::make_shared<CroppedDifferentiable>(std::move(smooth), height, width);
  return std::make_shared<Cropped<Operator>>(std::move(A), height, width);
}

}  // namespace dpg
