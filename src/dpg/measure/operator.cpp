#include "dpg/measure/operator.h"

#include <torch/torch.h>

#include "dpg/core/error.h"

namespace dpg {
namespace {

std::string text(c10::IntArrayRef sizes) {
  std::string out = "[";
  for (std::size_t i = 0; i < sizes.size(); ++i) out += str(i == 0 ? "" : ", ", sizes[i]);
  return out + "]";
}

// Whether `sizes` is [k * batch, shape].
bool fits(c10::IntArrayRef sizes, c10::IntArrayRef shape, std::int64_t batch) {
  return sizes.size() == shape.size() + 1 && sizes[0] > 0 && sizes[0] % batch == 0 && sizes.slice(1) == shape;
}

std::string wanted(c10::IntArrayRef shape, std::int64_t batch) {
  std::vector<std::int64_t> sizes = {batch};
  sizes.insert(sizes.end(), shape.begin(), shape.end());
  return str(text(sizes), batch == 1 ? " (any number of rows)" : " (or a multiple of these rows)");
}

}  // namespace

void check_shape(const std::string& what, const ImageShape& shape) {
  check(shape.channels >= 1 && shape.height >= 1 && shape.width >= 1, "The operator \"", what,
        "\" cannot be built for a picture of ", shape.channels, " x ", shape.height, " x ", shape.width,
        " (channels x height x width): every side must be at least 1.");
}

Tensor Operator::observed_mask() const {
  return torch::ones({});
}

std::int64_t Operator::measurements() const {
  return c10::multiply_integers(output_shape());
}

void Operator::check_input(const Tensor& x) const {
  const ImageShape in = input_shape();
  const std::vector<std::int64_t> shape = {in.channels, in.height, in.width};
  check(fits(x.sizes(), shape, batch()), "The operator \"", spec(), "\" takes pictures ",
        wanted(shape, batch()), ", not ", text(x.sizes()), ": build it for the picture's size and batch.");
}

void Operator::check_output(const Tensor& y) const {
  const std::vector<std::int64_t> shape = output_shape();
  check(fits(y.sizes(), shape, batch()), "The operator \"", spec(), "\" makes measurements ",
        wanted(shape, batch()), ", not ", text(y.sizes()), ": give it a measurement of its own shape.");
}

Tensor times_state(const Tensor& x, const Tensor& state) {
  const std::int64_t batch = state.size(0);
  if (batch == 1 || batch == x.size(0)) return x * state;
  check(x.size(0) % batch == 0, "A batch of ", x.size(0), " rows cannot be shared out over ", batch,
        " images: the rows must be a multiple of them.");
  const Tensor product = x.unflatten(0, {x.size(0) / batch, batch}) * state;
  return product.flatten(0, 1);
}

Tensor DifferentiableOperator::vjp(const Tensor& x, const Tensor& v) const {
  const torch::AutoGradMode track(true);
  const Tensor variable = x.detach().requires_grad_();
  return torch::autograd::grad({apply(variable)}, {variable}, {v})[0];
}

Tensor LinearOperator::vjp(const Tensor& /*x*/, const Tensor& v) const {
  return adjoint(v);
}

Tensor SpectralOperator::apply(const Tensor& x) const {
  return U(times_state(Vt(x), singular_values()));
}

Tensor SpectralOperator::adjoint(const Tensor& y) const {
  return V(times_state(Ut(y), singular_values()));
}

Tensor SpectralOperator::pseudo_inverse(const Tensor& y) const {
  const Tensor s = singular_values();
  return V(times_state(Ut(y), torch::where(s > 0, 1 / s, torch::zeros_like(s))));
}

Tensor SpectralOperator::regularised_solve(const Tensor& v, double lambda) const {
  check_lambda(lambda);
  return V(times_state(Vt(v), 1 / (singular_values().square() + lambda)));
}

void LinearOperator::check_lambda(double lambda) const {
  check(lambda > 0, "regularised_solve of \"", spec(), "\" got lambda = ", lambda, ": it must be positive.");
}

const DifferentiableOperator* as_differentiable(const Operator& a) {
  return dynamic_cast<const DifferentiableOperator*>(&a);
}

const LinearOperator* as_linear(const Operator& a) {
  return dynamic_cast<const LinearOperator*>(&a);
}

const SpectralOperator* as_spectral(const Operator& a) {
  return dynamic_cast<const SpectralOperator*>(&a);
}

const char* kind_name(const Operator& a) {
  if (as_spectral(a)) return "spectral";
  if (as_linear(a)) return "linear";
  if (as_differentiable(a)) return "differentiable";
  return "black box";
}

}  // namespace dpg
