// The program against reference tensors: every file format, parity of output and input gradient, files that
// are no U-Net. Needs the folder of fixtures; without it CTest lists this program as skipped.
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <map>

#include "dpg/tensor/convert.h"
#include "program.h"

namespace dpg::testing {
namespace {

const std::string kFixtures = DPG_SHARED_DIR "/fixtures/";
const std::string kWeights = DPG_SHARED_DIR "/weights/";

void expect_contains(const std::string& text, const std::string& word) {
  EXPECT_NE(text.find(word), std::string::npos) << "no \"" << word << "\" in\n" << text;
}

TEST(ModelInfo, ReadsEveryFormat) {
  for (const auto& [file, format] : {std::pair{"adm-tiny.pt", "torch zip"},
                                     {"adm-tiny.legacy.pt", "torch legacy"},
                                     {"adm-tiny.safetensors", "safetensors"}}) {
    const Outcome outcome = run_dpg({"model", "info", kFixtures + file});
    ASSERT_EQ(outcome.code, 0) << outcome.err;
    expect_contains(outcome.out, format);
    expect_contains(outcome.out, "216");      // tensors
    expect_contains(outcome.out, "1422278");  // parameters
  }
}

TEST(ModelInfo, SaysWhenItIsNoDiffusionNetwork) {
  for (const std::string file : {"lpips_squeeze_v0.1.safetensors", "lpips_heads/vgg.pth"}) {
    const Outcome outcome = run_dpg({"model", "info", kWeights + file});
    ASSERT_EQ(outcome.code, 0) << outcome.err;
    expect_contains(outcome.out, "no diffusion U-Net");
    for (const auto& [name, tensor] : load_tensors(kWeights + file)) expect_contains(outcome.out, name);
  }
}

TEST(Sample, RefusesWhatIsNoDiffusionNetwork) {
  const Scratch scratch;
  const std::string model = kWeights + "lpips_squeeze_v0.1.safetensors";
  expect_refused(run_dpg({"sample", "-n", "1", "--model", model, "-o", scratch.file("x.png")}), 1,
                 {model, "no diffusion U-Net"});
  EXPECT_TRUE(scratch.files().empty());
}

double relative_error(const Tensor& a, const Tensor& b) {
  return ((a - b).norm() / b.norm()).item<double>();
}

// Runs image `i` of a fixture's batch, alone, through `dpg model forward` and compares with the batch's row.
void expect_parity(const std::string& model, const std::map<std::string, Tensor>& io, int i) {
  const Scratch scratch;
  const std::string x = scratch.file("x.safetensors"), v = scratch.file("v.safetensors");
  const std::string y = scratch.file("y.safetensors");
  const auto row = [&](const char* name) { return io.at(name).narrow(0, i, 1).contiguous(); };
  save_tensors(x, {{"x", row("x")}});
  save_tensors(v, {{"cotangent", row("cotangent")}});
  const std::string t = std::to_string(row("t").item<std::int64_t>());
  const Outcome outcome = run_dpg({"model", "forward", "--model", model, "--in", x, "--t", t, "--cotangent",
                                   v, "--out", y, "--precision", "fp32"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const auto result = load_tensors(y);
  for (const char* name : {"output", "input_gradient"}) {
    ASSERT_TRUE(result.count(name)) << name;
    EXPECT_LE(relative_error(result.at(name), row(name)), 1e-4) << model << ", t = " << t << ", " << name;
  }
}

TEST(ModelForward, EqualsTheFixtures) {
  for (const std::string name : {"adm-tiny", "ddpm-style", "new-attention"}) {
    const auto io = load_tensors(kFixtures + name + ".io.safetensors");
    for (int i = 0; i < io.at("x").size(0); ++i) expect_parity(kFixtures + name + ".pt", io, i);
  }
}

// A converted checkpoint is the same network. Its architecture travels in a sidecar.
TEST(ModelConvert, GivesTheSameNetwork) {
  const Scratch scratch;
  const std::string copy = scratch.file("copy.safetensors");
  const Outcome outcome =
      run_dpg({"model", "convert", kFixtures + "adm-tiny.legacy.pt", copy, "--dtype", "f32"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  write_bytes(scratch.file("copy.json"), read_bytes(kFixtures + "adm-tiny.json"));
  expect_parity(copy, load_tensors(kFixtures + "adm-tiny.io.safetensors"), 0);
}

TEST(ModelForward, RefusesAnInputThatDoesNotFit) {
  const Scratch scratch;
  const std::string x = scratch.file("x.safetensors"), y = scratch.file("y.safetensors");
  save_tensors(x, {{"x", torch::zeros({1, 3, 30, 32})}});  // 30 is no multiple of the network's downsampling
  expect_refused(
      run_dpg({"model", "forward", "--model", kFixtures + "adm-tiny.pt", "--in", x, "--t", "5", "--out", y}),
      1, {"multiples of 4"});
  save_tensors(x, {{"picture", torch::zeros({1, 3, 32, 32})}});
  expect_refused(
      run_dpg({"model", "forward", "--model", kFixtures + "adm-tiny.pt", "--in", x, "--t", "5", "--out", y}),
      1, {x});
  EXPECT_EQ(scratch.files(), std::vector<std::string>{"x.safetensors"});
}

}  // namespace
}  // namespace dpg::testing

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  if (!std::filesystem::exists(dpg::testing::kFixtures)) {
    std::printf("skipped: there are no reference tensors in %s\n", dpg::testing::kFixtures.c_str());
    return 77;
  }
  return RUN_ALL_TESTS();
}
