// The learned blur network on random weights: against its published layer list written out literally, and as
// an operator.
#include "dpg/measure/kernel_network.h"

#include <gtest/gtest.h>
#include <torch/torch.h>
#include <unistd.h>

#include <filesystem>

#include "dpg/core/error.h"
#include "dpg/measure/catalog.h"
#include "dpg/tensor/convert.h"

namespace dpg {
namespace {

using Weights = std::map<std::string, Tensor>;

constexpr int kFeatures = 4, kCode = 6, kFrontBlocks = 2, kBackBlocks = 3;

void add(Weights& weights, const std::string& name, std::vector<std::int64_t> shape, bool bias) {
  const double fan_in = static_cast<double>(shape[1] * shape[2] * shape[3]);
  weights[name + ".weight"] = torch::randn(shape) * std::sqrt(2 / fan_in);
  if (bias) weights[name + ".bias"] = 0.1 * torch::randn({shape[0]});
}

// The authors' names and shapes, with fewer features; the adapter's way down has no biases.
Weights random_network() {
  torch::manual_seed(1);
  const int f = kFeatures;
  Weights w;
  add(w, "feature_extractor.0", {f, 3, 3, 3}, true);
  add(w, "feature_extractor.2", {f, f, 3, 3}, true);
  add(w, "feature_extractor.4", {f, f, 3, 3}, true);
  for (int i = 0; i < kFrontBlocks; ++i)
    for (const char* part : {".conv1", ".conv2"})
      add(w, "feature_extractor." + std::to_string(6 + i) + part, {f, f, 3, 3}, true);
  const int width[] = {f, f, 2 * f, 4 * f, 8 * f, 8 * f};  // width[i]: into level i; width[i + 1]: below it
  std::string level = "adapter.model";
  for (int i = 0; i < 5; ++i, level += ".submodule") {
    const int inside = width[i + 1] + (i == 4 ? kCode : width[i + 1]);
    add(w, level + (i == 0 ? ".down.0" : ".down.1"), {width[i + 1], width[i], 4, 4}, false);
    add(w, level + ".up.1.double_conv.0", {width[i], inside, 5, 5}, true);
    add(w, level + ".up.1.double_conv.2", {width[i], width[i], 5, 5}, true);
  }
  for (int i = 0; i < kBackBlocks; ++i)
    for (const char* part : {".conv1", ".conv2"})
      add(w, "recon_trunk." + std::to_string(i) + part, {f, f, 3, 3}, true);
  add(w, "recon_trunk.3", {4 * f, f, 3, 3}, true);
  add(w, "recon_trunk.6", {256, f, 3, 3}, true);
  add(w, "recon_trunk.9", {64, 64, 3, 3}, true);
  add(w, "recon_trunk.11", {3, 64, 3, 3}, true);
  w["kernel_extractor.model.1.weight"] = torch::zeros({1, 1, 1, 1});  // in the file, and not needed
  return w;
}

// A literal reading of the published modules, activations in place where they are in place there.
struct Reference {
  Weights w;
  Tensor conv(const Tensor& x, const std::string& name, int stride, int padding) const {
    const auto bias = w.find(name + ".bias");
    return torch::conv2d(x, w.at(name + ".weight"), bias == w.end() ? Tensor() : bias->second, stride,
                         padding);
  }
  Tensor block(const Tensor& x, const std::string& name) const {
    return x + conv(torch::relu(conv(x, name + ".conv1", 1, 1)), name + ".conv2", 1, 1);
  }
  Tensor up(Tensor x, const std::string& name) const {
    x = torch::relu_(x);
    x = torch::relu(conv(x, name + ".up.1.double_conv.0", 1, 2));
    x = torch::relu(conv(x, name + ".up.1.double_conv.2", 1, 2));
    return torch::upsample_bilinear2d(x, {x.size(2) * 2, x.size(3) * 2}, true);
  }
  Tensor level(Tensor x, const Tensor& code, const std::string& name, int depth) const {
    if (depth == 0)
      return torch::tanh(up(level(conv(x, name + ".down.0", 2, 1), code, name + ".submodule", 1), name));
    torch::leaky_relu_(x, 0.2);
    const Tensor down = conv(x, name + ".down.1", 2, 1);
    const Tensor inside =
        depth == 4 ? torch::cat({down, code}, 1) : level(down, code, name + ".submodule", depth + 1);
    return torch::cat({up(inside, name), x}, 1);
  }
  Tensor blur(const Tensor& u, const Tensor& code) const {
    Tensor h = u;
    for (const int i : {0, 2, 4})
      h = torch::leaky_relu(conv(h, "feature_extractor." + std::to_string(i), i ? 2 : 1, 1), 0.1);
    for (int i = 0; i < kFrontBlocks; ++i) h = block(h, "feature_extractor." + std::to_string(6 + i));
    h = level(h, code, "adapter.model", 0);
    for (int i = 0; i < kBackBlocks; ++i) h = block(h, "recon_trunk." + std::to_string(i));
    h = torch::leaky_relu(torch::pixel_shuffle(conv(h, "recon_trunk.3", 1, 1), 2), 0.1);
    h = torch::leaky_relu(torch::pixel_shuffle(conv(h, "recon_trunk.6", 1, 1), 2), 0.1);
    h = torch::leaky_relu(conv(h, "recon_trunk.9", 1, 1), 0.1);
    return conv(h, "recon_trunk.11", 1, 1) + u;
  }
};

class KernelNetworkTest : public testing::Test {
 protected:
  void SetUp() override {
    file_ = std::filesystem::temp_directory_path() /
            ("dpg_network_" + std::to_string(::getpid()) + ".safetensors");
    save(random_network());
  }
  void TearDown() override { std::filesystem::remove(file_); }
  void save(const Weights& weights) const { save_tensors(file_, {weights.begin(), weights.end()}); }
  std::filesystem::path file_;
};

TEST_F(KernelNetworkTest, EqualsTheLiteralReading) {
  const torch::NoGradGuard guard;
  const KernelNetwork network(StateDict::open(file_));
  EXPECT_EQ(network.image_channels(), 3);
  EXPECT_EQ(network.code_channels(), kCode);
  const Tensor u = torch::rand({2, 3, 128, 256}), code = torch::randn({2, kCode, 1, 2});
  const Tensor expected = Reference{random_network()}.blur(u, code);
  EXPECT_GT((expected - u).norm().item<double>(), 1);  // it does something
  EXPECT_LT(((network.blur(u, code) - expected).norm() / expected.norm()).item<double>(), 1e-5);
}

TEST_F(KernelNetworkTest, IsAnOperatorWithOneCodeForEachImage) {
  const std::string spec = "nonlinear-blur:weights=" + file_.string();
  const OperatorContext context = {{3, 128, 128}, 4, {0, 1}};
  const auto a = make_operator(spec, context);
  EXPECT_EQ(a->batch(), 2);
  const Tensor x = torch::rand({1, 3, 128, 128}) - 0.5;
  const Tensor y = a->apply(x.repeat({2, 1, 1, 1}));
  EXPECT_GT((y[0] - y[1]).abs().max().item<double>(), 2e-3);  // two codes
  OperatorContext second = context;
  second.images = {1};
  const auto again = make_operator(a->spec(), second);
  EXPECT_LT((again->apply(x)[0] - y[1]).abs().max().item<double>(), 2e-4);  // rounding only
}

TEST_F(KernelNetworkTest, VjpMatchesFiniteDifferences) {
  const OperatorContext context = {{3, 128, 128}, 4, {0}};
  const auto a = make_operator("nonlinear-blur:weights=" + file_.string(), context);
  const Tensor x = torch::rand({1, 3, 128, 128}) * 0.6 - 0.3, y = a->apply(x);
  const Tensor d = torch::randn_like(x) + x, v = torch::randn_like(y) + y;
  const double h = 1e-3;
  const Tensor change = (a->apply(x + h * d) - a->apply(x - h * d)) / (2 * h);
  const double numeric = (v * change).sum().item<double>();
  EXPECT_NEAR((as_differentiable(*a)->vjp(x, v) * d).sum().item<double>(), numeric,
              5e-3 * (v.norm() * change.norm()).item<double>());
}

TEST_F(KernelNetworkTest, RefusesOtherFilesAndSizes) {
  const OperatorContext context = {{3, 128, 128}, 4, {0}};
  const std::string spec = "nonlinear-blur:weights=" + file_.string();
  EXPECT_THROW(make_operator(spec, {{3, 100, 128}, 4, {0}}), Error);
  EXPECT_THROW(make_operator(spec, {{1, 128, 128}, 4, {0}}), Error);
  EXPECT_THROW(make_operator(spec + ",exposure=2", context), Error);
  Weights weights = random_network();
  weights.erase("adapter.model.submodule.down.1.weight");
  save(weights);
  EXPECT_THROW(make_operator(spec, context), Error);
  weights = random_network();
  weights["recon_trunk.6.weight"] = torch::zeros({256, kFeatures, 5, 5});
  save(weights);
  EXPECT_THROW(make_operator(spec, context), Error);
  weights = random_network();
  weights["recon_trunk.9.weight"] = torch::zeros({64, 60, 3, 3});
  save(weights);
  EXPECT_THROW(make_operator(spec, context), Error);
}

}  // namespace
}  // namespace dpg
