#include "dpg/solve/pigdm.h"

#include <torch/torch.h>

#include <cmath>
#include <map>

#include "dpg/core/error.h"
#include "dpg/solve/damped_inverse.h"
#include "dpg/solve/measured_guide.h"
#include "dpg/solve/method_entry.h"

namespace dpg {

template <class Visitor>
void fields(Visitor& visit, PigdmOptions& o) {
  sampler_fields(visit, o.sampler);
  visit("scale", o.scale);
}

namespace {

// Whether A gives pictures of the size it takes and tells nothing else: read as an encoder and its decoder,
// whose pseudo-inverse is the identity.
bool is_encode_decode(const Operator& A) {
  const ImageShape in = A.input_shape();
  return !as_differentiable(A) &&
         A.output_shape() == std::vector<std::int64_t>{in.channels, in.height, in.width};
}

// x_{i-1} <- DDIM step + sqrt(abar) J^T (the vector that would bring x0 to the measurement).
class PseudoInverseGuide : public MeasuredGuide {
 public:
  PseudoInverseGuide(const Measurement& m, double scale)
      : MeasuredGuide(m), A_(as_linear(*m.A)), scale_(scale), levels_(noise_levels(m)) {}

 private:
  Tensor move(const ReverseStep& step, const Tensor&, const Tensor& e) override {
    const double abar = step.schedule.alpha_bar()[static_cast<std::size_t>(step.i)];
    return scale_ * std::sqrt(abar) * step.denoised.pull_back(A_ ? linear_direction(e, abar) : e);
  }

  Tensor linear_direction(const Tensor& e, double abar) {
    const double r_squared = 1 - abar;  // sigma_t^2 / (1 + sigma_t^2), sigma_t^2 = (1 - abar) / abar
    std::vector<double> lambdas;
    for (const double level : levels_) lambdas.push_back(level * level / r_squared);
    ++operator_calls;  // the adjoint
    return pseudo_inverse_direction(*A_, e, lambdas);
  }

  const LinearOperator* A_;  // null: an encode-decode pair
  double scale_;
  std::vector<double> levels_;  // sigma_y of each image
};

}  // namespace

Tensor pseudo_inverse_direction(const LinearOperator& A, const Tensor& e,
                                const std::vector<double>& lambdas) {
  // Below this the solve divides rounding errors by lambda where A loses a direction.
  constexpr double kNone = 1e-8;
  std::map<double, std::vector<std::int64_t>> rows;  // of each lambda; most often there is one
  for (std::size_t i = 0; i < lambdas.size(); ++i)
    rows[lambdas[i] < kNone ? 0 : lambdas[i]].push_back(static_cast<std::int64_t>(i));
  const auto solve = [&](double lambda) { return damped_inverse(A, e, lambda); };
  Tensor direction = solve(rows.begin()->first);
  // An operator with one state per image takes whole batches only, so each lambda is solved for all rows.
  for (auto next = std::next(rows.begin()); next != rows.end(); ++next) {
    const Tensor index = torch::tensor(next->second, torch::kLong).to(e.device());
    direction = direction.index_copy(0, index, solve(next->first).index_select(0, index));
  }
  return direction;
}

void validate(const PigdmOptions& o) {
  validate(o.sampler);
  check(o.scale >= 0, "scale = ", o.scale, " must not be negative");
}

Pigdm::Pigdm(PigdmOptions options) : options_(std::move(options)) {
  validate(options_);
}

void Pigdm::check_problem(const Measurement& m) const {
  if (!is_encode_decode(*m.A)) need_linear(kName, m);
}

Result Pigdm::solve(const Measurement& measurement, const Prior& prior, const Rng& rng,
                    std::span<const std::uint32_t> images, const Observer& observer) const {
  check_problem(measurement);
  check_sizes(measurement, prior, images);
  const Measurement m = to_device(measurement, prior.device());
  PseudoInverseGuide guide(m, options_.scale);
  return run_guided(guide, options_.sampler, m.A->input_shape(), prior, rng, images, observer);
}

MethodEntry pigdm_entry() {
  return method_entry<Pigdm, PigdmOptions>(
      {"", "pseudoinverse-guided diffusion: linear operators, and encode-decode pairs such as JPEG",
       "Song et al., Pseudoinverse-guided diffusion models for inverse problems, ICLR 2023",
       "linear, or encode and decode"});
}

}  // namespace dpg
