#include "dpg/measure/padded_blur.h"

#include <torch/torch.h>

#include <algorithm>
#include <utility>

#include "dpg/core/error.h"
#include "dpg/measure/conjugate_gradient.h"
#include "dpg/measure/fourier_blur.h"

namespace dpg {
namespace {

// The next length at which FFTs are fast: even, no prime factor above 5.
std::int64_t fast_length(std::int64_t length) {
  for (std::int64_t candidate = length + length % 2;; candidate += 2) {
    std::int64_t rest = candidate;
    for (const std::int64_t prime : {2, 3, 5})
      while (rest % prime == 0) rest /= prime;
    if (rest == 1) return candidate;
  }
}

// One axis: `length` pixels, extended by `before` and `after` mirrored ones, on a periodic plane of `plane`
// samples that is long enough for nothing to wrap around into the picture.
struct Axis {
  std::int64_t length, before = 0, after = 0, plane;

  Axis(std::int64_t pixels, std::int64_t kernel, Boundary boundary) : length(pixels) {
    const std::int64_t reach_after = kernel / 2, reach_before = kernel - 1 - reach_after;
    if (boundary == Boundary::reflect) {
      before = reach_before;
      after = reach_after;
    }
    plane = fast_length(length + (boundary == Boundary::reflect ? before + after : reach_after));
  }
};

// The transpose of reflection padding along `dim`: mirrored samples are added to the pixels they were copied
// from.
Tensor fold(const Tensor& extended, std::int64_t dim, const Axis& axis) {
  Tensor out = extended.narrow(dim, axis.before, axis.length).clone();
  if (axis.before > 0) out.narrow(dim, 1, axis.before) += extended.narrow(dim, 0, axis.before).flip(dim);
  if (axis.after > 0)
    out.narrow(dim, axis.length - 1 - axis.after, axis.after) +=
        extended.narrow(dim, axis.before + axis.length, axis.after).flip(dim);
  return out;
}

class PaddedBlur final : public LinearOperator {
 public:
  PaddedBlur(const ImageShape& shape, const Tensor& kernels, Boundary boundary, std::string spec)
      : shape_(shape),
        vertical_(shape.height, kernels.size(1), boundary),
        horizontal_(shape.width, kernels.size(2), boundary),
        transfer_(transfer_function(kernels, vertical_.plane, horizontal_.plane).to(torch::kComplexFloat)),
        spec_(std::move(spec)) {}

  ImageShape input_shape() const override { return shape_; }
  std::vector<std::int64_t> output_shape() const override {
    return {shape_.channels, shape_.height, shape_.width};
  }
  std::int64_t batch() const override { return transfer_.size(0); }
  std::string spec() const override { return spec_; }
  std::shared_ptr<const Operator> to(torch::Device device) const override {
    auto copy = std::make_shared<PaddedBlur>(*this);
    copy->transfer_ = transfer_.to(device);
    return copy;
  }

  Tensor apply(const Tensor& x) const override {
    check_input(x);
    return in_chunks(x, [&](const Tensor& part) { return crop(filter(extend(part), transfer_)); });
  }
  Tensor adjoint(const Tensor& y) const override {
    check_output(y);
    return in_chunks(
        y, [&](const Tensor& part) { return unextend(filter(uncrop(part), torch::conj(transfer_))); });
  }
  Tensor pseudo_inverse(const Tensor& y) const override { return pseudo_inverse_by_cg(*this, y); }
  Tensor regularised_solve(const Tensor& v, double lambda) const override {
    check_input(v);
    return regularised_solve_by_cg(*this, v, lambda);
  }

 private:
  // Padded spectra are several times the picture: on the CPU a few images at a time stay in the cache.
  template <class Function>
  Tensor in_chunks(const Tensor& x, const Function& function) const {
    const std::int64_t rows = batch() * std::max<std::int64_t>(1, kChunk / batch());
    if (!x.is_cpu() || x.size(0) <= rows) return function(x);
    std::vector<Tensor> parts;
    for (const Tensor& part : x.split(rows)) parts.push_back(function(part));
    return torch::cat(parts);
  }

  Tensor filter(const Tensor& x, const Tensor& response) const {
    const std::vector<std::int64_t> plane = {vertical_.plane, horizontal_.plane};
    return torch::fft::irfft2(times_state(torch::fft::rfft2(x, plane), response), plane);
  }

  // The picture with its mirrored surroundings; zeros after it come with the FFT's own padding.
  Tensor extend(const Tensor& x) const {
    if (vertical_.before + vertical_.after + horizontal_.before + horizontal_.after == 0) return x;
    return torch::reflection_pad2d(
        x, {horizontal_.before, horizontal_.after, vertical_.before, vertical_.after});
  }
  Tensor unextend(const Tensor& plane) const { return fold(fold(plane, 2, vertical_), 3, horizontal_); }

  Tensor crop(const Tensor& plane) const {
    return plane.narrow(2, vertical_.before, vertical_.length)
        .narrow(3, horizontal_.before, horizontal_.length);
  }
  Tensor uncrop(const Tensor& y) const {
    return torch::constant_pad_nd(y, {horizontal_.before, 0, vertical_.before, 0});
  }

  static constexpr std::int64_t kChunk = 8;

  ImageShape shape_;
  Axis vertical_, horizontal_;
  Tensor transfer_;  // [B, 1, plane height, plane width / 2 + 1]
  std::string spec_;
};

}  // namespace

std::shared_ptr<const LinearOperator> make_padded_blur(const ImageShape& shape, const Tensor& kernels,
                                                       Boundary boundary, std::string spec) {
  check_shape(spec, shape);
  check(boundary != Boundary::circular, "A padded blur is reflect or zero; circular is make_fourier_blur.");
  check(kernels.dim() == 3 && kernels.numel() > 0, "The kernels of \"", spec,
        "\" must be [images, height, width].");
  check_reach(spec, kernels.size(1), shape.height, boundary);
  check_reach(spec, kernels.size(2), shape.width, boundary);
  return std::make_shared<PaddedBlur>(shape, kernels, boundary, std::move(spec));
}

}  // namespace dpg
