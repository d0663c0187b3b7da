// The network against reference tensors, and its fast paths against the readable ones.
#include "dpg/prior/unet.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "dpg/core/error.h"
#include "dpg/prior/fused_norm.h"
#include "dpg/prior/test_block.h"
#include "dpg/tensor/convert.h"

namespace dpg {
namespace {

const std::string kFixtures = std::string(DPG_SHARED_DIR) + "/fixtures/";

double relative_error(const Tensor& a, const Tensor& b) {
  return ((a - b).norm() / b.norm()).item<double>();
}

UNetConfig fixture_config(const std::string& name) {
  std::ifstream file(kFixtures + name + ".json");
  return unet_config_from_json(nlohmann::json::parse(file));
}

class Fixture : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    if (!std::filesystem::exists(kFixtures))
      GTEST_SKIP() << "no reference tensors at " << kFixtures << " (set DPG_SHARED_DIR at configure time)";
  }
};

TEST_P(Fixture, OutputAndInputGradientEqualTheReference) {
  const std::string name = GetParam();
  const UNetConfig config = fixture_config(name);
  const StateDict checkpoint = StateDict::open(kFixtures + name + ".pt");
  const UNet network(config, checkpoint_weights(checkpoint, config, torch::kCPU), Precision::fp32,
                     torch::kCPU);
  const auto io = load_tensors(kFixtures + name + ".io.safetensors");
  const Tensor x = io.at("x").clone().requires_grad_(true);
  const Tensor output = network.forward(x, io.at("t"));
  const Tensor gradient = torch::autograd::grad({output}, {x}, {io.at("cotangent")})[0];
  EXPECT_LT(relative_error(output, io.at("output")), 1e-5);
  EXPECT_LT(relative_error(gradient, io.at("input_gradient")), 1e-5);
}

TEST_P(Fixture, Bf16StaysCloseToTheReference) {
  const std::string name = GetParam();
  const UNetConfig config = fixture_config(name);
  const StateDict checkpoint = StateDict::open(kFixtures + name + ".pt");
  const UNet network(config, checkpoint_weights(checkpoint, config, torch::kCPU), Precision::bf16,
                     torch::kCPU);
  const auto io = load_tensors(kFixtures + name + ".io.safetensors");
  const Tensor x = io.at("x").clone().requires_grad_(true);
  const Tensor output = network.forward(x, io.at("t"));
  const Tensor gradient = torch::autograd::grad({output}, {x}, {io.at("cotangent")})[0];
  EXPECT_LT(relative_error(output, io.at("output")), 0.02);
  EXPECT_LT(relative_error(gradient, io.at("input_gradient")), 0.03);
}

INSTANTIATE_TEST_SUITE_P(ThreeArchitectures, Fixture,
                         testing::Values("adm-tiny", "ddpm-style", "new-attention"));

UNetConfig small_config() {
  UNetConfig c;
  c.image_size = 16;
  c.model_channels = 32;
  c.channel_mult = {1, 2};
  c.num_res_blocks = 1;
  c.attention_downsampling = {2};
  c.num_head_channels = 32;
  c.learn_sigma = true;
  c.resblock_updown = true;
  return c;
}

UNet make_small(const UNetConfig& c, Precision precision = Precision::fp32) {
  return UNet(c, random_weights(c, 5, torch::kCPU), precision, torch::kCPU);
}

TEST(UNet, TakesEveryExpectedTensorAndNoOther) {
  for (const bool updown : {true, false})
    for (const bool conv : {true, false})
      for (const int classes : {0, 10}) {
        UNetConfig c = small_config();
        c.resblock_updown = updown;
        c.conv_resample = conv;
        c.num_classes = classes;
        std::map<std::string, int> taken;
        const WeightSource source = random_weights(c, 1, torch::kCPU);
        UNet network(
            c, [&](const std::string& name) { return taken[name] = 1, source(name); }, Precision::fp32,
            torch::kCPU);
        const auto expected = expected_tensors(c);
        EXPECT_EQ(taken.size(), expected.size());
        for (const auto& t : expected) EXPECT_EQ(taken[t.name], 1) << t.name;
      }
}

TEST(UNet, ABatchEqualsSingleImages) {
  const UNet network = make_small(small_config());
  torch::manual_seed(1);
  const Tensor x = torch::randn({3, 3, 16, 24});
  const Tensor t = torch::tensor({10, 500, 999});
  const torch::NoGradGuard no_grad;
  const Tensor batch = network.forward(x, t);
  for (int i = 0; i < 3; ++i) {
    const Tensor single = network.forward(x.slice(0, i, i + 1), t.slice(0, i, i + 1));
    EXPECT_LT(relative_error(batch.slice(0, i, i + 1), single), 1e-5);
  }
}

TEST(UNet, TheSameInputGivesTheSameBits) {
  const UNet network = make_small(small_config());
  torch::manual_seed(1);
  const Tensor x = torch::randn({1, 3, 32, 32}), t = torch::tensor({300});
  const torch::NoGradGuard no_grad;
  const int threads = torch::get_num_threads();
  torch::set_num_threads(2);
  const Tensor two = network.forward(x, t);
  EXPECT_TRUE(torch::equal(two, network.forward(x, t)));
  torch::set_num_threads(threads);
}

TEST(UNet, ClassEmbeddingChangesTheOutputAndNoneIsAllowed) {
  UNetConfig c = small_config();
  c.num_classes = 4;
  const UNet network = make_small(c);
  const torch::NoGradGuard no_grad;
  const Tensor x = torch::randn({1, 3, 16, 16}), t = torch::tensor({300});
  const Tensor none = network.forward(x, t), one = network.forward(x, t, torch::tensor({1})),
               two = network.forward(x, t, torch::tensor({2}));
  EXPECT_GT(relative_error(one, none), 1e-3);
  EXPECT_GT(relative_error(one, two), 1e-3);
  EXPECT_THROW(network.forward(x, t, torch::tensor({4})), Error);
  EXPECT_THROW(make_small(small_config()).forward(x, t, torch::tensor({1})), Error);
}

TEST(UNet, TheGpuGivesWhatTheCpuGives) {
  if (!torch::cuda::is_available()) GTEST_SKIP() << "no GPU here";
  torch::manual_seed(1);
  const UNetConfig c = small_config();
  const Tensor x = torch::randn({2, 3, 32, 32}), t = torch::tensor({10, 700}),
               v = torch::randn({2, 6, 32, 32});
  const auto run = [&](torch::Device device, Precision precision) {
    const UNet network(c, random_weights(c, 5, device), precision, device);
    const GpuArithmetic arithmetic(precision);
    const Tensor leaf = x.to(device).requires_grad_(true);
    const Tensor y = network.forward(leaf, t.to(device));
    return std::pair{y.detach().cpu(), torch::autograd::grad({y}, {leaf}, {v.to(device)})[0].cpu()};
  };
  const auto [y_cpu, dx_cpu] = run(torch::kCPU, Precision::fp32);
  const auto [y_gpu, dx_gpu] = run(torch::kCUDA, Precision::fp32);
  EXPECT_LT(relative_error(y_gpu, y_cpu), 1e-4);
  EXPECT_LT(relative_error(dx_gpu, dx_cpu), 1e-4);
  const auto [y_half, dx_half] = run(torch::kCUDA, Precision::bf16);
  EXPECT_LT(relative_error(y_half, y_cpu), 0.02);
  EXPECT_LT(relative_error(dx_half, dx_cpu), 0.03);
}

TEST(UNet, RefusesSizesItCannotHalve) {
  const UNet network = make_small(small_config());
  const Tensor t = torch::tensor({1});
  EXPECT_THROW(network.forward(torch::randn({1, 3, 15, 16}), t), Error);
  EXPECT_THROW(network.forward(torch::randn({1, 1, 16, 16}), t), Error);
  EXPECT_THROW(network.forward(torch::randn({2, 3, 16, 16}), t), Error);
}

TEST(UNet, AMissingOrSurplusTensorIsNamed) {
  const UNetConfig c = small_config();
  const WeightSource source = random_weights(c, 1, torch::kCPU);
  const auto path = std::filesystem::path(testing::TempDir()) / "unet_test.safetensors";
  const auto message_with = [&](const std::string& leave_out, const std::string& add) {
    std::vector<std::pair<std::string, Tensor>> tensors;
    for (const auto& t : expected_tensors(c))
      if (t.name != leave_out) tensors.emplace_back(t.name, source(t.name));
    if (!add.empty()) tensors.emplace_back(add, torch::ones({1}));
    save_tensors(path, tensors);
    try {
      checkpoint_weights(StateDict::open(path), c, torch::kCPU);
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_EQ(message_with("", ""), "");
  EXPECT_NE(message_with("middle_block.1.qkv.bias", "").find("middle_block.1.qkv.bias"), std::string::npos);
  EXPECT_NE(message_with("", "extra.weight").find("extra.weight"), std::string::npos);
  std::filesystem::remove(path);
}

TEST(FusedNorm, ValueAndGradientEqualPlainTorch) {
  torch::manual_seed(2);
  const WeightSource weights = [](const std::string&) { return torch::randn({64}); };
  const Normalisation norm(weights, "norm");
  for (const bool silu : {true, false})
    for (const bool scaled : {true, false}) {
      const Tensor scale = scaled ? torch::randn({2, 64}) : Tensor(),
                   shift = scaled ? torch::randn({2, 64}) : Tensor();
      const Tensor v = torch::randn({2, 64, 7, 9});
      const auto run = [&](bool fused) {
        const Tensor x = torch::randn({2, 64, 7, 9}, torch::make_generator<at::CPUGeneratorImpl>(3))
                             .contiguous(torch::MemoryFormat::ChannelsLast)
                             .requires_grad_(true);
        const Tensor y = fused ? norm(x, silu, scale, shift) : norm.reference(x, silu, scale, shift);
        return std::pair{y, torch::autograd::grad({y}, {x}, {v})[0]};
      };
      const auto [y, dx] = run(true);
      const auto [y_reference, dx_reference] = run(false);
      EXPECT_LT(relative_error(y, y_reference), 1e-5);
      EXPECT_LT(relative_error(dx, dx_reference), 1e-5);
    }
}

// Where others take x too, their gradient is in the norm's.
TEST(FusedNorm, TheInputItPassesOnHasItsGradient) {
  torch::manual_seed(3);
  const WeightSource weights = [](const std::string&) { return torch::randn({64}); };
  const Normalisation norm(weights, "norm");
  const Tensor start = torch::randn({2, 64, 7, 9}), v = torch::randn({2, 64, 7, 9}),
               w = torch::randn({2, 64, 7, 9});
  const auto gradient = [&](bool fused) {
    const Tensor x = start.clone().requires_grad_(true);
    const auto [y, passed] = fused ? norm.passing_on(x) : std::pair(norm.reference(x, /*silu=*/false), x);
    EXPECT_TRUE(torch::equal(passed, x));
    return torch::autograd::grad({y, torch::sin(passed)}, {x}, {v, w})[0];
  };
  EXPECT_LT(relative_error(gradient(true), gradient(false)), 1e-5);
}

// Every kind of block, with and without an encoder input, alone and where others take x too.
TEST(FusedResidual, ValueAndGradientsEqualPlainTorch) {
  for (const BlockKind& kind : block_kinds())
    expect_plain_block(kind, [](const ResidualBlock& block, const Tensor& x, const Tensor& e,
                                const Tensor& encoder) { return block.passing_on(x, e, encoder); });
}

}  // namespace
}  // namespace dpg
