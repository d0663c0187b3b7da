#include "dpg/measure/hadamard.h"

#include <torch/torch.h>

#include <algorithm>
#include <cmath>

#include "dpg/core/error.h"
#include "dpg/measure/random_order.h"
#include "dpg/measure/spec.h"

namespace dpg {
namespace {

// A transform of 2^14 points is two products with this matrix: faster than 14 passes of butterflies.
constexpr std::int64_t kLargest = 128;

// Sylvester's matrix H(2n) = [[H, H], [H, -H]], entries 1 and -1. Its upper left [n, n] block is the one of
// size n.
Tensor sylvester(std::int64_t n) {
  Tensor h = torch::ones({1, 1});
  while (h.size(0) < n) h = torch::cat({torch::cat({h, h}, 1), torch::cat({h, -h}, 1)}, 0);
  return h;
}

// The orthonormal Walsh-Hadamard transform of the last dimension, whose size is a power of two. Its own
// inverse.
Tensor walsh_hadamard(const Tensor& x, const Tensor& matrix) {
  const std::int64_t n = x.size(-1);
  Tensor z = x;
  for (std::int64_t inner = 1; inner < n;) {  // the axis in work has stride `inner`
    const std::int64_t d = std::min(kLargest, n / inner);
    const Tensor h = matrix.slice(0, 0, d).slice(1, 0, d) / std::sqrt(static_cast<double>(d));
    z = inner == 1 ? torch::matmul(z.reshape({-1, d}), h) : torch::matmul(h, z.reshape({-1, d, inner}));
    inner *= d;
  }
  return z.reshape(x.sizes());
}

class CompressedSensing final : public SpectralOperator {
 public:
  CompressedSensing(const ImageShape& shape, const CompressedSensingOptions& options, const Rng& rng)
      : shape_(shape), options_(options), matrix_(sylvester(kLargest)) {
    const std::int64_t n = pixels();
    const auto size = static_cast<std::size_t>(n);
    const NoiseKey key{0, kBeforeFirstStep, kOperatorChoices};
    order_ = torch::tensor(random_order(n, rng, key));
    place_ = torch::argsort(order_);
    std::vector<std::uint32_t> words(size);
    rng.words(key, words, size);
    std::vector<float> signs(size);
    for (std::size_t i = 0; i < size; ++i) signs[i] = words[i] >> 31 ? -1.0F : 1.0F;
    sign_ = torch::tensor(signs);
    const auto wanted = static_cast<std::int64_t>(std::llround(options.ratio * static_cast<double>(n)));
    auto rows = random_order(n, rng, key, 2 * size);
    rows.resize(static_cast<std::size_t>(std::max<std::int64_t>(1, wanted)));
    std::sort(rows.begin(), rows.end());
    measured_ = torch::tensor(rows);
    singular_values_ = torch::zeros({n}).index_fill_(0, measured_, 1).repeat({shape.channels}).unsqueeze(0);
  }

  ImageShape input_shape() const override { return shape_; }
  std::vector<std::int64_t> output_shape() const override { return {shape_.channels, measured_.size(0)}; }
  std::string spec() const override { return options_.spec(); }
  std::shared_ptr<const Operator> to(torch::Device device) const override {
    auto copy = std::make_shared<CompressedSensing>(*this);
    for (Tensor* t : {&copy->matrix_, &copy->order_, &copy->place_, &copy->sign_, &copy->measured_,
                      &copy->singular_values_})
      *t = t->to(device);
    return copy;
  }

  Tensor apply(const Tensor& x) const override { return U(Vt(x)); }
  Tensor adjoint(const Tensor& y) const override { return V(Ut(y)); }
  Tensor pseudo_inverse(const Tensor& y) const override { return adjoint(y); }  // orthonormal rows

  Tensor singular_values() const override { return singular_values_; }
  Tensor Vt(const Tensor& x) const override {
    check_input(x);
    return transform((x.flatten(2) * sign_).index_select(2, order_)).flatten(1);
  }
  Tensor V(const Tensor& s) const override {
    const Tensor shuffled = transform(s.reshape({s.size(0), shape_.channels, pixels()}));
    const Tensor flat = shuffled.index_select(2, place_) * sign_;
    return flat.reshape({s.size(0), shape_.channels, shape_.height, shape_.width});
  }
  Tensor U(const Tensor& s) const override {
    return s.reshape({s.size(0), shape_.channels, pixels()}).index_select(2, measured_);
  }
  Tensor Ut(const Tensor& y) const override {
    check_output(y);
    const Tensor none = torch::zeros({y.size(0), shape_.channels, pixels()}, y.options());
    return none.index_copy(2, measured_, y).flatten(1);
  }

 private:
  std::int64_t pixels() const { return shape_.height * shape_.width; }

  // Blocks of powers of two, the largest first, as in the binary number of pixels.
  Tensor transform(const Tensor& z) const {
    std::vector<Tensor> blocks;
    std::int64_t start = 0;
    for (std::int64_t bit = std::int64_t{1} << 40; bit > 0; bit /= 2) {
      if ((pixels() & bit) == 0) continue;
      blocks.push_back(walsh_hadamard(z.narrow(2, start, bit), matrix_));
      start += bit;
    }
    return blocks.size() == 1 ? blocks[0] : torch::cat(blocks, 2);
  }

  ImageShape shape_;
  CompressedSensingOptions options_;
  Tensor matrix_;           // [128, 128], ones and minus ones
  Tensor order_, place_;    // [H * W]: the shuffle of the pixels and its inverse
  Tensor sign_;             // [H * W]
  Tensor measured_;         // [m]: which coefficients are measured, ascending
  Tensor singular_values_;  // [1, C * H * W]
};

}  // namespace

void CompressedSensingOptions::validate() const {
  check(ratio > 0 && ratio <= 1, "cs has ratio = ", ratio, ": it must be above 0 and at most 1.");
}

std::string CompressedSensingOptions::spec() const {
  return to_text({"cs", {{"ratio", number_text(ratio)}}});
}

std::shared_ptr<const SpectralOperator> make_compressed_sensing(const ImageShape& shape,
                                                                const CompressedSensingOptions& options,
                                                                const Rng& rng) {
  check_shape(options.spec(), shape);
  options.validate();
  return std::make_shared<CompressedSensing>(shape, options, rng);
}

}  // namespace dpg
