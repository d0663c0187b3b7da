#include "dpg/measure/fourier_blur.h"

#include <torch/torch.h>

#include <utility>

#include "dpg/core/error.h"

namespace dpg {
namespace {

// Lays `kernels` on a plane of `length` along `dim`, origin at 0, what lies before it at the far end.
Tensor wrapped(const Tensor& kernels, std::int64_t dim, std::int64_t length) {
  const std::int64_t samples = kernels.size(dim);
  const Tensor place = torch::remainder(torch::arange(samples) - samples / 2, length);
  std::vector<std::int64_t> sizes = kernels.sizes().vec();
  sizes[static_cast<std::size_t>(dim)] = length;
  return torch::zeros(sizes, kernels.options()).index_add_(dim, place, kernels);
}

// Real and orthogonal: sums of cos + sin instead of complex exponentials.
Tensor hartley(const Tensor& x) {
  const Tensor spectrum = torch::fft::fft2(x, c10::nullopt, {-2, -1}, "ortho");
  return torch::real(spectrum) - torch::imag(spectrum);
}

// |D| on the whole plane from its half: |D(-k)| = |D(k)| for a real kernel.
Tensor whole_plane(const Tensor& half, std::int64_t width) {
  const Tensor rest = half.slice(-1, 1, (width + 1) / 2).flip({-2, -1}).roll(1, -2);
  return torch::cat({half, rest}, -1);
}

class FourierBlur final : public SpectralOperator {
 public:
  FourierBlur(const ImageShape& shape, const Tensor& kernels, std::string spec)
      : shape_(shape), spec_(std::move(spec)) {
    const Tensor d = transfer_function(kernels, shape.height, shape.width);
    const Tensor size = torch::abs(d);
    const Tensor seen = size > kRankTolerance * size.amax({1, 2, 3}, /*keepdim=*/true);
    const Tensor none = torch::zeros({}, size.options());
    const Tensor reciprocal = torch::where(seen, 1 / size, none);
    transfer_ = d.to(torch::kComplexFloat);
    phase_ = (d * reciprocal).to(torch::kComplexFloat);
    inverse_ = (torch::conj(d) * reciprocal.square()).to(torch::kComplexFloat);
    plane_ = whole_plane(torch::where(seen, size, none), shape.width).to(torch::kFloat);
  }

  ImageShape input_shape() const override { return shape_; }
  std::vector<std::int64_t> output_shape() const override {
    return {shape_.channels, shape_.height, shape_.width};
  }
  std::int64_t batch() const override { return transfer_.size(0); }
  std::string spec() const override { return spec_; }
  std::shared_ptr<const Operator> to(torch::Device device) const override {
    auto copy = std::make_shared<FourierBlur>(*this);
    for (Tensor* t : {&copy->transfer_, &copy->phase_, &copy->inverse_, &copy->plane_}) *t = t->to(device);
    return copy;
  }

  Tensor apply(const Tensor& x) const override {
    check_input(x);
    return filter(x, transfer_);
  }
  Tensor adjoint(const Tensor& y) const override {
    check_output(y);
    return filter(y, torch::conj(transfer_));
  }
  Tensor pseudo_inverse(const Tensor& y) const override {
    check_output(y);
    return filter(y, inverse_);
  }
  Tensor regularised_solve(const Tensor& v, double lambda) const override {
    check_input(v);
    check_lambda(lambda);
    return filter(v, 1 / (torch::abs(transfer_).square() + lambda));
  }

  Tensor singular_values() const override {
    return plane_.expand({-1, shape_.channels, -1, -1}).flatten(1).contiguous();
  }
  Tensor V(const Tensor& s) const override {
    return hartley(s.reshape({s.size(0), shape_.channels, shape_.height, shape_.width}));
  }
  Tensor Vt(const Tensor& x) const override {
    check_input(x);
    return hartley(x).flatten(1);
  }
  Tensor U(const Tensor& s) const override { return filter(V(s), phase_); }
  Tensor Ut(const Tensor& y) const override {
    check_output(y);
    return hartley(filter(y, torch::conj(phase_))).flatten(1);
  }

 private:
  Tensor filter(const Tensor& x, const Tensor& response) const {
    return torch::fft::irfft2(times_state(torch::fft::rfft2(x), response), {{shape_.height, shape_.width}});
  }

  ImageShape shape_;
  Tensor transfer_, phase_,
      inverse_;   // [B, 1, H, W / 2 + 1]: D, D / |D| and 1 / D, the last two zero where lost
  Tensor plane_;  // [B, 1, H, W]: |D|, zero where lost
  std::string spec_;
};

}  // namespace

Tensor transfer_function(const Tensor& kernels, std::int64_t height, std::int64_t width) {
  const Tensor plane = wrapped(wrapped(kernels.to(torch::kDouble), 1, height), 2, width);
  return torch::fft::rfft2(plane).unsqueeze(1);
}

std::shared_ptr<const SpectralOperator> make_fourier_blur(const ImageShape& shape, const Tensor& kernels,
                                                          std::string spec) {
  check_shape(spec, shape);
  check(kernels.dim() == 3 && kernels.numel() > 0, "The kernels of \"", spec,
        "\" must be [images, height, width].");
  return std::make_shared<FourierBlur>(shape, kernels, std::move(spec));
}

}  // namespace dpg
