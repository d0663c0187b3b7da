// What each linear operator is by definition: defaults, exact values, draws per image, refusals.
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <filesystem>

#include "dpg/core/error.h"
#include "dpg/core/test_folder.h"
#include "dpg/image/image.h"
#include "dpg/measure/bicubic.h"
#include "dpg/measure/colour.h"
#include "dpg/measure/conjugate_gradient.h"
#include "dpg/measure/downsample.h"
#include "dpg/measure/gaussian_blur.h"
#include "dpg/measure/hadamard.h"
#include "dpg/measure/kernel_blur.h"
#include "dpg/measure/mask.h"
#include "dpg/measure/motion_kernel.h"

namespace dpg {
namespace {

template <class Function>
std::string refusal(const Function& function) {
  try {
    function();
  } catch (const Error& error) {
    return error.what();
  }
  return "(nothing was refused)";
}

const std::vector<std::uint32_t> kOneImage = {0};
constexpr Boundary kBoundaries[] = {Boundary::reflect, Boundary::circular, Boundary::zero};

double largest_difference(const Tensor& a, const Tensor& b) {
  return (a.to(torch::kDouble) - b.to(torch::kDouble)).abs().max().item<double>();
}

// y[i] = sum_j k[j] x[i - (j - origin)] as the plain sum over the whole kernel, in float64.
Tensor direct_convolution(const Tensor& x, const Tensor& kernel, Boundary boundary) {
  const std::int64_t after_y = kernel.size(0) / 2, before_y = kernel.size(0) - 1 - after_y;
  const std::int64_t after_x = kernel.size(1) / 2, before_x = kernel.size(1) - 1 - after_x;
  namespace F = torch::nn::functional;
  F::PadFuncOptions padding({before_x, after_x, before_y, after_y});
  if (boundary == Boundary::reflect) padding.mode(torch::kReflect);
  if (boundary == Boundary::circular) padding.mode(torch::kCircular);
  const Tensor padded = F::pad(x.to(torch::kDouble), padding);
  const Tensor flipped = kernel.to(torch::kDouble).flip({0, 1}).expand({x.size(1), 1, -1, -1});
  return F::conv2d(padded, flipped, F::Conv2dFuncOptions().groups(x.size(1)));
}

TEST(GaussianBlur, EqualsTheDirectSum) {
  torch::manual_seed(2);
  const Tensor x = torch::rand({2, 3, 64, 72}) * 2 - 1;
  const Tensor row = gaussian_kernel(61, 3);
  for (const Boundary boundary : kBoundaries) {
    const auto blur = make_gaussian_blur({3, 64, 72}, {.sigma = 3, .size = 61, .boundary = boundary});
    EXPECT_LT(largest_difference(blur->apply(x), direct_convolution(x, torch::outer(row, row), boundary)),
              2e-6)
        << name(boundary);
  }
}

TEST(GaussianBlur, DefaultsScaleWithTheImage) {
  EXPECT_EQ(make_gaussian_blur({3, 256, 256}, {})->spec(), "blur:sigma=3,size=61,boundary=reflect");
  EXPECT_EQ(make_gaussian_blur({3, 128, 128}, {})->spec(), "blur:sigma=1.5,size=31,boundary=reflect");
  EXPECT_EQ(make_gaussian_blur({3, 64, 99}, {})->spec(), "blur:sigma=0.75,size=15,boundary=reflect");
  const auto given = make_gaussian_blur({3, 64, 64}, {.sigma = 2, .size = 9, .boundary = Boundary::zero});
  EXPECT_EQ(given->spec(), "blur:sigma=2,size=9,boundary=zero");
}

TEST(GaussianBlur, RefusesWhatCannotBe) {
  const ImageShape shape{3, 16, 16};
  EXPECT_PRED_FORMAT2(testing::IsSubstring, "sigma = -1",
                      refusal([&] { make_gaussian_blur(shape, {.sigma = -1}); }));
  EXPECT_PRED_FORMAT2(testing::IsSubstring, "size = 4",
                      refusal([&] { make_gaussian_blur(shape, {.size = 4}); }));
  EXPECT_PRED_FORMAT2(testing::IsSubstring, "at most 31",
                      refusal([&] { make_gaussian_blur(shape, {.size = 33}); }));
  EXPECT_NO_THROW(make_gaussian_blur(shape, {.size = 31}));
  EXPECT_NO_THROW(make_gaussian_blur(shape, {.size = 33, .boundary = Boundary::zero}));
}

TEST(KernelBlur, EqualsTheDirectSumForAnyAspect) {
  torch::manual_seed(3);
  const ImageShape shape{2, 20, 33};
  const Tensor x = torch::randn({4, 2, 20, 33}), kernels = torch::rand({2, 6, 19});
  for (const Boundary boundary : kBoundaries) {
    const Tensor y = make_kernel_blur(shape, kernels, boundary, "kernel:test")->apply(x);
    for (std::int64_t j = 0; j < 4; ++j) {
      const Tensor kernel = kernels[j % 2] / kernels[j % 2].sum();
      EXPECT_LT(largest_difference(y[j], direct_convolution(x.narrow(0, j, 1), kernel, boundary)[0]), 5e-6)
          << name(boundary) << ", row " << j;
    }
  }
}

TEST(KernelBlur, ManyRowsEqualFewRows) {  // large batches are worked through in parts
  torch::manual_seed(3);
  const auto blur = make_kernel_blur({1, 12, 10}, torch::rand({3, 5, 5}), Boundary::reflect, "kernel:test");
  const Tensor x = torch::randn({60, 1, 12, 10}), y = blur->apply(x), back = blur->adjoint(x);
  for (std::int64_t j = 0; j < 60; j += 3) {
    EXPECT_LT(largest_difference(y.narrow(0, j, 3), blur->apply(x.narrow(0, j, 3))), 1e-6);
    EXPECT_LT(largest_difference(back.narrow(0, j, 3), blur->adjoint(x.narrow(0, j, 3))), 1e-6);
  }
}

TEST(KernelBlur, RefusesKernelsWithoutASum) {
  const Tensor empty = torch::zeros({1, 3, 3});
  EXPECT_PRED_FORMAT2(testing::IsSubstring, "sum one", refusal([&] {
                        make_kernel_blur({1, 8, 8}, empty, Boundary::zero, "kernel:x");
                      }));
}

TEST(Downsample, AveragesBlocks) {
  const Tensor x = torch::arange(2 * 6 * 9, torch::kFloat).view({1, 2, 6, 9});
  const Tensor y = make_downsample({2, 6, 9}, {3})->apply(x);
  ASSERT_EQ(y.sizes(), (std::vector<std::int64_t>{1, 2, 2, 3}));
  for (std::int64_t c = 0; c < 2; ++c)
    for (std::int64_t i = 0; i < 2; ++i)
      for (std::int64_t j = 0; j < 3; ++j) {
        const Tensor block = x[0][c].slice(0, 3 * i, 3 * i + 3).slice(1, 3 * j, 3 * j + 3);
        EXPECT_NEAR(y[0][c][i][j].item<float>(), block.mean().item<float>(), 1e-4);
      }
  EXPECT_PRED_FORMAT2(testing::IsSubstring, "factor = 4", refusal([] { make_downsample({3, 10, 12}, {4}); }));
}

TEST(Bicubic, KeepsConstantsAndRamps) {
  for (const std::int64_t factor : {1, 2, 3, 4}) {
    const Tensor matrix = bicubic_matrix(48, factor);
    const Tensor ramp = torch::arange(48, torch::kDouble);
    const Tensor centres =
        (torch::arange(48 / factor, torch::kDouble) + 0.5) * static_cast<double>(factor) - 0.5;
    EXPECT_LT(largest_difference(matrix.sum(1), torch::ones(48 / factor)), 1e-12);
    const auto inside = [](const Tensor& t) { return t.slice(0, 2, -2); };  // away from the mirrored border
    EXPECT_LT(largest_difference(inside(torch::mv(matrix, ramp)), inside(centres)), 1e-9) << factor;
    EXPECT_LT(largest_difference(matrix, matrix.flip({0, 1})), 1e-12);
  }
  EXPECT_LT(largest_difference(bicubic_matrix(9, 1), torch::eye(9)), 1e-12);
}

TEST(Gray, WeighsTheChannels) {
  const Tensor x = torch::tensor({1.0F, 0.5F, -1.0F}).view({1, 3, 1, 1});
  EXPECT_NEAR(make_gray({3, 1, 1})->apply(x).item<float>(), 0.5 / 3, 1e-6);
  EXPECT_NEAR(make_gray({3, 1, 1}, {GrayOptions::Weights::luma})->apply(x).item<float>(),
              0.299 + 0.2935 - 0.114, 1e-6);
  EXPECT_THROW(make_gray({1, 4, 4}, {GrayOptions::Weights::luma}), Error);
}

// The lost rectangle of image `row`: top, left, height, width.
std::vector<std::int64_t> lost_box(const SpectralOperator& mask, std::int64_t row) {
  const Tensor lost = torch::nonzero(mask.observed_mask()[row][0] == 0);
  const Tensor first = std::get<0>(lost.min(0)), last = std::get<0>(lost.max(0));
  const auto at = [](const Tensor& t, int i) { return t[i].item<std::int64_t>(); };
  const std::int64_t height = at(last, 0) - at(first, 0) + 1, width = at(last, 1) - at(first, 1) + 1;
  EXPECT_EQ(lost.size(0), height * width) << "the lost pixels are no rectangle";
  return {at(first, 0), at(first, 1), height, width};
}

TEST(BoxMask, LiesWithinTheMarginAndVaries) {
  std::vector<std::uint32_t> images(100);
  for (std::uint32_t i = 0; i < 100; ++i) images[i] = i;
  const auto mask = make_box_mask({3, 256, 256}, {}, Rng(1), images);
  std::int64_t lowest = 256, highest = 0;
  for (std::int64_t i = 0; i < 100; ++i) {
    const auto box = lost_box(*mask, i);
    EXPECT_EQ(box[2], 128);
    EXPECT_EQ(box[3], 128);
    for (const int axis : {0, 1}) {
      lowest = std::min(lowest, box[static_cast<std::size_t>(axis)]);
      highest = std::max(highest, box[static_cast<std::size_t>(axis)]);
    }
  }
  EXPECT_GE(lowest, 16);
  EXPECT_LE(highest, 256 - 16 - 128);
  EXPECT_LT(lowest, 22) << "boxes should reach both ends of where they may lie";
  EXPECT_GT(highest, 106);
  EXPECT_EQ(mask->measurements(), 3 * (256 * 256 - 128 * 128));
}

TEST(BoxMask, CanBePlaced) {
  const auto centre =
      make_box_mask({3, 20, 30}, {.position = BoxMaskOptions::Position::centre}, Rng(1), kOneImage);
  EXPECT_EQ(lost_box(*centre, 0), (std::vector<std::int64_t>{5, 7, 10, 15}));
  const BoxMaskOptions there{.height = 4, .width = 5, .top = 2, .left = 25};
  EXPECT_EQ(lost_box(*make_box_mask({3, 20, 30}, there, Rng(1), kOneImage), 0),
            (std::vector<std::int64_t>{2, 25, 4, 5}));
  EXPECT_EQ(there.spec(), "inpaint:box,height=4,width=5,top=2,left=25");
  const BoxMaskOptions outside{.height = 4, .width = 6, .top = 2, .left = 25};
  EXPECT_PRED_FORMAT2(testing::IsSubstring, "from 25 to 31", refusal([&] {
                        make_box_mask({3, 20, 30}, outside, Rng(1), kOneImage);
                      }));
}

TEST(RandomMask, LosesTheSamePartOfEveryImage) {
  const std::vector<std::uint32_t> images = {0, 1, 2};
  const auto mask = make_random_mask({3, 50, 40}, {}, Rng(1), images);
  const Tensor counts = mask->observed_mask().sum({1, 2, 3});
  EXPECT_EQ(largest_difference(counts, torch::full({3}, 160)), 0);  // 8 % of 2000
  EXPECT_EQ(mask->measurements(), 3 * 160);
  EXPECT_GT(largest_difference(mask->observed_mask()[0], mask->observed_mask()[1]), 0);
  const auto other_seed = make_random_mask({3, 50, 40}, {}, Rng(2), images);
  EXPECT_GT(largest_difference(mask->observed_mask(), other_seed->observed_mask()), 0);
  EXPECT_PRED_FORMAT2(testing::IsSubstring, "removed = 1.5", refusal([&] {
                        make_random_mask({3, 8, 8}, {.removed = 1.5}, Rng(1), images);
                      }));
}

TEST(PerImageStates, DoNotDependOnTheBatch) {
  const ImageShape shape{3, 32, 24};
  const std::vector<std::uint32_t> many = {3, 8, 1}, one = {8};
  const Rng rng(5);
  const Tensor x = torch::rand({3, 3, 32, 24});
  const auto expect_same = [&](const Operator& batch, const Operator& single) {
    EXPECT_LT(largest_difference(batch.apply(x)[1], single.apply(x.narrow(0, 1, 1))[0]), 1e-6)
        << batch.spec();
    EXPECT_GT(largest_difference(batch.apply(x)[0], single.apply(x.narrow(0, 0, 1))[0]), 1e-3)
        << batch.spec();
  };
  expect_same(*make_box_mask(shape, {}, rng, many), *make_box_mask(shape, {}, rng, one));
  expect_same(*make_random_mask(shape, {}, rng, many), *make_random_mask(shape, {}, rng, one));
  expect_same(*make_motion_blur(shape, {.size = 9}, rng, many),
              *make_motion_blur(shape, {.size = 9}, rng, one));
}

TEST(Uncrop, KeepsASideOrAWindow) {
  using Kind = UncropOptions::Kind;
  using Side = UncropOptions::Side;
  const ImageShape shape{1, 8, 12};
  const auto kept = [&](const UncropOptions& options) {
    return make_uncrop(shape, options)->observed_mask()[0][0];
  };
  EXPECT_EQ(kept({}).slice(1, 0, 6).sum().item<float>(), 48);
  EXPECT_EQ(kept({}).sum().item<float>(), 48);
  EXPECT_EQ(kept({.keep = 0.25, .side = Side::bottom}).slice(0, 6).sum().item<float>(), 24);
  EXPECT_EQ(kept({.keep = 0.25, .side = Side::bottom}).sum().item<float>(), 24);
  EXPECT_EQ(kept({.kind = Kind::border}).slice(0, 2, 6).slice(1, 3, 9).sum().item<float>(), 24);
  EXPECT_EQ(kept({.kind = Kind::border}).sum().item<float>(), 24);
  EXPECT_THROW(make_uncrop(shape, {.keep = 1}), Error);
}

class FileOperators : public testing::Test {
 protected:
  FileOperators() : folder_(std::filesystem::path(testing::TempDir()) / "dpg_linear_operators_test") {
    std::filesystem::create_directories(folder_);
  }
  ~FileOperators() override { remove_folder(folder_); }
  std::filesystem::path folder_;
};

TEST_F(FileOperators, MaskImageKeepsBrightPixels) {
  Image picture{1, 2, 3, {1, -1, 1, -1, 0.5, -0.5}};
  const auto file = folder_ / "mask.pgm";
  write_image(file, picture);
  const Tensor expected = torch::tensor({1.0F, 0.0F, 1.0F, 0.0F, 1.0F, 0.0F}).view({2, 3});
  EXPECT_EQ(largest_difference(make_file_mask({3, 2, 3}, {file})->observed_mask()[0][0], expected), 0);
  EXPECT_EQ(largest_difference(make_file_mask({3, 2, 3}, {file, true})->observed_mask()[0][0], 1 - expected),
            0);
  EXPECT_PRED_FORMAT2(testing::IsSubstring, "3 x 2", refusal([&] { make_file_mask({3, 2, 4}, {file}); }));
}

TEST_F(FileOperators, KernelImageIsReadFromBlackAndNumbersAsTheyAre) {
  const auto picture = folder_ / "kernel.pgm", numbers = folder_ / "kernel.npy";
  write_image(picture, Image{1, 1, 3, {-1, 1, 1}});
  EXPECT_LT(largest_difference(read_kernel(picture), torch::tensor({0.0, 0.5, 0.5}).view({1, 3})), 1e-6);
  write_image(numbers, Image{1, 1, 3, {-0.25, 1, 0.25}});
  EXPECT_LT(largest_difference(read_kernel(numbers), torch::tensor({-0.25, 1.0, 0.25}).view({1, 3})), 1e-6);
  const auto blur = make_file_kernel_blur({1, 4, 4}, {picture, Boundary::zero});
  EXPECT_STREQ(kind_name(*blur), "linear");
}

TEST(CompressedSensing, MeasuresThePartAskedFor) {
  const auto sensing = make_compressed_sensing({3, 10, 13}, {.ratio = 0.25}, Rng(1));
  EXPECT_EQ(sensing->output_shape(), (std::vector<std::int64_t>{3, 33}));
  const Tensor x = torch::randn({2, 3, 10, 13});
  const auto everything = make_compressed_sensing({3, 10, 13}, {.ratio = 1}, Rng(1));
  EXPECT_LT(largest_difference(everything->adjoint(everything->apply(x)), x), 1e-5);
  const auto other = make_compressed_sensing({3, 10, 13}, {.ratio = 0.25}, Rng(2));
  EXPECT_GT(largest_difference(sensing->apply(x), other->apply(x)), 0.1);
  EXPECT_THROW(make_compressed_sensing({3, 8, 8}, {.ratio = 0}, Rng(1)), Error);
}

TEST(CompressedSensing, MixesAllPixels) {  // 128 x 128: one transform of 2^14 points, in two products
  const auto sensing = make_compressed_sensing({1, 128, 128}, {.ratio = 1}, Rng(1));
  Tensor x = torch::zeros({1, 1, 128, 128});
  x[0][0][17][90] = 1;
  const Tensor size = sensing->apply(x).abs();
  EXPECT_NEAR(size.min().item<double>(), 1.0 / 128, 1e-6);
  EXPECT_NEAR(size.max().item<double>(), 1.0 / 128, 1e-6);
}

TEST(ConjugateGradient, ImagesStopByThemselves) {
  torch::manual_seed(5);
  // Conditions 1, 1e2 and a right side of zero in one batch.
  const Tensor diagonal =
      torch::stack({torch::ones({50}), torch::linspace(1, 100, 50), torch::linspace(1, 5, 50)});
  Tensor b = torch::randn({3, 50});
  b[2].zero_();
  const auto solve = [&](const Tensor& d, const Tensor& right) {
    return conjugate_gradient([&](const Tensor& p) { return d * p; }, right);
  };
  const auto together = solve(diagonal, b);
  EXPECT_TRUE(together.converged);
  EXPECT_LT(largest_difference(together.x, b / diagonal), 1e-5);
  EXPECT_EQ(together.x[2].abs().max().item<float>(), 0);
  EXPECT_LE(together.residual.max().item<double>(), 1e-6);
  const auto easy = solve(diagonal.narrow(0, 0, 1), b.narrow(0, 0, 1));
  EXPECT_EQ(easy.iterations, 1);
  EXPECT_GT(together.iterations, 10);
  EXPECT_LT(largest_difference(together.x[0], easy.x[0]), 1e-6);
}

TEST(ConjugateGradient, MatchesADenseSolveForTheLambdaOfLowNoise) {  // sigma_y = 0.01; some 660 iterations
  torch::manual_seed(6);
  const auto blur = make_motion_blur({1, 24, 24}, {.size = 11}, Rng(7), kOneImage);
  const Tensor units = torch::eye(576).view({576, 1, 24, 24});
  const Tensor transposed = blur->apply(units).flatten(1).to(torch::kDouble);
  const Tensor system = torch::matmul(transposed, transposed.t()) + 1e-4 * torch::eye(576, torch::kDouble);
  const Tensor v = torch::randn({1, 1, 24, 24});
  const Tensor exact = torch::linalg_solve(system, v.view({576, 1}).to(torch::kDouble)).view({1, 1, 24, 24});
  const Tensor difference = blur->regularised_solve(v, 1e-4).to(torch::kDouble) - exact;
  EXPECT_LT((difference.norm() / exact.norm()).item<double>(), 2e-5);
}

TEST(ConjugateGradient, SaysWhenItDidNotConverge) {
  const Tensor diagonal = torch::linspace(1, 1000, 50).unsqueeze(0);
  const auto result = conjugate_gradient([&](const Tensor& p) { return diagonal * p; }, torch::ones({1, 50}),
                                         {.tolerance = 1e-6, .max_iterations = 3});
  EXPECT_FALSE(result.converged);
  EXPECT_EQ(result.iterations, 3);
  EXPECT_GT(result.residual.item<double>(), 1e-6);
}

}  // namespace
}  // namespace dpg
