#include "dpg/measure/motion_kernel.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include "dpg/core/error.h"

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

Tensor kernel_of(std::int64_t size, double intensity, std::uint64_t seed, std::uint32_t image = 0) {
  return draw_trajectory(random_trajectory(static_cast<double>(size - 1), intensity, Rng(seed), image), size);
}

// Marks the pixels that can be reached from (y, x) over neighbours above zero; answers how many.
int flood(const Tensor& kernel, Tensor& visited, std::int64_t y, std::int64_t x) {
  const std::int64_t n = kernel.size(0);
  std::vector<std::pair<std::int64_t, std::int64_t>> open = {{y, x}};
  visited[y][x] = 1;
  int count = 0;
  while (!open.empty()) {
    const auto [row, column] = open.back();
    open.pop_back();
    ++count;
    for (std::int64_t i = std::max<std::int64_t>(0, row - 1); i <= std::min(n - 1, row + 1); ++i)
      for (std::int64_t j = std::max<std::int64_t>(0, column - 1); j <= std::min(n - 1, column + 1); ++j)
        if (kernel[i][j].item<double>() > 0 && visited[i][j].item<int>() == 0) {
          visited[i][j] = 1;
          open.emplace_back(i, j);
        }
  }
  return count;
}

bool connected(const Tensor& kernel) {
  const Tensor lit = torch::nonzero(kernel > 0);
  Tensor visited = torch::zeros(kernel.sizes(), torch::kInt);
  return flood(kernel, visited, lit[0][0].item<std::int64_t>(), lit[0][1].item<std::int64_t>()) ==
         lit.size(0);
}

TEST(MotionKernel, IsACentredConnectedWeighting) {
  for (const double intensity : {0.0, 0.5, 1.0})
    for (const std::int64_t size : {3, 15, 31})
      for (std::uint64_t seed = 0; seed < 4; ++seed) {
        const Tensor kernel = kernel_of(size, intensity, seed);
        EXPECT_GE(kernel.min().item<double>(), 0);
        EXPECT_NEAR(kernel.sum().item<double>(), 1, 1e-12);
        EXPECT_TRUE(connected(kernel)) << "size " << size << ", intensity " << intensity << ", seed " << seed;
        const Tensor place = torch::arange(size, torch::kDouble) - static_cast<double>(size / 2);
        EXPECT_NEAR(torch::dot(kernel.sum(0), place).item<double>(), 0, 1e-9);
        EXPECT_NEAR(torch::dot(kernel.sum(1), place).item<double>(), 0, 1e-9);
      }
}

TEST(MotionKernel, IsOnePixelForSizeOne) {
  EXPECT_EQ(kernel_of(1, 0.5, 3).item<double>(), 1);
}

TEST(MotionKernel, DependsOnSeedAndImageOnly) {
  const Tensor first = kernel_of(31, 0.5, 1, 4);
  EXPECT_TRUE(torch::equal(first, kernel_of(31, 0.5, 1, 4)));
  EXPECT_FALSE(torch::equal(first, kernel_of(31, 0.5, 2, 4)));
  EXPECT_FALSE(torch::equal(first, kernel_of(31, 0.5, 1, 5)));
}

// How far the path strays from the straight line between its ends, as a part of its length: 0 for a line.
double bend(double intensity, std::uint64_t seed) {
  const auto path = random_trajectory(100, intensity, Rng(seed), 0);
  double length = 0;
  for (std::size_t i = 1; i < path.size(); ++i)
    length += std::hypot(path[i].x - path[i - 1].x, path[i].y - path[i - 1].y);
  return 1 - std::hypot(path.back().x - path.front().x, path.back().y - path.front().y) / length;
}

TEST(Trajectory, BendsWithIntensity) {
  double half = 0, full = 0;
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    EXPECT_NEAR(bend(0, seed), 0, 1e-9);
    half += bend(0.5, seed) / 40;
    full += bend(1, seed) / 40;
  }
  EXPECT_GT(half, 0.1);
  EXPECT_GT(full, half + 0.1);
}

TEST(Trajectory, FillsItsBoxInSmallSteps) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const auto path = random_trajectory(60, 0.7, Rng(seed), 0);
    double furthest = 0;
    for (std::size_t i = 0; i < path.size(); ++i) {
      furthest = std::max({furthest, std::abs(path[i].x), std::abs(path[i].y)});
      if (i == 0) continue;
      EXPECT_LE(std::hypot(path[i].x - path[i - 1].x, path[i].y - path[i - 1].y), 0.25 + 1e-12);
    }
    EXPECT_LE(furthest, 30);
    EXPECT_GE(furthest, 0.55 * 30);
  }
}

TEST(MotionBlur, DefaultsScaleWithTheImage) {
  const std::vector<std::uint32_t> images = {0, 1};
  const auto blur = make_motion_blur({3, 128, 128}, {}, Rng(1), images);
  EXPECT_EQ(blur->spec(), "motion:size=31,intensity=0.5,boundary=reflect");
  EXPECT_EQ(blur->batch(), 2);
  const Tensor flat = torch::full({2, 3, 128, 128}, 0.25);
  EXPECT_LT((blur->apply(flat) - flat).abs().max().item<float>(), 1e-6);
  EXPECT_PRED_FORMAT2(testing::IsSubstring, "intensity = 2", refusal([&] {
                        make_motion_blur({3, 64, 64}, {.intensity = 2}, Rng(1), images);
                      }));
}

}  // namespace
}  // namespace dpg
