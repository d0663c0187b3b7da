#include "dpg/measure/jpeg_operator.h"

#include <torch/torch.h>

#include "dpg/core/error.h"
#include "dpg/measure/jpeg_round_trip.h"

namespace dpg {
namespace {

class Jpeg : public Operator {
 public:
  Jpeg(const ImageShape& shape, const JpegOptions& options) : shape_(shape), options_(options) {}

  Tensor apply(const Tensor& x) const override {
    check_input(x);
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

 private:
  ImageShape shape_;
  JpegOptions options_;
};

}  // namespace

void JpegOptions::validate() const {
  check(quality >= 1 && quality <= 100, "jpeg: quality ", quality,
        " is outside 1 to 100; the nearest valid value is ", quality < 1 ? 1 : 100);
}

std::string JpegOptions::spec() const {
  return str("jpeg:quality=", quality, ",chroma=", chroma == Chroma::half ? "420" : "444");
}

std::shared_ptr<const Operator> make_jpeg(const ImageShape& shape, const JpegOptions& options) {
  options.validate();
  check(jpeg_available(),
        "this build has no JPEG codec; install libjpeg's development files and configure again");
  check(shape.channels == 1 || shape.channels == 3, "jpeg takes pictures of 1 or 3 channels, not ",
        shape.channels, "; convert the picture to grey or RGB first");
  check(shape.height <= 65500 && shape.width <= 65500, "jpeg takes at most 65500 pixels a side, not ",
        shape.width, "x", shape.height, "; make the picture smaller");
  return std::make_shared<Jpeg>(shape, options);
}

}  // namespace dpg
