#include "dpg/measure/separable.h"

#include <torch/torch.h>

#include <utility>

#include "dpg/core/error.h"

namespace dpg {
namespace {

// M = U S V^T of one [m, n] matrix, m <= n: U is [m, n] with zero columns from m on, S is [n], V is [n, n].
struct Decomposition {
  Tensor matrix, u, s, v;  // float64 while being built, then float32

  explicit Decomposition(const Tensor& m) : matrix(m) {
    const auto [left, values, right] = torch::linalg_svd(m, /*full_matrices=*/true);
    const std::int64_t missing = m.size(1) - m.size(0);
    u = torch::constant_pad_nd(left, {0, missing});
    s = torch::constant_pad_nd(values, {0, missing});
    v = right.transpose(0, 1).contiguous();
  }
  void move_to(const torch::TensorOptions& options) {
    for (Tensor* t : {&matrix, &u, &s, &v}) *t = t->to(options);
  }
};

// R X C^T for [N, C, H, W].
Tensor two_sided(const Tensor& r, const Tensor& x, const Tensor& c) {
  return torch::matmul(r, torch::matmul(x, c.transpose(0, 1)));
}

class Separable final : public SpectralOperator {
 public:
  Separable(const ImageShape& shape, const Tensor& rows, const Tensor& columns, std::string spec)
      : shape_(shape), rows_(rows), columns_(columns), spec_(std::move(spec)) {
    const Tensor product = torch::outer(rows_.s, columns_.s);
    const Tensor kept =
        torch::where(product > kRankTolerance * product.max(), product, torch::zeros({}, product.options()));
    plane_ = kept.to(torch::kFloat);
    rows_.move_to(torch::kFloat);
    columns_.move_to(torch::kFloat);
  }

  ImageShape input_shape() const override { return shape_; }
  std::vector<std::int64_t> output_shape() const override {
    return {shape_.channels, rows_.matrix.size(0), columns_.matrix.size(0)};
  }
  std::string spec() const override { return spec_; }
  std::shared_ptr<const Operator> to(torch::Device device) const override {
    auto copy = std::make_shared<Separable>(*this);
    copy->rows_.move_to(device);
    copy->columns_.move_to(device);
    copy->plane_ = plane_.to(device);
    return copy;
  }

  Tensor apply(const Tensor& x) const override {
    check_input(x);
    return two_sided(rows_.matrix, x, columns_.matrix);
  }
  Tensor adjoint(const Tensor& y) const override {
    check_output(y);
    return two_sided(rows_.matrix.transpose(0, 1), y, columns_.matrix.transpose(0, 1));
  }

  Tensor singular_values() const override {
    return plane_.expand({1, shape_.channels, -1, -1}).flatten(1).contiguous();
  }
  Tensor Vt(const Tensor& x) const override {
    check_input(x);
    return two_sided(rows_.v.transpose(0, 1), x, columns_.v.transpose(0, 1)).flatten(1);
  }
  Tensor V(const Tensor& s) const override { return two_sided(rows_.v, as_planes(s), columns_.v); }
  Tensor U(const Tensor& s) const override {
    return two_sided(rows_.u, as_planes(s) * (plane_ > 0), columns_.u);
  }
  Tensor Ut(const Tensor& y) const override {
    check_output(y);
    return (two_sided(rows_.u.transpose(0, 1), y, columns_.u.transpose(0, 1)) * (plane_ > 0)).flatten(1);
  }

 private:
  Tensor as_planes(const Tensor& s) const {
    return s.reshape({s.size(0), shape_.channels, shape_.height, shape_.width});
  }

  ImageShape shape_;
  Decomposition rows_, columns_;
  Tensor plane_;  // [H, W], singular values of one channel, zero where lost
  std::string spec_;
};

}  // namespace

std::shared_ptr<const SpectralOperator> make_separable(const ImageShape& shape, const Tensor& rows,
                                                       const Tensor& columns, std::string spec) {
  check_shape(spec, shape);
  check(rows.size(1) == shape.height && columns.size(1) == shape.width && rows.size(0) <= shape.height &&
            columns.size(0) <= shape.width,
        "The matrices of \"", spec, "\" must be [h, ", shape.height, "] and [w, ", shape.width,
        "] with h and w not above these.");
  return std::make_shared<Separable>(shape, rows.to(torch::kDouble), columns.to(torch::kDouble),
                                     std::move(spec));
}

}  // namespace dpg
