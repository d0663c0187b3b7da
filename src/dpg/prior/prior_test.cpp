#include "dpg/prior/prior.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "dpg/core/error.h"
#include "dpg/core/file.h"
#include "dpg/tensor/convert.h"

namespace dpg {
namespace {

double relative_error(const Tensor& a, const Tensor& b) {
  return ((a - b).norm() / b.norm()).item<double>();
}

std::shared_ptr<const NetworkPrior> small_prior(bool learn_sigma = true) {
  UNetConfig c;
  c.image_size = 16;
  c.model_channels = 32;
  c.channel_mult = {1, 2};
  c.num_res_blocks = 1;
  c.attention_downsampling = {2};
  c.num_head_channels = 32;
  c.learn_sigma = learn_sigma;
  c.resblock_updown = true;
  const auto network =
      std::make_shared<const UNet>(c, random_weights(c, 5, torch::kCPU), Precision::fp32, torch::kCPU);
  return std::make_shared<const NetworkPrior>(network);
}

TEST(NetworkPrior, X0IsTweediesFormulaClamped) {
  const auto prior = small_prior();
  torch::manual_seed(1);
  const Tensor x = torch::randn({2, 3, 16, 16});
  for (int t : {0, 300, 999}) {
    const Denoised d = prior->denoise(x, t, Track::nothing);
    const double abar = prior->schedule().alpha_bar()[t];
    const Tensor expected = ((x - std::sqrt(1 - abar) * d.eps) / std::sqrt(abar)).clamp(-1, 1);
    EXPECT_TRUE(torch::allclose(d.x0, expected, 1e-5, 1e-6));
    EXPECT_TRUE(d.variance_fraction.defined());
    EXPECT_FALSE(d.x0.requires_grad());
    EXPECT_THROW(d.pull_back(x), Error);
  }
  EXPECT_THROW(prior->denoise(x, 1000, Track::nothing), Error);
  EXPECT_FALSE(small_prior(false)->denoise(x, 5, Track::nothing).variance_fraction.defined());
}

// <J^T v, u> = <v, J u>, with J u from a central difference of the clamped denoiser.
TEST(NetworkPrior, PullBackIsTheTransposedDerivativeClampIncluded) {
  const auto prior = small_prior();
  torch::manual_seed(2);
  const Tensor x = torch::randn({1, 3, 16, 16}), u = torch::randn({1, 3, 16, 16}),
               v = torch::randn({1, 3, 16, 16});
  // At t = 600 many pixels sit on the clamp: where the clamp is active there must be no gradient.
  for (int t : {50, 600}) {
    const Denoised d = prior->denoise(x, t, Track::gradient);
    const double h = 1e-3;
    const auto x0 = [&](double step) {
      return prior->denoise(x + step * u, t, Track::nothing).x0.to(torch::kDouble);
    };
    // Pixels that cross the clamp within the difference are left out of both sides.
    const Tensor plus = x0(h), minus = x0(-h);
    const Tensor steady = ((plus.abs() < 1) == (minus.abs() < 1)).to(torch::kFloat);
    const double expected = ((plus - minus) / (2 * h) * v * steady).sum().item<double>();
    const double actual = (d.pull_back(v * steady) * u).sum().item<double>();
    EXPECT_NEAR(actual, expected, 0.01 * std::abs(expected) + 0.01) << "t = " << t;
    EXPECT_GT((d.x0.abs() == 1).sum().item<std::int64_t>(), t == 600 ? 50 : -1);
  }
}

TEST(NetworkPrior, PullBackIsLinearAndRepeatable) {
  const auto prior = small_prior();
  torch::manual_seed(3);
  const Tensor x = torch::randn({2, 3, 16, 16}), v = torch::randn({2, 3, 16, 16}),
               w = torch::randn({2, 3, 16, 16});
  const Denoised d = prior->denoise(x, 100, Track::gradient);
  const Tensor first = d.pull_back(v);
  EXPECT_TRUE(torch::equal(first, d.pull_back(v)));
  EXPECT_LT(relative_error(d.pull_back(2 * v - 3 * w), 2 * first - 3 * d.pull_back(w)), 1e-4);
  EXPECT_THROW(d.pull_back(v.slice(0, 0, 1)), Error);
}

TEST(NetworkPrior, PullBackOfOneImageIgnoresTheOthers) {
  const auto prior = small_prior();
  torch::manual_seed(4);
  const Tensor x = torch::randn({3, 3, 16, 16}), v = torch::randn({3, 3, 16, 16});
  const Tensor batch = prior->denoise(x, 100, Track::gradient).pull_back(v);
  const Tensor one = prior->denoise(x.slice(0, 1, 2), 100, Track::gradient).pull_back(v.slice(0, 1, 2));
  EXPECT_LT(relative_error(batch.slice(0, 1, 2), one), 1e-5);
}

TEST(NetworkPrior, ANanStopsTheRunAndNamesTheStep) {
  const auto prior = small_prior();
  Tensor x = torch::randn({1, 3, 16, 16});
  x[0][0][3][3] = NAN;
  try {
    prior->denoise(x, 123, Track::nothing);
    FAIL() << "a NaN went through";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("t = 123"), std::string::npos) << error.what();
    EXPECT_NE(std::string(error.what()).find("network's output"), std::string::npos) << error.what();
  }
}

// A checkpoint that is no well-known one: shapes don't tell the heads, so loading asks, by flag or sidecar.
TEST(LoadPrior, AsksForWhatShapesCannotTellAndTakesItFromFlagsOrSidecar) {
  const auto file = std::filesystem::path(testing::TempDir()) / "load_test.safetensors";
  const auto sidecar = std::filesystem::path(file).replace_extension(".json");
  std::filesystem::remove(sidecar);
  const UNetConfig truth = small_prior()->network().config();
  const WeightSource weights = random_weights(truth, 5, torch::kCPU);
  std::vector<std::pair<std::string, Tensor>> tensors;
  for (const NamedShape& t : expected_tensors(truth)) tensors.emplace_back(t.name, weights(t.name));
  save_tensors(file, tensors);

  LoadOptions options;
  options.precision = "fp32";
  try {
    load_prior(file.string(), options);
    FAIL() << "loaded with guessed heads";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("--arch"), std::string::npos) << error.what();
    EXPECT_NE(std::string(error.what()).find("num_head"), std::string::npos) << error.what();
  }
  options.architecture.flags =
      "image_size=16,num_head_channels=32,use_new_attention_order=false,noise_schedule=linear,diffusion_"
      "steps=1000";
  const auto by_flags = load_prior(file.string(), options);
  EXPECT_EQ(by_flags->network().config().heads(64, false), 2);
  EXPECT_EQ(by_flags->image_size(), 16);
  const Tensor x = torch::randn({1, 3, 16, 16});
  EXPECT_TRUE(torch::equal(by_flags->denoise(x, 10, Track::nothing).x0,
                           small_prior()->denoise(x, 10, Track::nothing).x0));

  write_text(sidecar, to_json(truth).dump());
  options.architecture.flags = "num_heads=1";
  EXPECT_EQ(load_prior(file.string(), options)->network().config().heads(64, false), 1);
  options.architecture.flags = "number_of_heads=1";
  EXPECT_THROW(load_prior(file.string(), options), Error);
  std::filesystem::remove(sidecar);
  std::filesystem::remove(file);
}

TEST(LoadPrior, TheBundledPriorLoadsWithoutItsSidecar) {
  const StateDict checkpoint = StateDict::open(std::string(DPG_SOURCE_DIR) + "/priors/faces128.pt");
  EXPECT_EQ(checkpoint_config(checkpoint, "elsewhere.pt"),
            checkpoint_config(checkpoint, std::string(DPG_SOURCE_DIR) + "/priors/faces128.pt"));
}

GaussianPrior gaussian() {
  torch::manual_seed(6);
  const Tensor root = torch::randn({48, 48}, torch::kDouble) / 7;
  return GaussianPrior(torch::randn({3, 4, 4}) * 0.3, root.matmul(root.t()));
}

// The posterior mean by solving the joint Gaussian's normal equations, not by the eigenvectors the class
// uses.
TEST(GaussianPrior, DenoiseIsThePosteriorMean) {
  const GaussianPrior prior = gaussian();
  const Tensor x = torch::randn({2, 3, 4, 4}, torch::kDouble), S = prior.covariance();
  for (int t : {0, 10, 500, 999}) {
    const double abar = prior.schedule().alpha_bar()[t];
    const Tensor gap = (x - std::sqrt(abar) * prior.mean()).flatten(1).t();
    const Tensor marginal = abar * S + (1 - abar) * torch::eye(48, torch::kDouble);
    const Tensor expected =
        prior.mean().flatten().unsqueeze(1) + std::sqrt(abar) * S.matmul(torch::linalg_solve(marginal, gap));
    const Denoised d = prior.denoise(x, t, Track::gradient);
    EXPECT_LT(relative_error(d.x0.flatten(1).t(), expected), 1e-9);
    // x_t = sqrt(abar) x0 + sqrt(1 - abar) eps ties the two outputs together.
    EXPECT_LT(relative_error(std::sqrt(abar) * d.x0 + std::sqrt(1 - abar) * d.eps, x), 1e-12);
  }
}

TEST(GaussianPrior, PullBackIsTheExactJacobian) {
  const GaussianPrior prior = gaussian();
  const Tensor x = torch::randn({2, 3, 4, 4}, torch::kDouble), u = torch::randn_like(x),
               v = torch::randn_like(x);
  const Denoised at = prior.denoise(x, 400, Track::gradient);
  const Tensor along = prior.denoise(x + u, 400, Track::nothing).x0 - at.x0;  // linear: exact for any step
  EXPECT_NEAR((at.pull_back(v) * u).sum().item<double>(), (v * along).sum().item<double>(), 1e-9);
}

TEST(GaussianPrior, RefusesWhatIsNoCovariance) {
  EXPECT_THROW(GaussianPrior(torch::zeros({3, 4, 4}), -torch::eye(48)), Error);
  EXPECT_THROW(GaussianPrior(torch::zeros({3, 4, 4}), torch::eye(47)), Error);
}

}  // namespace
}  // namespace dpg
