#include "dpg/measure/noise.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cmath>
#include <filesystem>
#include <numeric>

#include "dpg/core/error.h"
#include "dpg/image/image.h"
#include "dpg/image/transform.h"
#include "dpg/measure/catalog.h"
#include "dpg/measure/poisson.h"
#include "dpg/tensor/convert.h"

namespace dpg {
namespace {

const std::vector<std::uint32_t> kOne = {0};

Tensor constant(double value, std::int64_t side = 256) {
  return torch::full({1, 1, side, side}, value);
}

struct Moments {
  double mean, deviation;
};

Moments error_moments(const std::string& noise, double value) {
  const Tensor clean = constant(value);
  const Tensor error = (make_noise(noise)->corrupt(clean, Rng(7), kOne) - clean).to(torch::kFloat64);
  return {error.mean().item<double>(), error.std().item<double>()};
}

// 65536 draws: the mean is known to deviation / 256, the deviation itself to about 0.3 %. Bounds are 4 of
// those.
void expect_moments(const std::string& noise, double value, double mean, double deviation) {
  const Moments found = error_moments(noise, value);
  EXPECT_NEAR(found.mean, mean, 4 * deviation / 256) << noise << " at " << value;
  EXPECT_NEAR(found.deviation, deviation, 0.02 * deviation) << noise << " at " << value;
}

TEST(Noise, MomentsAreThoseOfTheModel) {
  expect_moments("gaussian:0.05", 0.3, 0, 0.05);
  for (const double value : {-0.99, -0.5, 0.0, 0.6, 1.0}) {
    const double u = (value + 1) / 2;
    expect_moments("poisson:rate=1,clip=no", value, 0, 2 * std::sqrt(u / 255));
    expect_moments("poisson:rate=0.05,clip=no", value, 0, 2 * std::sqrt(u / (255 * 0.05)));
    expect_moments("poisson:rate=100,clip=no", value, 0, 2 * std::sqrt(u / 25500));
    expect_moments("speckle:0.1", value, 0, 2 * 0.1 * u);
    // Replaced with probability a by +-1: the error's mean is -a c, its mean square a (1 + c^2).
    expect_moments("salt-pepper:0.1", value, -0.1 * value,
                   std::sqrt(0.1 * (1 + value * value) - 0.01 * value * value));
  }
  EXPECT_EQ(error_moments("none", 0.3).deviation, 0);
}

TEST(Noise, PoissonClipsToTheRangeByDefault) {
  EXPECT_LE(make_noise("poisson:1")->corrupt(constant(0.99), Rng(1), kOne).max().item<float>(), 1.0f);
  EXPECT_GT(make_noise("poisson:1,clip=no")->corrupt(constant(0.99), Rng(1), kOne).max().item<float>(), 1.0f);
}

// The whole distribution, not just its moments: Pearson's chi-square against the exact probabilities.
TEST(Poisson, DistributionIsExact) {
  for (const double mean : {0.3, 5.0, 29.9, 30.1, 255.0, 20000.0}) {
    const std::size_t draws = 200000;
    std::vector<double> means(draws, mean), samples(draws);
    poisson(Rng(3), {1, 2, 3}, means, samples);
    // Bins of one deviation's fifth or one count, within five deviations.
    const double width = std::max(1.0, std::floor(std::sqrt(mean) / 5));
    const double low = std::max(0.0, std::floor(mean - 4 * std::sqrt(mean)));
    const auto bins = static_cast<std::size_t>((mean + 4 * std::sqrt(mean) - low) / width) + 1;
    std::vector<double> expected(bins + 2, 0), found(bins + 2, 0);
    const auto bin_of = [&](double k) {
      return k < low ? 0 : std::min(bins + 1, 1 + static_cast<std::size_t>((k - low) / width));
    };
    for (const double k : samples) found[bin_of(k)] += 1;
    for (double k = 0; k < mean + 12 * std::sqrt(mean) + 20; ++k)
      expected[bin_of(k)] +=
          static_cast<double>(draws) * std::exp(k * std::log(mean) - mean - std::lgamma(k + 1));
    double chi_square = 0, used = -1;
    for (std::size_t i = 0; i < expected.size(); ++i) {
      if (expected[i] < 10) continue;
      chi_square += (found[i] - expected[i]) * (found[i] - expected[i]) / expected[i];
      ++used;
    }
    EXPECT_LT(chi_square, used + 4 * std::sqrt(2 * used) + 4)
        << "mean " << mean << ", " << used << " degrees of freedom";
  }
}

TEST(Noise, DoesNotDependOnTheBatch) {
  const Tensor clean = torch::rand({3, 3, 9, 7}) * 2 - 1;
  const std::vector<std::uint32_t> together = {4, 9, 2}, alone = {9};
  for (const std::string spec : {"gaussian:0.1", "poisson:0.1", "salt-pepper:0.3", "speckle:0.2"}) {
    const auto noise = make_noise(spec);
    const Tensor batch = noise->corrupt(clean, Rng(5), together);
    EXPECT_TRUE(torch::equal(batch.slice(0, 1, 2), noise->corrupt(clean.slice(0, 1, 2), Rng(5), alone)))
        << spec;
    EXPECT_FALSE(torch::equal(batch, noise->corrupt(clean, Rng(6), together))) << spec;
    EXPECT_EQ(make_noise(noise->spec())->spec(), noise->spec());
  }
}

TEST(Noise, MisfitIsPerImage) {
  const Tensor y = torch::zeros({2, 1, 2, 2}),
               prediction = torch::tensor({1.f, 2.f, 0.f, 0.f, 0.f, 0.f, 0.f, -3.f}).view({2, 1, 2, 2});
  EXPECT_TRUE(torch::equal(make_noise("gaussian:1")->misfit(y, prediction), torch::tensor({5.f, 9.f})));
  EXPECT_TRUE(torch::equal(make_noise("poisson:1")->misfit(y, prediction), torch::tensor({3.f, 3.f})));
}

TEST(Noise, LevelMatchesTheErrorItMakes) {
  const Tensor clean = torch::rand({1, 3, 64, 64}) * 1.6 - 0.8;
  for (const std::string spec :
       {"gaussian:0.1", "poisson:rate=0.2,clip=no", "salt-pepper:0.2", "speckle:0.3", "none"}) {
    const auto noise = make_noise(spec);
    const Tensor y = noise->corrupt(clean, Rng(5), kOne);
    const double error = (y - clean).square().mean().sqrt().item<double>();
    EXPECT_NEAR(noise->level(y), error, 0.04 * error) << spec;
  }
}

// Light decides how much photons vary: over many draws, entry by entry.
TEST(Noise, VariancesAreThoseOfTheErrors) {
  const Tensor clean = torch::linspace(-1, 1, 6).view({1, 1, 1, 6}), lit = clean[0] > -1;
  std::vector<std::uint32_t> draws;
  for (std::uint32_t i = 0; i < 4000; ++i) draws.push_back(i);
  const Tensor many = clean.repeat({4000, 1, 1, 1});
  for (const std::string spec : {"poisson:rate=0.2,clip=no", "speckle:0.3"}) {
    const auto noise = make_noise(spec);
    const Tensor found = (noise->corrupt(many, Rng(5), draws) - many).square().mean(0);
    const Tensor expected = noise->variances(clean)[0];
    EXPECT_LT(((found / expected - 1).abs() * lit).max().item<double>(), 0.1) << spec;
    EXPECT_GT(expected.min().item<double>(), 0) << spec;  // black
  }
  EXPECT_NEAR(make_noise("poisson:0.2")->variances(clean).min().item<double>(), 4 / (51. * 51.), 1e-7);
  EXPECT_FALSE(make_noise("gaussian:0.1")->variances(clean).defined());
}

TEST(Noise, TouchesOnlyWhatIsObserved) {
  const std::vector<std::uint32_t> images = {0, 1};
  auto a = make_operator("inpaint:random", {{3, 32, 32}, 1, images});
  const Tensor x = torch::rand({4, 3, 32, 32}) * 2 - 1;  // two rounds of the operator's two images
  const std::vector<std::uint32_t> rows = {0, 1, 2, 3};
  const Measurement m = measure(a, make_noise("poisson:1"), x, 1, rows);
  const Tensor clean = a->apply(x),
               mask = a->observed_mask().expand({2, 3, 32, 32}).repeat({2, 1, 1, 1}) > 0.5;
  EXPECT_TRUE(torch::equal(m.y.masked_select(~mask), clean.masked_select(~mask)));
  EXPECT_GT((m.y - clean).masked_select(mask).std().item<double>(), 0.01);
  EXPECT_NEAR(noise_level(m), m.noise->level(m.y.masked_select(mask)), 1e-12);
  EXPECT_GT(std::abs(noise_level(m) - m.noise->level(m.y)),
            1e-5);  // the holes would have counted as mid-grey
}

TEST(Noise, WrongNamesAndValuesAreAnswered) {
  const auto message = [](const std::string& spec) {
    try {
      make_noise(spec);
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_NE(message("gausian:0.1").find("did you mean \"gaussian\""), std::string::npos);
  EXPECT_NE(message("poisson:rat=1").find("did you mean \"rate\""), std::string::npos);
  EXPECT_NE(message("salt-pepper:2").find("nearest valid value is 1"), std::string::npos);
  EXPECT_NE(message("none:1").find("takes no options"), std::string::npos);
}

TEST(EstimateNoise, FindsTheLevelOfPureNoise) {
  const Tensor flat = torch::full({2, 3, 128, 128}, 0.1);
  const std::vector<std::uint32_t> images = {0, 1};
  for (const double sigma : {0.01, 0.1}) {
    const Tensor y = make_noise("gaussian:" + std::to_string(sigma))->corrupt(flat, Rng(1), images);
    EXPECT_LT((estimate_noise(y) / sigma - 1).abs().max().item<double>(), 0.05) << sigma;
    EXPECT_NEAR(make_noise("auto", y)->level(y), sigma, 0.05 * sigma);
  }
  EXPECT_EQ(make_noise("auto", flat)->spec(), "none");
}

TEST(EstimateNoise, IsWithinFifteenPercentOnPhotographs) {
  const std::filesystem::path photos = std::filesystem::path(DPG_SHARED_DIR) / "data" / "photos";
  if (!std::filesystem::is_directory(photos)) GTEST_SKIP() << "no photographs at " << photos;
  std::vector<Tensor> pictures;
  for (const auto& file : std::filesystem::recursive_directory_iterator(photos))
    if (file.is_regular_file() && file.path().extension() == ".png" && pictures.size() < 60)
      pictures.push_back(to_tensor(to_rgb(read_image(file.path()))));
  ASSERT_GT(pictures.size(), 20u);
  for (const double sigma : {0.02, 0.05, 0.1, 0.2}) {
    const auto noise = make_noise("gaussian:" + std::to_string(sigma));
    double sum = 0, absolute = 0;
    for (const Tensor& picture : pictures) {
      const double error = estimate_noise(noise->corrupt(picture, Rng(1), kOne)).item<double>() / sigma - 1;
      sum += error;
      absolute += std::abs(error);
    }
    const double count = static_cast<double>(pictures.size());
    RecordProperty("bias_at_" + std::to_string(sigma), std::to_string(sum / count));
    std::printf("sigma %.2f: bias %+.1f %%, mean absolute error %.1f %% over %zu photographs\n", sigma,
                100 * sum / count, 100 * absolute / count, pictures.size());
    EXPECT_LT(absolute / count, sigma >= 0.05 ? 0.15 : 0.6) << sigma;
  }
}

}  // namespace
}  // namespace dpg
