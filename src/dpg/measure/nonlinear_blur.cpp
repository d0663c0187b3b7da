#include "dpg/measure/nonlinear_blur.h"

#include <torch/torch.h>

#include "dpg/core/error.h"
#include "dpg/measure/spec.h"

namespace dpg {
namespace {

class NonlinearBlur : public DifferentiableOperator {
 public:
  NonlinearBlur(std::shared_ptr<const LinearOperator> frames, double exposure, std::string spec)
      : frames_(std::move(frames)), exposure_(exposure), spec_(std::move(spec)) {}

  Tensor apply(const Tensor& x) const override {
    check_input(x);
    return display(exposed(x));
  }

  Tensor vjp(const Tensor& x, const Tensor& v) const override {
    const torch::AutoGradMode track(true);
    // The frames' average is linear: its adjoint is cheaper than autograd through it.
    const Tensor light = exposed(x).detach().requires_grad_(true);
    const Tensor at_light = torch::autograd::grad({display(light)}, {light}, {v})[0];
    const Tensor start = x.detach().requires_grad_(true);
    return torch::autograd::grad({srgb_to_linear((start + 1) / 2)}, {start},
                                 {exposure_ * frames_->adjoint(at_light)})[0];
  }

  ImageShape input_shape() const override { return frames_->input_shape(); }
  std::vector<std::int64_t> output_shape() const override { return frames_->output_shape(); }
  std::int64_t batch() const override { return frames_->batch(); }
  std::string spec() const override { return spec_; }
  std::shared_ptr<const Operator> to(torch::Device device) const override {
    return std::make_shared<NonlinearBlur>(
        std::dynamic_pointer_cast<const LinearOperator>(frames_->to(device)), exposure_, spec_);
  }

 private:
  Tensor exposed(const Tensor& x) const { return exposure_ * frames_->apply(srgb_to_linear((x + 1) / 2)); }
  static Tensor display(const Tensor& light) { return 2 * linear_to_srgb(torch::clamp_max(light, 1)) - 1; }

  std::shared_ptr<const LinearOperator> frames_;
  double exposure_;
  std::string spec_;
};

}  // namespace

// In both curves the power's argument is kept away from where its derivative is infinite or not a number; the
// branch that `where` does not take then contributes a clean zero to the gradient.
Tensor srgb_to_linear(const Tensor& display) {
  constexpr double kKnee = 0.04045;
  return torch::where(display <= kKnee, display / 12.92,
                      torch::pow((torch::clamp_min(display, kKnee) + 0.055) / 1.055, 2.4));
}

Tensor linear_to_srgb(const Tensor& light) {
  constexpr double kKnee = 0.0031308;
  return torch::where(light <= kKnee, light * 12.92,
                      1.055 * torch::pow(torch::clamp_min(light, kKnee), 1 / 2.4) - 0.055);
}

void NonlinearBlurOptions::validate(const ImageShape& shape) const {
  motion.validate(shape);
  check(exposure > 0 && exposure <= 100, "nonlinear-blur: exposure ", exposure,
        " is outside 0 (not included) to 100; 1.2 is usual");
}

std::string NonlinearBlurOptions::spec() const {
  Spec spec = parse_spec(motion.spec());  // the motion's options, under this operator's name
  spec.name = "nonlinear-blur";
  spec.arguments.push_back({"exposure", number_text(exposure)});
  return to_text(spec);
}

std::shared_ptr<const DifferentiableOperator> make_nonlinear_blur(const ImageShape& shape,
                                                                  const NonlinearBlurOptions& options,
                                                                  const Rng& rng,
                                                                  std::span<const std::uint32_t> images) {
  options.validate(shape);
  NonlinearBlurOptions resolved = options;
  resolved.motion = options.motion.resolved(shape);
  return std::make_shared<NonlinearBlur>(make_motion_blur(shape, resolved.motion, rng, images),
                                         resolved.exposure, resolved.spec());
}

}  // namespace dpg
