// The program with nothing but the bundled prior: samples, conversions, and what it says when something is
// wrong.
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cstdio>
#include <cstdlib>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "dpg/image/image.h"
#include "dpg/tensor/convert.h"
#include "program.h"

namespace dpg::testing {
namespace {

const std::string kPrior = DPG_SOURCE_DIR "/priors/faces128.pt";

std::vector<std::string> sample_command(const std::string& seed, const std::string& out) {
  return {"sample", "-n", "2", "--steps", "3", "--seed", seed, "-o", out};
}

TEST(Sample, SameSeedSameBytesAndAnotherSeedOthers) {
  const Scratch scratch;
  for (const auto& [seed, name] : {std::pair{"1", "a.png"}, {"1", "b.png"}, {"2", "c.png"}}) {
    const Outcome outcome = run_dpg(sample_command(seed, scratch.file(name)));
    ASSERT_EQ(outcome.code, 0) << outcome.err;
  }
  const std::string a = read_bytes(scratch.file("a.png"));
  EXPECT_EQ(a, read_bytes(scratch.file("b.png")));
  EXPECT_NE(a, read_bytes(scratch.file("c.png")));
  const Image grid = read_image(scratch.file("a.png"));
  EXPECT_EQ(grid.channels, 3);
  EXPECT_GE(grid.pixels(), 2 * 128 * 128);  // both pictures are on the sheet
  EXPECT_GT(to_tensor(grid).std().item<float>(), 0.05f);
}

TEST(Sample, SamplersDiffer) {
  const Scratch scratch;
  for (const std::string sampler : {"ddpm", "ddim"}) {
    auto command = sample_command("1", scratch.file(sampler + ".png"));
    command.insert(command.end(), {"--sampler", sampler});
    const Outcome outcome = run_dpg(command);
    ASSERT_EQ(outcome.code, 0) << outcome.err;
  }
  EXPECT_NE(read_bytes(scratch.file("ddpm.png")), read_bytes(scratch.file("ddim.png")));
}

TEST(ModelInfo, KnowsTheBundledPrior) {
  const Outcome outcome = run_dpg({"model", "info", kPrior, "--tensors"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  for (const char* word : {"torch zip", "18477510", "faces128", "input_blocks.0.0.weight"})
    EXPECT_NE(outcome.out.find(word), std::string::npos) << word << " is not in\n" << outcome.out;
}

// 16-bit weights: through 32 bits and back nothing is lost; through bf16 at most its rounding.
TEST(ModelConvert, KeepsEveryTensor) {
  const Scratch scratch;
  const auto original = load_tensors(kPrior);
  for (const auto& [dtype, type, limit] : {std::tuple{"f32", torch::kFloat, 0.0},
                                           {"f16", torch::kHalf, 0.0},
                                           {"bf16", torch::kBFloat16, 1.0 / 256}}) {
    const std::string out = scratch.file(std::string(dtype) + ".safetensors");
    const Outcome outcome = run_dpg({"model", "convert", kPrior, out, "--dtype", dtype});
    ASSERT_EQ(outcome.code, 0) << outcome.err;
    const auto converted = load_tensors(out);
    ASSERT_EQ(converted.size(), original.size());
    for (const auto& [name, tensor] : original) {
      const Tensor& other = converted.at(name);
      ASSERT_EQ(other.scalar_type(), type) << name;
      ASSERT_EQ(other.sizes(), tensor.sizes()) << name;
      const Tensor a = tensor.to(torch::kFloat), b = other.to(torch::kFloat);
      EXPECT_TRUE(((a - b).abs() <= limit * a.abs()).all().item<bool>()) << name << " as " << dtype;
    }
  }
}

TEST(Refusals, MissingFile) {
  const Scratch scratch;
  const std::string missing = scratch.file("missing.pt");
  expect_refused(run_dpg({"model", "info", missing}), 1, {missing});
  expect_refused(run_dpg({"sample", "-n", "1", "--model", missing, "-o", scratch.file("x.png")}), 1,
                 {missing});
  EXPECT_TRUE(scratch.files().empty());
}

TEST(Refusals, TruncatedCheckpoint) {
  const Scratch scratch;
  const std::string whole = read_bytes(kPrior), cut = scratch.file("cut.pt");
  for (const std::size_t size : {whole.size() / 2, whole.size() - 1, std::size_t{3}, std::size_t{0}}) {
    write_bytes(cut, whole.substr(0, size));
    expect_refused(run_dpg({"model", "info", cut}), 1, {cut});
    expect_refused(run_dpg({"model", "convert", cut, scratch.file("out.safetensors")}), 1, {cut});
    expect_refused(run_dpg({"sample", "-n", "1", "--model", cut, "-o", scratch.file("out.png")}), 1, {cut});
  }
  EXPECT_EQ(scratch.files(), std::vector<std::string>{"cut.pt"});
}

TEST(Refusals, UnwritableOutput) {
  const Scratch scratch;
  const std::string out = scratch.file("no-such-folder/out.safetensors");
  expect_refused(run_dpg({"model", "convert", kPrior, out}), 1, {out});
}

// Wrong usage is exit code 2, and the message names what is wrong.
TEST(Refusals, WrongOptions) {
  const Scratch scratch;
  const std::string out = scratch.file("out.png");
  for (const std::vector<std::string>& command :
       std::vector<std::vector<std::string>>{{"sample", "-o", out, "--no-such-option"},
                                             {"sample", "-o", out, "--steps", "many"},
                                             {"no-such-command"},
                                             {}}) {
    const Outcome outcome = run_dpg(command);
    EXPECT_EQ(outcome.code, 2) << outcome.err;
    EXPECT_NE(outcome.err, "");
  }
  for (const auto& [option, value] :
       {std::pair{"--sampler", "euler"}, {"--precision", "fp8"}, {"--steps", "0"}}) {
    const Outcome outcome = run_dpg({"sample", "-n", "1", "-o", out, option, value});
    EXPECT_TRUE(outcome.code == 1 || outcome.code == 2) << option << " " << value << ": " << outcome.code;
    EXPECT_NE(outcome.err.find(value), std::string::npos) << outcome.err;
  }
  EXPECT_TRUE(scratch.files().empty());
}

TEST(Refusals, UnknownImageExtension) {
  const Scratch scratch;
  const Outcome outcome = run_dpg({"sample", "-n", "1", "--steps", "1", "-o", scratch.file("out.xyz")});
  EXPECT_EQ(outcome.code, 1);
  EXPECT_NE(outcome.err.find("out.xyz"), std::string::npos) << outcome.err;
  EXPECT_TRUE(scratch.files().empty());
}

TEST(Score, OfFoldersComparesThemAsSetsToo) {
  const Scratch scratch, no_weights;
  ::setenv("XDG_DATA_HOME", no_weights.file("").c_str(), 1);
  ::unsetenv("DPG_WEIGHTS");
  for (const char* folder : {"restored", "truth"}) std::filesystem::create_directory(scratch.file(folder));
  for (const char* name : {"a.png", "b.png"}) {
    write_image(scratch.file("truth/") + name, blank_image(3, 16, 16));
    write_image(scratch.file("restored/") + name, blank_image(3, 16, 16, 0.2f));
  }
  const std::vector<std::string> command = {"score", scratch.file("restored"), "--truth",
                                            scratch.file("truth")};
  Outcome outcome = run_dpg(command);
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  for (const char* line :
       {"a.png: PSNR 20.", "b.png: PSNR 20.", "mean: PSNR 20.", "FID unavailable: its weights",
        "KID unavailable", "FD-googlenet unavailable", "KD-googlenet unavailable"})
    EXPECT_NE(outcome.out.find(line), std::string::npos) << line << " is not in\n" << outcome.out;

  auto as_json = command;
  as_json.push_back("--json");
  outcome = run_dpg(as_json);
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const auto json = nlohmann::json::parse(outcome.out);
  EXPECT_EQ(json["pictures"].size(), 2u);
  EXPECT_NEAR(json["mean"]["psnr"].get<double>(), 20, 0.2);  // 0.2 as 8 bits know it
  EXPECT_TRUE(json["mean"]["lpips_squeeze"].is_null());
  EXPECT_TRUE(json["sets"]["FID"].get<std::string>().starts_with("unavailable: "));
  expect_refused(run_dpg({"score", scratch.file("truth/a.png"), "--truth", scratch.file("truth"), "--sets"}),
                 1, {"--sets", "two folders"});
}

TEST(Compare, TwoEvaluations) {
  const Scratch scratch;
  const auto write = [&](const char* name, const char* method, double better) {
    nlohmann::json rows = nlohmann::json::array();
    for (int i = 0; i < 5; ++i)
      rows.push_back(
          {{"task", "sr4"}, {"method", method}, {"image", std::to_string(i)}, {"psnr", 25 + i + better}});
    write_bytes(scratch.file(name), nlohmann::json({{"format", "dpg-results-1"}, {"rows", rows}}).dump());
    return scratch.file(name);
  };
  const std::string a = write("a.json", "dps", 0), b = write("b.json", "dpg", 1);
  const Outcome outcome = run_dpg({"compare", a, b, "--methods", "dps,dpg"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_NE(outcome.out.find("better"), std::string::npos) << outcome.out;
  expect_refused(run_dpg({"compare", a, b}), 1, {"sr4, dps", "sr4, dpg", "--methods"});
  expect_refused(run_dpg({"compare", a, kPrior}), 1, {kPrior, "dpg-results-1"});
}

// With the default settings and few steps. Whatever has a derivative is nearer to the truth than what went
// in.
TEST(Demo, RestoresItsPicturesAndWritesThePage) {
  const Scratch scratch;
  const Outcome outcome = run_dpg({"demo", "-o", scratch.file("demo"), "--steps", "6"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const std::string page = read_bytes(scratch.file("demo/index.html"));
  std::istringstream lines(outcome.out);
  for (const char* task :
       {"Box inpainting", "Super-resolution x4", "Gaussian deblurring", "Motion deblurring"}) {
    std::string line;
    ASSERT_TRUE(std::getline(lines, line));
    double before = 0, after = 0;
    ASSERT_EQ(line.rfind(task, 0), 0u) << line;
    ASSERT_EQ(std::sscanf(line.substr(22).c_str(), "%lf dB -> %lf dB", &before, &after), 2) << line;
    EXPECT_GT(after, before + 1) << line;
    EXPECT_NE(page.find(task), std::string::npos);
  }
  EXPECT_NE(page.find("JPEG as a black box"), std::string::npos);
  const Image sheet = read_image(scratch.file("demo/sheet.png"));
  EXPECT_GE(sheet.height, 5 * 128);
  EXPECT_GE(sheet.width, 4 * 128);
}

TEST(Operators, NamesTheMethodsThatCan) {
  const Outcome outcome = run_dpg({"operators", "--json"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  std::map<std::string, std::string> methods;
  for (const auto& info : nlohmann::json::parse(outcome.out))
    methods[info.at("name").get<std::string>()] = info.at("methods").get<std::string>();
  EXPECT_EQ(methods["phase"], "dpg, dps, lgd-mc, enkg, red-diff, daps");
  EXPECT_EQ(methods["jpeg"], "dpg, enkg, pigdm; with gradient=straight also dps, lgd-mc, red-diff, daps");
  EXPECT_NE(methods["sr"].find("pigdm"), std::string::npos);
  EXPECT_NE(methods["motion"].find("; when circular also ddrm, ddnm+"), std::string::npos);
}

TEST(Help, NamesTheCommands) {
  const Outcome outcome = run_dpg({"--help"});
  EXPECT_EQ(outcome.code, 0);
  for (const char* command : {"model", "sample", "score", "compare"})
    EXPECT_NE(outcome.out.find(command), std::string::npos);
}

}  // namespace
}  // namespace dpg::testing
