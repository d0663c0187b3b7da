// Operators beyond the linear ones, and composition.
#include <gtest/gtest.h>
#include <torch/torch.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>

#include "dpg/core/error.h"
#include "dpg/image/image.h"
#include "dpg/measure/catalog.h"
#include "dpg/measure/compose.h"
#include "dpg/measure/jpeg_round_trip.h"
#include "dpg/measure/nonlinear_blur.h"
#include "dpg/tensor/convert.h"

namespace dpg {
namespace {

const OperatorContext kContext = {{3, 24, 20}, 3, {0, 1}};

// Bright and dark, smooth and rough; the same on every run.
Tensor test_pictures(const OperatorContext& context, double amplitude = 0.9) {
  const std::vector<std::uint32_t> images = {0, 1};
  const Tensor noise = normal_noise(Rng(11), images, 0, 0,
                                    {context.shape.channels, context.shape.height, context.shape.width});
  return amplitude * torch::tanh(noise);
}

double relative_difference(const Tensor& a, const Tensor& b) {
  return ((a - b).norm() / b.norm()).item<double>();
}

class DifferentiableOperators : public testing::TestWithParam<const char*> {};

// <v, (A(x + h d) - A(x - h d)) / 2h> = <vjp(x, v), d>
TEST_P(DifferentiableOperators, VjpMatchesFiniteDifferences) {
  const auto a = make_operator(GetParam(), kContext);
  const DifferentiableOperator* smooth = as_differentiable(*a);
  ASSERT_NE(smooth, nullptr);
  const Tensor x = test_pictures(kContext);
  const Tensor y = a->apply(x);
  const double h = 2e-3;
  for (std::uint32_t round = 0; round < 3; ++round) {
    const std::vector<std::uint32_t> images = {0, 1};
    const Tensor d = normal_noise(Rng(5), images, round, 1, x.sizes().slice(1));
    const Tensor v =
        normal_noise(Rng(5), images, round, 2, y.sizes().slice(1)) + y;  // correlated: no lucky zeros
    const Tensor change = (a->apply(x + h * d) - a->apply(x - h * d)) / (2 * h);
    const double numeric = (v * change).sum().item<double>();
    const double analytic = (smooth->vjp(x, v) * d).sum().item<double>();
    const double scale = (v.norm() * change.norm()).item<double>();
    EXPECT_NEAR(analytic, numeric, 4e-3 * scale) << GetParam();
    EXPECT_GT(std::abs(numeric), 1e-2 * scale / std::sqrt(static_cast<double>(x.numel())));
  }
}

TEST_P(DifferentiableOperators, ABatchIsItsImages) {
  const auto both = make_operator(GetParam(), kContext);
  OperatorContext second = kContext;
  second.images = {1};
  const Tensor x = test_pictures(kContext);
  const Tensor alone = make_operator(GetParam(), second)->apply(x.slice(0, 1, 2));
  EXPECT_LT(relative_difference(both->apply(x).slice(0, 1, 2), alone), 1e-6);
}

INSTANTIATE_TEST_SUITE_P(All, DifferentiableOperators,
                         testing::Values("phase", "phase:oversample=0", "hdr", "hdr:0.5",
                                         "nonlinear-blur:size=9",
                                         "nonlinear-blur:size=7,boundary=circular,exposure=1",
                                         "blur:1,size=5 | hdr", "nonlinear-blur:size=9 | phase",
                                         "hdr:1.5 | sr:2"));

TEST(Phase, IsTheAmplitudeOfTheUnitarySpectrum) {
  const auto a = make_operator("phase", {{1, 16, 24}, 0, {0}});
  EXPECT_EQ(a->output_shape(), (std::vector<std::int64_t>{1, 24, 36}));
  const Tensor x = torch::rand({2, 1, 16, 24}) * 2 - 1;
  const Tensor y = a->apply(x);
  // Parseval, blindness to a shift that stays inside the padding, and the mean in the middle.
  EXPECT_NEAR(y.norm().item<double>(), x.norm().item<double>(), 1e-4);
  Tensor narrow = x.clone();
  narrow.slice(3, 20).zero_();
  EXPECT_LT(relative_difference(a->apply(narrow.roll({4}, {3})), a->apply(narrow)), 1e-5);
  EXPECT_NEAR(y[0][0][12][18].item<double>(), std::abs(x[0].sum().item<double>()) / std::sqrt(24.0 * 36.0),
              1e-4);
}

TEST(Phase, EqualsTheFullTransformForAnySides) {
  for (const auto& [rows, columns] : {std::pair{16, 24}, {15, 21}, {16, 9}, {7, 12}, {1, 8}, {5, 1}}) {
    const auto a = make_operator("phase", {{2, rows, columns}, 0, {0}});
    const Tensor x = torch::rand({3, 2, rows, columns}) * 2 - 1;
    const auto shape = a->output_shape();
    const std::int64_t down = (shape[1] - rows) / 2, right = (shape[2] - columns) / 2;
    const Tensor padded = torch::constant_pad_nd(x, {right, right, down, down});
    const Tensor expected =
        torch::roll(torch::fft::fft2(padded).abs(), {shape[1] / 2, shape[2] / 2}, {-2, -1}) /
        std::sqrt(static_cast<double>(shape[1] * shape[2]));
    EXPECT_LT(relative_difference(a->apply(x), expected), 1e-5) << rows << "x" << columns;
  }
}

TEST(Hdr, ClipsSymmetrically) {
  const auto a = make_operator("hdr:2", {{1, 1, 4}, 0, {0}});
  const Tensor x = torch::tensor({-0.8f, -0.25f, 0.4f, 0.51f}).view({1, 1, 1, 4});
  EXPECT_TRUE(torch::allclose(a->apply(x).flatten(), torch::tensor({-1.f, -0.5f, 0.8f, 1.f})));
}

TEST(Quantize, KeepsLevelsAndRoundsToTheNearest) {
  const auto a = make_operator("quantize:2", {{1, 1, 4}, 0, {0}});
  const Tensor x = torch::tensor({-3.f, -0.7f, 0.3f, 0.65f}).view({1, 1, 1, 4});
  const Tensor expected = torch::tensor({-1.f, -1.f, 1 / 3.f, 1 / 3.f});
  EXPECT_TRUE(torch::allclose(a->apply(x).flatten(), expected, 1e-5, 1e-6));
  EXPECT_TRUE(torch::allclose(a->apply(a->apply(x)), a->apply(x)));
  EXPECT_STREQ(kind_name(*a), "black box");
}

TEST(NonlinearBlur, CurvesAreInverseAndContinuous) {
  const Tensor u = torch::linspace(-0.5, 2, 4001, torch::kFloat64);
  EXPECT_LT((linear_to_srgb(srgb_to_linear(u)) - u).abs().max().item<double>(), 1e-4);
  EXPECT_LT(srgb_to_linear(u).diff().max().item<double>(), 0.005);  // no jump at the knee
  EXPECT_GT(srgb_to_linear(u).diff().min().item<double>(), 0);
}

// A flat picture only gets brighter; a small bright light leaves a streak that is brighter than the display
// average.
TEST(NonlinearBlur, SumsLightNotDisplayValues) {
  const OperatorContext context = {{1, 64, 64}, 3, {0}};
  const auto camera = make_operator("nonlinear-blur:size=15,exposure=1", context);
  const auto display = make_operator("motion:size=15", context);
  const Tensor flat = torch::full({1, 1, 64, 64}, 0.2);
  EXPECT_LT((camera->apply(flat) - flat).abs().max().item<double>(), 1e-4);
  Tensor light = torch::full({1, 1, 64, 64}, -1.0);
  light.slice(2, 30, 34).slice(3, 30, 34).fill_(1);
  EXPECT_GT(camera->apply(light).mean().item<double>(), display->apply(light).mean().item<double>() + 0.003);
  const auto bright = make_operator("nonlinear-blur:size=15,exposure=50", context);
  EXPECT_FLOAT_EQ(bright->apply(flat).min().item<float>(), 1.0f);  // saturated
}

class JpegOperator : public testing::Test {
 protected:
  void SetUp() override {
    if (!jpeg_available()) GTEST_SKIP() << "this build has no libjpeg";
  }
};

TEST_F(JpegOperator, EqualsAFileOfTheSameQuality) {
  const OperatorContext context = {{3, 45, 37}, 0, {0}};
  const Tensor x = torch::avg_pool2d(test_pictures(context), 3, 1, 1) * 2;
  const auto file =
      std::filesystem::temp_directory_path() / ("dpg_jpeg_" + std::to_string(::getpid()) + ".jpg");
  for (const int quality : {1, 10, 50, 95}) {
    WriteOptions options;
    options.jpeg_quality = quality;
    write_image(file, to_image(x.slice(0, 0, 1)), options);  // the writer keeps colour at full resolution
    const Tensor expected = to_tensor(read_image(file));
    const Tensor found =
        make_operator(str("jpeg:", quality, ",chroma=444"), context)->apply(x.slice(0, 0, 1));
    EXPECT_LT((found - expected).abs().max().item<double>(), 1e-6) << quality;
  }
  std::filesystem::remove(file);
}

TEST_F(JpegOperator, DoesNotDependOnThreadsOrBatch) {
  const OperatorContext context = {{3, 40, 56}, 0, {0}};
  const Tensor x =
      test_pictures(context).repeat({20, 1, 1, 1}) * torch::linspace(0.1, 1, 40).view({40, 1, 1, 1});
  const auto a = make_operator("jpeg:10", context);
  const int threads = at::get_num_threads();
  at::set_num_threads(1);
  const Tensor one = a->apply(x);
  at::set_num_threads(4);
  const Tensor four = a->apply(x);
  at::set_num_threads(threads);
  EXPECT_TRUE(torch::equal(one, four));
  EXPECT_TRUE(torch::equal(one.slice(0, 7, 8), a->apply(x.slice(0, 7, 8))));
}

// At quality 100 hardly anything is rounded: the codec's own change along a direction is what the stand-in
// for its derivative says, for colour that is lost as for light that is kept.
TEST_F(JpegOperator, StraightGradientIsTheCodecsWithoutRounding) {
  for (const std::string chroma : {"420", "444"}) {
    const auto a = make_operator("jpeg:100,gradient=straight,chroma=" + chroma, {{3, 32, 48}, 0, {0}});
    const auto black_box = make_operator("jpeg:100,chroma=" + chroma, {{3, 32, 48}, 0, {0}});
    ASSERT_NE(as_differentiable(*a), nullptr);
    EXPECT_EQ(as_differentiable(*black_box), nullptr);
    EXPECT_EQ(make_operator(a->spec(), {{3, 32, 48}, 0, {0}})->spec(), a->spec());
    const Tensor x = torch::zeros({1, 3, 32, 48});
    EXPECT_TRUE(torch::equal(a->apply(x + 0.3), black_box->apply(x + 0.3)));
    torch::manual_seed(3);
    const Tensor step = 0.9 * (torch::rand({1, 3, 32, 48}) - 0.5), v = torch::randn({1, 3, 32, 48});
    const Tensor change = (a->apply(x + step) - a->apply(x - step)) / 2;
    const Tensor back = as_differentiable(*a)->vjp(x, v);
    EXPECT_NEAR((back * step).sum().item<double>(), (v * change).sum().item<double>(),
                0.1 * change.norm().item<double>())
        << chroma;  // v is random: rounding errors along it add up like their norm
    if (chroma == "444")
      EXPECT_TRUE(torch::equal(back, v));
    else
      EXPECT_GT((back - v).norm().item<double>(), 0.3 * v.norm().item<double>());
  }
}

TEST_F(JpegOperator, LosesLessAtHigherQualityAndColourAtHalfResolution) {
  const OperatorContext context = {{3, 64, 64}, 0, {0}};
  const Tensor x = torch::avg_pool2d(test_pictures(context), 3, 1, 1) * 2;
  const auto error = [&](const std::string& spec) {
    return (make_operator(spec, context)->apply(x) - x).square().mean().item<double>();
  };
  EXPECT_GT(error("jpeg:5"), error("jpeg:30"));
  EXPECT_GT(error("jpeg:30"), error("jpeg:90"));
  EXPECT_GT(error("jpeg:90,chroma=420"), 1.5 * error("jpeg:90,chroma=444"));
  const Tensor grey = x.slice(1, 0, 1);
  EXPECT_LT((make_operator("jpeg:95", {{1, 64, 64}, 0, {0}})->apply(grey) - grey).abs().mean().item<double>(),
            0.02);
}

TEST(Compose, KindIsTheWeakerOfTheTwo) {
  const auto kind = [](const std::string& spec) {
    return std::string(kind_name(*make_operator(spec, kContext)));
  };
  EXPECT_EQ(kind("blur:1,size=5 | inpaint:box"), "linear");
  EXPECT_EQ(kind("gray | hdr"), "differentiable");
  EXPECT_EQ(kind("hdr | blur:1,size=5"), "differentiable");
  EXPECT_EQ(kind("sr:2 | quantize:3"), "black box");
}

TEST(Compose, LinearOnesKeepAnExactAdjointAndSolve) {
  for (const std::string spec : {"blur:1,size=5 | inpaint:random,removed=0.5", "motion:size=7 | sr:2",
                                 "gray | blur:1,size=5", "sr:2 | cs:0.5"}) {
    const auto a = make_operator(spec, kContext);
    const LinearOperator* linear = as_linear(*a);
    ASSERT_NE(linear, nullptr) << spec;
    const Tensor x = test_pictures(kContext);
    const Tensor y = torch::rand_like(a->apply(x)) - 0.5;
    const double left = (a->apply(x) * y).sum().item<double>(),
                 right = (x * linear->adjoint(y)).sum().item<double>();
    EXPECT_NEAR(left, right, 1e-5 * (a->apply(x).norm() * y.norm()).item<double>()) << spec;
    // (lambda I + A^T A) solve(v) = v
    const double lambda = 0.01;
    const Tensor solved = linear->regularised_solve(x, lambda);
    EXPECT_LT(relative_difference(lambda * solved + linear->adjoint(a->apply(solved)), x), 1e-4) << spec;
    // A A^+ A x = A x
    const Tensor seen = a->apply(x);
    EXPECT_LT(relative_difference(a->apply(linear->pseudo_inverse(seen)), seen), 2e-3) << spec;
  }
}

TEST(Compose, AppliesTheLeftPartFirstAndSeedsThePartsApart) {
  const Tensor x = test_pictures(kContext);
  const auto a = make_operator("hdr:3 | quantize:1", kContext);
  const auto first = make_operator("hdr:3", kContext), second = make_operator("quantize:1", kContext);
  EXPECT_TRUE(torch::equal(a->apply(x), second->apply(first->apply(x))));
  const auto twice = make_operator("inpaint:random,removed=0.5 | inpaint:random,removed=0.5", kContext);
  const double kept = (twice->apply(torch::ones_like(x)) != 0).to(torch::kFloat).mean().item<double>();
  EXPECT_NEAR(kept, 0.25, 0.08);  // the same mask twice would keep half
}

TEST(Compose, RefusesPartsThatDoNotFit) {
  const auto a = make_operator("sr:2", kContext), b = make_operator("sr:2", kContext);
  EXPECT_THROW(compose(a, b), Error);
  EXPECT_THROW(make_operator("cs:0.5 | hdr", kContext), Error);  // coefficients are no picture
  EXPECT_THROW(compose(make_operator("inpaint:box", {{3, 24, 20}, 0, {0, 1}}),
                       make_operator("motion:size=5", {{3, 24, 20}, 0, {0, 1, 2}})),
               Error);
}

}  // namespace
}  // namespace dpg
