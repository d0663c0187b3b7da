#include "dpg/measure/mask.h"

#include <torch/torch.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "dpg/core/error.h"
#include "dpg/image/image.h"
#include "dpg/measure/random_order.h"
#include "dpg/measure/spec.h"

namespace dpg {
namespace {

class Mask final : public SpectralOperator {
 public:
  Mask(const ImageShape& shape, const Tensor& keep, std::string spec)
      : shape_(shape), keep_(keep.unsqueeze(1)), spec_(std::move(spec)) {
    kept_ = static_cast<std::int64_t>(keep[0].sum().item<double>());
  }

  ImageShape input_shape() const override { return shape_; }
  std::vector<std::int64_t> output_shape() const override {
    return {shape_.channels, shape_.height, shape_.width};
  }
  std::int64_t batch() const override { return keep_.size(0); }
  std::string spec() const override { return spec_; }
  std::shared_ptr<const Operator> to(torch::Device device) const override {
    auto copy = std::make_shared<Mask>(*this);
    copy->keep_ = keep_.to(device);
    return copy;
  }
  Tensor observed_mask() const override { return keep_; }
  std::int64_t measurements() const override { return kept_ * shape_.channels; }

  Tensor apply(const Tensor& x) const override {
    check_input(x);
    return times_state(x, keep_);
  }
  Tensor adjoint(const Tensor& y) const override {
    check_output(y);
    return times_state(y, keep_);
  }
  Tensor pseudo_inverse(const Tensor& y) const override { return adjoint(y); }
  Tensor regularised_solve(const Tensor& v, double lambda) const override {
    check_input(v);
    check_lambda(lambda);
    return times_state(v, 1 / (keep_ + lambda));
  }

  Tensor singular_values() const override {
    return keep_.expand({-1, shape_.channels, -1, -1}).flatten(1).contiguous();
  }
  Tensor V(const Tensor& s) const override { return s.unflatten(1, output_shape()); }
  Tensor Vt(const Tensor& x) const override { return x.flatten(1); }
  Tensor U(const Tensor& s) const override { return times_state(V(s), keep_); }
  Tensor Ut(const Tensor& y) const override { return times_state(y, keep_).flatten(1); }

 private:
  ImageShape shape_;
  Tensor keep_;  // [B, 1, H, W], ones and zeros
  std::int64_t kept_ = 0;
  std::string spec_;
};

struct Box {
  std::int64_t top, left, height, width;
};

// The kept pixels around a random box along one side, as asked or as far as the side has room.
std::int64_t margin_of(const BoxMaskOptions& options, std::int64_t side, std::int64_t box) {
  return options.margin.value_or(std::min(side / 16, (side - box) / 2));
}

Box place_box(const ImageShape& shape, const BoxMaskOptions& options, const Rng& rng, std::uint32_t image) {
  Box box{0, 0, options.height.value_or(shape.height / 2), options.width.value_or(shape.width / 2)};
  if (options.top) {
    box.top = *options.top;
    box.left = *options.left;
  } else if (options.position == BoxMaskOptions::Position::centre) {
    box.top = (shape.height - box.height) / 2;
    box.left = (shape.width - box.width) / 2;
  } else {
    float u[2];
    rng.uniform({image, kBeforeFirstStep, kOperatorChoices}, u);
    const auto place = [&](float number, std::int64_t side, std::int64_t length) {
      const std::int64_t margin = margin_of(options, side, length);
      const std::int64_t places = side - length - 2 * margin + 1;
      return margin + std::min(places - 1, static_cast<std::int64_t>(number * static_cast<double>(places)));
    };
    box.top = place(u[0], shape.height, box.height);
    box.left = place(u[1], shape.width, box.width);
  }
  return box;
}

void check_side(const BoxMaskOptions& options, const char* side_name, std::int64_t side, std::int64_t box,
                const std::optional<std::int64_t>& start) {
  check(box >= 1 && box <= side, "inpaint:box has ", side_name, " = ", box, ": it must be between 1 and ",
        side, ", the image's ", side_name, ".");
  if (start) {
    check(*start >= 0 && *start + box <= side, "inpaint:box lies from ", *start, " to ", *start + box,
          " along the ", side_name, ": it must lie within 0 and ", side, ".");
  } else if (options.position == BoxMaskOptions::Position::random) {
    const std::int64_t margin = margin_of(options, side, box);
    check(margin >= 0 && box + 2 * margin <= side, "inpaint:box has margin = ", margin, ": with a box of ",
          box, " it must be between 0 and ", (side - box) / 2, " to fit the image's ", side_name, " of ",
          side, ".");
  }
}

}  // namespace

std::shared_ptr<const SpectralOperator> make_mask(const ImageShape& shape, const Tensor& keep,
                                                  std::string spec) {
  check_shape(spec, shape);
  check(keep.dim() == 3 && keep.size(0) >= 1 && keep.size(1) == shape.height && keep.size(2) == shape.width,
        "The masks of \"", spec, "\" must be [images, ", shape.height, ", ", shape.width, "].");
  const Tensor ones = keep.to(torch::kFloat);
  check(((ones == 0) | (ones == 1)).all().item<bool>(), "The masks of \"", spec,
        "\" must hold nothing but ones and zeros.");
  const Tensor counts = ones.sum({1, 2}, /*keepdim=*/false, torch::kDouble);
  check((counts == counts[0]).all().item<bool>(), "The masks of \"", spec,
        "\" must keep the same number of pixels in every image.");
  check(counts[0].item<double>() > 0, "The mask of \"", spec,
        "\" keeps no pixel: nothing would be measured.");
  return std::make_shared<Mask>(shape, ones, std::move(spec));
}

void BoxMaskOptions::validate(const ImageShape& shape) const {
  check(top.has_value() == left.has_value(), "inpaint:box needs both top and left, or neither.");
  check_side(*this, "height", shape.height, height.value_or(shape.height / 2), top);
  check_side(*this, "width", shape.width, width.value_or(shape.width / 2), left);
}

std::string BoxMaskOptions::spec() const {
  Spec text{"inpaint", {{"", "box"}}};
  const auto add = [&](const char* key, const std::optional<std::int64_t>& value) {
    if (value) text.arguments.push_back({key, std::to_string(*value)});
  };
  add("height", height);
  add("width", width);
  add("margin", margin);
  if (position == Position::centre) text.arguments.push_back({"position", "centre"});
  add("top", top);
  add("left", left);
  return to_text(text);
}

std::shared_ptr<const SpectralOperator> make_box_mask(const ImageShape& shape, const BoxMaskOptions& options,
                                                      const Rng& rng, std::span<const std::uint32_t> images) {
  check_shape(options.spec(), shape);
  options.validate(shape);
  Tensor keep = torch::ones({static_cast<std::int64_t>(images.size()), shape.height, shape.width});
  for (std::size_t i = 0; i < images.size(); ++i) {
    const Box box = place_box(shape, options, rng, images[i]);
    keep[static_cast<std::int64_t>(i)]
        .slice(0, box.top, box.top + box.height)
        .slice(1, box.left, box.left + box.width)
        .zero_();
  }
  return make_mask(shape, keep, options.spec());
}

void RandomMaskOptions::validate() const {
  check(removed >= 0 && removed < 1, "inpaint:random has removed = ", removed, ": it must be in [0, 1).");
}

std::string RandomMaskOptions::spec() const {
  return to_text({"inpaint", {{"", "random"}, {"removed", number_text(removed)}}});
}

std::shared_ptr<const SpectralOperator> make_random_mask(const ImageShape& shape,
                                                         const RandomMaskOptions& options, const Rng& rng,
                                                         std::span<const std::uint32_t> images) {
  check_shape(options.spec(), shape);
  options.validate();
  const std::int64_t pixels = shape.height * shape.width;
  const auto removed = static_cast<std::int64_t>(std::llround(options.removed * static_cast<double>(pixels)));
  const std::int64_t kept = std::max<std::int64_t>(1, pixels - removed);
  Tensor keep = torch::zeros({static_cast<std::int64_t>(images.size()), pixels});
  for (std::size_t i = 0; i < images.size(); ++i) {
    const auto order = random_order(pixels, rng, {images[i], kBeforeFirstStep, kOperatorChoices});
    float* row = keep.data_ptr<float>() + static_cast<std::int64_t>(i) * pixels;
    for (std::int64_t j = 0; j < kept; ++j) row[order[static_cast<std::size_t>(j)]] = 1;
  }
  return make_mask(shape, keep.unflatten(1, {shape.height, shape.width}), options.spec());
}

void FileMaskOptions::validate() const {
  check(!file.empty(), "inpaint:mask needs the name of a mask image.");
}

std::string FileMaskOptions::spec() const {
  Spec text{"inpaint", {{"mask", file.string()}}};
  if (invert) text.arguments.push_back({"invert", "yes"});
  return to_text(text);
}

std::shared_ptr<const SpectralOperator> make_file_mask(const ImageShape& shape,
                                                       const FileMaskOptions& options) {
  check_shape(options.spec(), shape);
  options.validate();
  const Image image = read_image(options.file);
  check(image.height == shape.height && image.width == shape.width, "The mask ", options.file.string(),
        " has ", image.width, " x ", image.height, " pixels, the image has ", shape.width, " x ",
        shape.height, ": they must be of the same size.");
  const int colours = image.channels >= 3 ? 3 : 1;  // alpha says nothing about brightness
  Tensor keep = torch::zeros({1, shape.height, shape.width});
  auto pixel = keep.accessor<float, 3>();
  for (int y = 0; y < image.height; ++y)
    for (int x = 0; x < image.width; ++x) {
      float brightness = 0;
      for (int c = 0; c < colours; ++c) brightness += image.at(c, y, x);
      pixel[0][y][x] = (brightness >= 0) != options.invert ? 1.0F : 0.0F;
    }
  return make_mask(shape, keep, options.spec());
}

void UncropOptions::validate(const ImageShape& shape) const {
  check(keep > 0 && keep < 1, "uncrop has keep = ", keep, ": it must be between 0 and 1.");
  const bool along_width = side == Side::left || side == Side::right;
  const std::int64_t shortest = kind == Kind::border ? std::min(shape.height, shape.width)
                                : along_width        ? shape.width
                                                     : shape.height;
  check(std::llround(keep * static_cast<double>(shortest)) >= 1, "uncrop has keep = ", keep, ": of ",
        shortest, " pixels that keeps none.");
}

std::string UncropOptions::spec() const {
  static constexpr const char* kSides[] = {"left", "right", "top", "bottom"};
  Spec text{"uncrop", {{"", kind == Kind::half ? "half" : "border"}, {"keep", number_text(keep)}}};
  if (kind == Kind::half) text.arguments.push_back({"side", kSides[static_cast<int>(side)]});
  return to_text(text);
}

std::shared_ptr<const SpectralOperator> make_uncrop(const ImageShape& shape, const UncropOptions& options) {
  check_shape(options.spec(), shape);
  options.validate(shape);
  const auto part = [&](std::int64_t side) { return std::llround(options.keep * static_cast<double>(side)); };
  using Side = UncropOptions::Side;
  Box box{0, 0, shape.height, shape.width};
  if (options.kind == UncropOptions::Kind::border) {
    box.height = part(shape.height);
    box.width = part(shape.width);
    box.top = (shape.height - box.height) / 2;
    box.left = (shape.width - box.width) / 2;
  } else if (options.side == Side::left || options.side == Side::right) {
    box.width = part(shape.width);
    if (options.side == Side::right) box.left = shape.width - box.width;
  } else {
    box.height = part(shape.height);
    if (options.side == Side::bottom) box.top = shape.height - box.height;
  }
  Tensor keep = torch::zeros({1, shape.height, shape.width});
  keep.slice(1, box.top, box.top + box.height).slice(2, box.left, box.left + box.width).fill_(1);
  return make_mask(shape, keep, options.spec());
}

}  // namespace dpg
