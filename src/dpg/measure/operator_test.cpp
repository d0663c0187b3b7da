// Properties that every linear operator must have, over all of them: several sizes, boundaries, batches, and
// one state per image with rows that are a multiple of the images.
#include "dpg/measure/operator.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <functional>

#include "dpg/core/error.h"
#include "dpg/measure/bicubic.h"
#include "dpg/measure/colour.h"
#include "dpg/measure/cropped.h"
#include "dpg/measure/downsample.h"
#include "dpg/measure/gaussian_blur.h"
#include "dpg/measure/hadamard.h"
#include "dpg/measure/kernel_blur.h"
#include "dpg/measure/mask.h"
#include "dpg/measure/motion_kernel.h"

namespace dpg {
namespace {

constexpr Boundary kBoundaries[] = {Boundary::reflect, Boundary::circular, Boundary::zero};
const std::vector<std::uint32_t> kImages = {0, 5, 2};

struct Case {
  std::string label;
  std::function<std::shared_ptr<const LinearOperator>()> make;
};

void PrintTo(const Case& c, std::ostream* out) {
  *out << c.label;
}

std::vector<Case> cases_of(const ImageShape& shape, std::int64_t factor) {
  const std::string size = str("_", shape.channels, "x", shape.height, "x", shape.width);
  const Rng rng(7);
  std::vector<Case> out = {
      {"Identity", [=] { return make_identity(shape); }},
      {"Gray", [=] { return make_gray(shape); }},
      {"Box", [=] { return make_box_mask(shape, {}, rng, kImages); }},
      {"Random", [=] { return make_random_mask(shape, {.removed = 0.7}, rng, kImages); }},
      {"Half", [=] { return make_uncrop(shape, {}); }},
      {"Border", [=] { return make_uncrop(shape, {.kind = UncropOptions::Kind::border}); }},
      {"Pooling", [=] { return make_downsample(shape, {factor}); }},
      {"Bicubic", [=] { return make_bicubic(shape, {factor}); }},
      {"Sensing", [=] { return make_compressed_sensing(shape, {.ratio = 0.3}, rng); }},
  };
  out.push_back({"CroppedBlur", [=] {
                   const ImageShape seen{shape.channels, shape.height - 2, shape.width - 1};
                   return std::dynamic_pointer_cast<const LinearOperator>(on_larger(
                       make_gaussian_blur(seen, {.sigma = 0.8, .size = 5}), shape.height, shape.width));
                 }});
  if (shape.channels == 3)
    out.push_back({"Luma", [=] { return make_gray(shape, {GrayOptions::Weights::luma}); }});
  for (const Boundary boundary : kBoundaries) {
    const std::string edge = str("_", name(boundary));
    out.push_back({"Gaussian" + edge, [=] {
                     return make_gaussian_blur(shape, {.sigma = 0.8, .size = 7, .boundary = boundary});
                   }});
    out.push_back({"Motion" + edge,
                   [=] { return make_motion_blur(shape, {.size = 5, .boundary = boundary}, rng, kImages); }});
    out.push_back({"EvenKernel" + edge, [=] {
                     torch::manual_seed(4);
                     return make_kernel_blur(shape, torch::rand({1, 4, 3}), boundary, "kernel:random");
                   }});
  }
  for (Case& c : out) c.label += size;
  return out;
}

std::vector<Case> all_cases() {
  std::vector<Case> out = cases_of({3, 8, 8}, 2);
  for (const auto& [shape, factor] : {std::pair{ImageShape{3, 9, 15}, 3}, std::pair{ImageShape{1, 12, 8}, 4}})
    for (Case& c : cases_of(shape, factor)) out.push_back(std::move(c));
  return out;
}

class LinearOperatorTest : public testing::TestWithParam<Case> {
 protected:
  void SetUp() override {
    torch::manual_seed(1);
    op_ = GetParam().make();
  }

  Tensor random_input(std::int64_t repeats = 2) const {
    const ImageShape s = op_->input_shape();
    return torch::randn({repeats * op_->batch(), s.channels, s.height, s.width});
  }
  Tensor random_output(std::int64_t repeats = 2) const {
    std::vector<std::int64_t> sizes = op_->output_shape();
    sizes.insert(sizes.begin(), repeats * op_->batch());
    return torch::randn(sizes);
  }
  // A^T of every image, [B, elements, measurement numbers], float64, from the images of unit vectors.
  Tensor dense_transposed() const {
    const ImageShape s = op_->input_shape();
    const Tensor units = torch::eye(s.elements()).repeat_interleave(op_->batch(), 0);
    const Tensor rows = op_->apply(units.view({-1, s.channels, s.height, s.width})).flatten(1);
    return rows.unflatten(0, {s.elements(), op_->batch()}).transpose(0, 1).to(torch::kDouble);
  }

  std::shared_ptr<const LinearOperator> op_;
};

class SpectralOperatorTest : public LinearOperatorTest {
 protected:
  void SetUp() override {
    LinearOperatorTest::SetUp();
    spectral_ = as_spectral(*op_);
    if (!spectral_) GTEST_SKIP() << GetParam().label << " has no closed decomposition";
  }
  Tensor random_coefficients() const {
    return torch::randn({2 * op_->batch(), op_->input_shape().elements()});
  }

  const SpectralOperator* spectral_ = nullptr;
};

double relative_error(const Tensor& actual, const Tensor& expected) {
  return ((actual - expected).to(torch::kDouble).norm() / expected.to(torch::kDouble).norm()).item<double>();
}

double inner_product(const Tensor& a, const Tensor& b) {
  return (a.to(torch::kDouble) * b.to(torch::kDouble)).sum().item<double>();
}

TEST_P(LinearOperatorTest, AdjointIsTheTranspose) {
  const Tensor x = random_input(), y = random_output();
  const Tensor ax = op_->apply(x);
  ASSERT_EQ(ax.sizes(), y.sizes());
  const double scale = ax.norm().item<double>() * y.norm().item<double>();
  EXPECT_NEAR(inner_product(ax, y), inner_product(x, op_->adjoint(y)), 1e-5 * scale);
  EXPECT_LT(relative_error(op_->adjoint(y), op_->DifferentiableOperator::vjp(x, y)), 1e-5);
}

TEST_P(LinearOperatorTest, IsLinear) {
  const Tensor x = random_input(), z = random_input();
  EXPECT_LT(relative_error(op_->apply(2 * x - 3 * z), 2 * op_->apply(x) - 3 * op_->apply(z)), 1e-5);
}

TEST_P(LinearOperatorTest, RowsBelongToTheirImages) {
  const Tensor x = random_input(3);
  const Tensor together = op_->apply(x), back = op_->adjoint(together);
  for (std::int64_t k = 0; k < 3; ++k) {
    const auto part = [&](const Tensor& t) { return t.narrow(0, k * op_->batch(), op_->batch()); };
    EXPECT_LT(relative_error(part(together), op_->apply(part(x))), 1e-6);
    EXPECT_LT(relative_error(part(back), op_->adjoint(part(together))), 1e-6);
  }
}

TEST_P(LinearOperatorTest, RegularisedSolveMatchesADenseOne) {
  const Tensor at = dense_transposed();
  const Tensor v = random_input(1);
  const Tensor right = v.flatten(1).unsqueeze(2).to(torch::kDouble);
  for (const double lambda : {30.0, 0.5, 0.02}) {
    const Tensor system =
        torch::matmul(at, at.transpose(1, 2)) + lambda * torch::eye(at.size(1), torch::kDouble);
    const Tensor expected = torch::linalg_solve(system, right).squeeze(2).view(v.sizes());
    EXPECT_LT(relative_error(op_->regularised_solve(v, lambda), expected), 2e-5) << "lambda " << lambda;
  }
  EXPECT_THROW(op_->regularised_solve(v, 0), Error);
}

TEST_P(LinearOperatorTest, PseudoInverseExplainsTheMeasurement) {
  const Tensor y = op_->apply(random_input());
  const bool closed_form = as_spectral(*op_) != nullptr;  // conjugate gradients stop earlier
  const Tensor x = op_->pseudo_inverse(y);
  EXPECT_LT(relative_error(op_->apply(x), y), closed_form ? 1e-5 : 1e-3);
  // Of least norm: orthogonal to what A cannot see.
  const Tensor unseen = random_input();
  const Tensor lost = unseen - op_->pseudo_inverse(op_->apply(unseen));
  EXPECT_NEAR(inner_product(x, lost), 0,
              (closed_form ? 1e-4 : 0.02) * x.norm().item<double>() * unseen.norm().item<double>());
}

TEST_P(LinearOperatorTest, ObservedEntriesAreCounted) {
  const Tensor y = op_->apply(random_input(1));
  const Tensor observed = op_->observed_mask().expand_as(y);
  EXPECT_EQ(observed.sum().item<double>(), static_cast<double>(op_->measurements() * op_->batch()));
  EXPECT_EQ((y * (1 - observed)).abs().max().item<float>(), 0);
}

TEST_P(LinearOperatorTest, ACopyOnADeviceDoesTheSame) {
  const torch::Device device = torch::cuda::is_available() ? torch::kCUDA : torch::kCPU;
  const auto copy = op_->to(device);
  EXPECT_EQ(copy->spec(), op_->spec());
  const Tensor x = random_input();
  const LinearOperator& there = *as_linear(*copy);
  const Tensor y = there.apply(x.to(device));
  EXPECT_EQ(y.device().type(), device.type());
  EXPECT_LT(relative_error(y.cpu(), op_->apply(x)), 1e-5);
  EXPECT_LT(relative_error(there.adjoint(y).cpu(), op_->adjoint(y.cpu())), 1e-5);
  EXPECT_LT(relative_error(there.regularised_solve(x.to(device), 0.5).cpu(), op_->regularised_solve(x, 0.5)),
            1e-4);
}

TEST_P(LinearOperatorTest, RefusesWhatDoesNotFit) {
  const Tensor x = random_input();
  EXPECT_THROW(op_->apply(x.slice(3, 1)), Error);
  EXPECT_THROW(op_->adjoint(random_output().slice(-1, 1)), Error);
  if (op_->batch() > 1) {
    EXPECT_THROW(op_->apply(x.slice(0, 1)), Error);
  }
}

TEST_P(SpectralOperatorTest, VIsOrthogonal) {
  const Tensor x = random_input(), s = random_coefficients();
  EXPECT_LT(relative_error(spectral_->V(spectral_->Vt(x)), x), 1e-5);
  EXPECT_LT(relative_error(spectral_->Vt(spectral_->V(s)), s), 1e-5);
  // <V s, x> = <s, V^T x>: inverse and transpose are the same.
  EXPECT_NEAR(inner_product(spectral_->V(s), x), inner_product(s, spectral_->Vt(x)),
              1e-5 * s.norm().item<double>() * x.norm().item<double>());
}

TEST_P(SpectralOperatorTest, UIsOrthonormalWhereSomethingIsSeen) {
  const Tensor seen = (spectral_->singular_values() > 0).to(torch::kFloat);
  const Tensor s = times_state(random_coefficients(), seen), y = random_output();
  EXPECT_LT(relative_error(spectral_->Ut(spectral_->U(s)), s), 1e-5);
  EXPECT_NEAR(inner_product(spectral_->U(s), y), inner_product(s, spectral_->Ut(y)),
              1e-5 * s.norm().item<double>() * y.norm().item<double>());
  EXPECT_EQ(times_state(spectral_->Ut(y), 1 - seen).abs().max().item<float>(), 0);
  EXPECT_LE(seen.sum(1).max().item<double>(), static_cast<double>(op_->measurements()));
}

TEST_P(SpectralOperatorTest, DecompositionIsTheOperator) {
  const Tensor x = random_input(), y = random_output();
  EXPECT_LT(relative_error(spectral_->SpectralOperator::apply(x), op_->apply(x)), 2e-5);
  EXPECT_LT(relative_error(spectral_->SpectralOperator::adjoint(y), op_->adjoint(y)), 2e-5);
  const Tensor seen = op_->apply(x);
  EXPECT_LT(relative_error(op_->apply(spectral_->SpectralOperator::pseudo_inverse(seen)), seen), 2e-5);
  EXPECT_LT(
      relative_error(spectral_->SpectralOperator::regularised_solve(x, 0.1), op_->regularised_solve(x, 0.1)),
      1e-5);
}

TEST_P(SpectralOperatorTest, SingularValuesAreThoseOfTheMatrix) {
  const auto sorted = [](const Tensor& s) { return std::get<0>(torch::sort(s, -1, /*descending=*/true)); };
  const Tensor exact = torch::linalg_svdvals(dense_transposed());
  const Tensor ours = sorted(spectral_->singular_values().to(torch::kDouble)).expand({op_->batch(), -1});
  const std::int64_t count = std::min(exact.size(1), ours.size(1));
  const Tensor difference = ours.slice(1, 0, count) - exact.slice(1, 0, count);
  EXPECT_LT(difference.abs().max().item<double>(), 2e-5);
}

std::string label(const testing::TestParamInfo<Case>& info) {
  return info.param.label;
}

INSTANTIATE_TEST_SUITE_P(All, LinearOperatorTest, testing::ValuesIn(all_cases()), label);
INSTANTIATE_TEST_SUITE_P(All, SpectralOperatorTest, testing::ValuesIn(all_cases()), label);

TEST(OperatorKinds, AreToldByType) {
  const ImageShape shape{3, 8, 8};
  EXPECT_STREQ(kind_name(*make_downsample(shape, {2})), "spectral");
  const Tensor kernel = torch::ones({1, 3, 3});
  EXPECT_STREQ(kind_name(*make_kernel_blur(shape, kernel, Boundary::circular, "k")), "spectral");
  EXPECT_STREQ(kind_name(*make_kernel_blur(shape, kernel, Boundary::reflect, "k")), "linear");
}

}  // namespace
}  // namespace dpg
