#include "dpg/measure/compose.h"

#include <torch/torch.h>

#include <algorithm>

#include "dpg/core/error.h"
#include "dpg/measure/conjugate_gradient.h"

namespace dpg {
namespace {

// What all kinds share; Base is the kind, and both parts are at least that.
template <class Base>
class Composition : public Base {
 public:
  Composition(std::shared_ptr<const Base> first, std::shared_ptr<const Base> second)
      : first_(std::move(first)), second_(std::move(second)) {}

  Tensor apply(const Tensor& x) const override { return second_->apply(first_->apply(x)); }
  ImageShape input_shape() const override { return first_->input_shape(); }
  std::vector<std::int64_t> output_shape() const override { return second_->output_shape(); }
  std::int64_t batch() const override { return std::max(first_->batch(), second_->batch()); }
  std::string spec() const override { return first_->spec() + " | " + second_->spec(); }
  std::shared_ptr<const Operator> to(torch::Device device) const override {
    return compose(first_->to(device), second_->to(device));
  }
  Tensor observed_mask() const override { return second_->observed_mask(); }
  std::int64_t measurements() const override { return second_->measurements(); }

 protected:
  std::shared_ptr<const Base> first_, second_;
};

using BlackBoxComposition = Composition<Operator>;

class DifferentiableComposition : public Composition<DifferentiableOperator> {
 public:
  using Composition::Composition;
  Tensor vjp(const Tensor& x, const Tensor& v) const override {
    return first_->vjp(x, second_->vjp(first_->apply(x), v));
  }
};

class LinearComposition : public Composition<LinearOperator> {
 public:
  using Composition::Composition;
  Tensor adjoint(const Tensor& y) const override { return first_->adjoint(second_->adjoint(y)); }
  Tensor pseudo_inverse(const Tensor& y) const override { return pseudo_inverse_by_cg(*this, y); }
  Tensor regularised_solve(const Tensor& v, double lambda) const override {
    return regularised_solve_by_cg(*this, v, lambda);
  }
};

template <class Kind>
std::shared_ptr<const Kind> as(const std::shared_ptr<const Operator>& a) {
  return std::dynamic_pointer_cast<const Kind>(a);
}

}  // namespace

ImageShape output_as_image(const Operator& a) {
  const std::vector<std::int64_t> shape = a.output_shape();
  check(shape.size() == 3, "the measurement of \"", a.spec(), "\" is no picture (it has ", shape.size(),
        " dimensions), so nothing can follow it; put it last in the composition");
  return {shape[0], shape[1], shape[2]};
}

std::shared_ptr<const Operator> compose(std::shared_ptr<const Operator> first,
                                        std::shared_ptr<const Operator> second) {
  const ImageShape between = output_as_image(*first), wanted = second->input_shape();
  check(
      between.channels == wanted.channels && between.height == wanted.height && between.width == wanted.width,
      "\"", first->spec(), "\" gives ", between.channels, "x", between.height, "x", between.width, ", but \"",
      second->spec(), "\" was built for ", wanted.channels, "x", wanted.height, "x", wanted.width,
      "; build it for what the first one gives");
  check(first->batch() == second->batch() || first->batch() == 1 || second->batch() == 1, "\"", first->spec(),
        "\" holds the state of ", first->batch(), " images and \"", second->spec(), "\" of ", second->batch(),
        "; build both for the same images");
  if (auto a = as<LinearOperator>(first), b = as<LinearOperator>(second); a && b)
    return std::make_shared<LinearComposition>(std::move(a), std::move(b));
  if (auto a = as<DifferentiableOperator>(first), b = as<DifferentiableOperator>(second); a && b)
    return std::make_shared<DifferentiableComposition>(std::move(a), std::move(b));
  return std::make_shared<BlackBoxComposition>(std::move(first), std::move(second));
}

}  // namespace dpg
