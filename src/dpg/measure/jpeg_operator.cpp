#include "dpg/measure/jpeg_operator.h"

#include <torch/torch.h>

#include "dpg/core/error.h"
#include "dpg/measure/jpeg_round_trip.h"

namespace dpg {
namespace {

// Base: Operator, or DifferentiableOperator where a stand-in for the derivative follows.
template <class Base>
class Jpeg : public Base {
 public:
  Jpeg(const ImageShape& shape, const JpegOptions& options) : shape_(shape), options_(options) {}

  Tensor apply(const Tensor& x) const override {
    this->check_input(x);
    // Codecs want bytes, interleaved: [N, H, W, C].
    const Tensor pixels = torch::round((x.detach().clamp(-1, 1) + 1) * 127.5)
                              .to(torch::kCPU, torch::kUInt8)
                              .permute({0, 2, 3, 1})
                              .contiguous();
    const JpegPictures pictures{pixels.data_ptr<std::uint8_t>(), pixels.size(0), shape_.height, shape_.width,
                                shape_.channels};
    jpeg_round_trip(pictures, static_cast<int>(options_.quality),
                    options_.chroma == JpegOptions::Chroma::half, at::get_num_threads());
    return (pixels.permute({0, 3, 1, 2}).to(x.dtype()) / 127.5 - 1).contiguous().to(x.device());
  }
  ImageShape input_shape() const override { return shape_; }
  std::vector<std::int64_t> output_shape() const override {
    return {shape_.channels, shape_.height, shape_.width};
  }
  std::string spec() const override { return options_.spec(); }
  std::shared_ptr<const Operator> to(torch::Device) const override { return std::make_shared<Jpeg>(*this); }

 protected:
  ImageShape shape_;
  JpegOptions options_;
};

class StraightJpeg : public Jpeg<DifferentiableOperator> {
 public:
  using Jpeg::Jpeg;

  Tensor vjp(const Tensor& x, const Tensor& v) const override {
    check_input(x);
    const torch::AutoGradMode on(true);
    const Tensor at = x.detach().requires_grad_(true);
    return torch::autograd::grad({without_rounding(at)}, {at}, {v})[0];
  }
  std::shared_ptr<const Operator> to(torch::Device) const override {
    return std::make_shared<StraightJpeg>(*this);
  }

 private:
  // Luma is kept; colour is averaged over 2x2 pixels and interpolated again, as libjpeg does it.
  Tensor without_rounding(const Tensor& x) const {
    if (shape_.channels == 1 || options_.chroma == JpegOptions::Chroma::full) return x;
    const Tensor weights = torch::tensor({0.299, 0.587, 0.114}, x.options()).view({1, 3, 1, 1});
    const Tensor luma = (x * weights).sum(1, true);
    const Tensor even = torch::replication_pad2d(x - luma, {0, shape_.width % 2, 0, shape_.height % 2});
    const Tensor half = torch::avg_pool2d(even, {2, 2});
    const Tensor colour = torch::upsample_bilinear2d(half, {even.size(2), even.size(3)}, false);
    return luma + colour.slice(2, 0, shape_.height).slice(3, 0, shape_.width);
  }
};

}  // namespace

void JpegOptions::validate() const {
  check(quality >= 1 && quality <= 100, "jpeg: quality ", quality,
        " is outside 1 to 100; the nearest valid value is ", quality < 1 ? 1 : 100);
}

std::string JpegOptions::spec() const {
  return str("jpeg:quality=", quality, ",chroma=", chroma == Chroma::half ? "420" : "444",
             straight ? ",gradient=straight" : "");
}

std::shared_ptr<const Operator> make_jpeg(const ImageShape& shape, const JpegOptions& options) {
  options.validate();
  check(jpeg_available(),
        "this build has no JPEG codec; install libjpeg's development files and configure again");
  check(shape.channels == 1 || shape.channels == 3, "jpeg takes pictures of 1 or 3 channels, not ",
        shape.channels, "; convert the picture to grey or RGB first");
  check(shape.height <= 65500 && shape.width <= 65500, "jpeg takes at most 65500 pixels a side, not ",
        shape.width, "x", shape.height, "; make the picture smaller");
  if (options.straight) return std::make_shared<StraightJpeg>(shape, options);
  return std::make_shared<Jpeg<Operator>>(shape, options);
}

}  // namespace dpg
