// dpg restore, rerun and tune as a user runs them, with the bundled prior and few steps.
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "dpg/core/file.h"
#include "dpg/image/image.h"
#include "dpg/image/transform.h"
#include "dpg/tensor/convert.h"
#include "program.h"

namespace dpg::testing {
namespace {

using Json = nlohmann::json;

const std::string kFace = DPG_SOURCE_DIR "/examples/pictures/face1.png";

bool has(const Scratch& scratch, const std::string& name) {
  const auto files = scratch.files();
  return std::find(files.begin(), files.end(), name) != files.end();
}

Outcome must(const std::vector<std::string>& command) {
  const Outcome outcome = run_dpg(command);
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  return outcome;
}

void degrade(const Scratch& scratch, const std::string& op, const std::string& name,
             const std::string& noise = "gaussian:0.05") {
  must({"degrade", kFace, "--op", op, "--noise", noise, "--seed", "1", "-o", scratch.file(name)});
}

// A sidecar is all it needs; the summary says what came of it; the same bytes come again.
TEST(Restore, FromASidecarAndAgain) {
  const Scratch scratch;
  degrade(scratch, "sr:4", "y.png");
  const Outcome outcome = must({"restore", scratch.file("y.png"), "-o", scratch.file("x.png"), "--steps",
                                "12", "--seed", "3", "--truth", kFace, "--trace", "--json"});
  const Json json = Json::parse(outcome.out);
  EXPECT_EQ(json.at("method"), "dpg");
  EXPECT_EQ(json.at("network_calls"), 12);
  EXPECT_NEAR(json.at("noise_floor").get<double>(), 0.05 * std::sqrt(3.0 * 32 * 32), 1e-6);
  // Without a knob the residual ends near the floor, and the face is found.
  EXPECT_GT(json.at("residual").get<double>(), 0.6 * json.at("noise_floor").get<double>());
  EXPECT_LT(json.at("residual").get<double>(), 1.6 * json.at("noise_floor").get<double>());
  EXPECT_GT(json.at("psnr").get<double>(), 22);
  EXPECT_GT(json.at("seconds").get<double>(), 0);
  EXPECT_EQ(outcome.err, "");  // quiet when not a terminal

  // The numbers are those of the files.
  const Tensor x = to_tensor(read_image(scratch.file("x.png"))), truth = to_tensor(read_image(kFace));
  const double psnr = 10 * std::log10(4 / (x - truth).square().mean().item<double>());
  EXPECT_NEAR(psnr, json.at("psnr").get<double>(), 0.05);

  const Json trace = Json::parse(read_text(scratch.file("x.trace.json")));
  EXPECT_EQ(trace.at("steps").size(), 12u);
  EXPECT_NE(read_text(scratch.file("x.trace.html")).find("<svg"), std::string::npos);

  const std::string before = read_bytes(scratch.file("x.png"));
  const Outcome again = must({"rerun", scratch.file("x.manifest.json"), "-o", scratch.file("again.png")});
  EXPECT_NE(again.out.find("same bytes"), std::string::npos);
  EXPECT_EQ(read_bytes(scratch.file("again.png")), before);

  // A measurement that changed is not what the manifest is about.
  degrade(scratch, "sr:2", "y.png");
  expect_refused(run_dpg({"rerun", scratch.file("x.manifest.json")}), 1, {"no longer the file"});
}

// Somebody's photo: no sidecar, no truth, the noise estimated, a size that the network cannot take as it is.
TEST(Restore, APhotoOfAnySize) {
  const Scratch scratch;
  Image photo = resize(read_image(kFace), 75, 100);
  for (std::size_t i = 0; i < photo.data.size(); ++i)
    photo.data[i] += (i * 2654435761u % 1000) / 1000.0f * 0.2f - 0.1f;
  write_image(scratch.file("photo.png"), photo);
  const Json json = Json::parse(must({"restore", scratch.file("photo.png"), "--op", "blur:sigma=1", "-o",
                                      scratch.file("x.png"), "--steps", "6", "--json"})
                                    .out);
  EXPECT_NE(json.at("noise").get<std::string>().find("gaussian:sigma="), std::string::npos);
  const Image x = read_image(scratch.file("x.png"));
  EXPECT_EQ(x.height, 75);
  EXPECT_EQ(x.width, 100);
  // A fixed strength belongs to the picture, not to the larger one it is restored in; and again the same
  // bytes.
  must({"restore", scratch.file("photo.png"), "--op", "blur:sigma=1", "-o", scratch.file("b.png"), "--preset",
        "faces128-gaussian-blur-100", "--steps", "4"});
  const Json manifest = Json::parse(read_text(scratch.file("b.manifest.json")));
  EXPECT_NEAR(manifest.at("settings").at("strength").get<double>(), 60 * std::sqrt(75.0 * 100 / (128 * 128)),
              1e-9);
  EXPECT_GT(manifest.at("threads").get<int>(), 0);
  EXPECT_NE(must({"rerun", scratch.file("b.manifest.json")}).out.find("the same bytes"), std::string::npos);
  // A small picture of four times the size.
  must({"restore", scratch.file("photo.png"), "--op", "sr:2", "--noise", "gaussian:0.1", "-o",
        scratch.file("large.png"), "--steps", "2"});
  EXPECT_EQ(read_image(scratch.file("large.png")).width, 200);
}

// What lies in a photo's hole does not matter.
TEST(Restore, AHoleHoldsAnything) {
  const Scratch scratch;
  for (const float value : {-1.0f, 1.0f}) {
    Image photo = to_rgb(read_image(kFace));
    for (int c = 0; c < 3; ++c)
      for (int y = 32; y < 96; ++y)
        for (int x = 32; x < 96; ++x) photo.at(c, y, x) = value;
    write_image(scratch.file("hole.png"), photo);
    must({"restore", scratch.file("hole.png"), "--op", "inpaint:box,height=64,width=64,position=centre",
          "--noise", "gaussian:0.05", "-o", scratch.file(value < 0 ? "a.png" : "b.png"), "--steps", "3"});
  }
  EXPECT_EQ(read_bytes(scratch.file("a.png")), read_bytes(scratch.file("b.png")));
}

TEST(Restore, SeveralSamples) {
  const Scratch scratch;
  degrade(scratch, "inpaint:box,position=centre", "y.png");
  must({"restore", scratch.file("y.png"), "-o", scratch.file("x.png"), "--steps", "4", "--samples", "3",
        "--set", "relaxation=1"});
  for (const char* name :
       {"x.png", "x-2.png", "x-3.png", "x-mean.png", "x-std.png", "x-std.npy", "x.manifest.json"})
    EXPECT_TRUE(has(scratch, name)) << name;
  EXPECT_NE(read_bytes(scratch.file("x.png")), read_bytes(scratch.file("x-2.png")));
  // The first sample is the one that a single run gives.
  must({"restore", scratch.file("y.png"), "-o", scratch.file("one.png"), "--steps", "4", "--set",
        "relaxation=1"});
  const Tensor first = to_tensor(read_image(scratch.file("x.png")));
  EXPECT_LT((first - to_tensor(read_image(scratch.file("one.png")))).abs().max().item<double>(), 0.02);
  // Known pixels differ less than unknown ones.
  const Tensor deviation = to_tensor(read_image(scratch.file("x-std.npy")))[0][0];
  const Tensor hole = deviation.slice(0, 40, 88).slice(1, 40, 88);
  const double around = deviation.slice(0, 0, 20).mean().item<double>();
  EXPECT_GT(hole.mean().item<double>(), around);
}

TEST(Restore, AFolderInBatches) {
  const Scratch scratch;
  std::filesystem::create_directories(scratch.file("clean"));
  std::filesystem::create_directories(scratch.file("one"));
  for (const char* face : {"face1.png", "face2.png", "face3.png"})
    std::filesystem::copy_file(std::string(DPG_SOURCE_DIR "/examples/pictures/") + face,
                               scratch.file("clean/") + face);
  must({"degrade", scratch.file("clean"), "--op", "inpaint:random,removed=0.5", "--noise", "gaussian:0.05",
        "-o", scratch.file("y")});
  const Json json = Json::parse(must({"restore", scratch.file("y"), "-o", scratch.file("x"), "--steps", "3",
                                      "--batch", "2", "--truth", scratch.file("clean"), "--json"})
                                    .out);
  EXPECT_EQ(json.at("pictures"), 3);
  EXPECT_EQ(json.at("images").size(), 3u);
  // Each is what it is alone, up to rounding: its own mask, its own noise.
  must({"restore", scratch.file("y/face2.json"), "-o", scratch.file("one/x.png"), "--steps", "3",
        "--precision", "fp32"});
  must({"restore", scratch.file("y"), "-o", scratch.file("x32"), "--steps", "3", "--batch", "3",
        "--precision", "fp32"});
  const Tensor alone = to_tensor(read_image(scratch.file("one/x.png")));
  const Tensor together = to_tensor(read_image(scratch.file("x32/face2.png")));
  EXPECT_LT((alone - together).abs().max().item<double>(), 0.02);
}

// A black box: nothing but its output is known.
TEST(Restore, ThroughABlackBox) {
  const Scratch scratch;
  degrade(scratch, "quantize:2", "y.png", "none");
  const Json json = Json::parse(must({"restore", scratch.file("y.png"), "-o", scratch.file("x.png"),
                                      "--steps", "4", "--queries", "200", "--set", "detail=coarse", "--json"})
                                    .out);
  EXPECT_LE(json.at("operator_calls").get<int>(), 200);
  EXPECT_GT(json.at("operator_calls").get<int>(), 100);
}

TEST(Restore, PresetsAndSettings) {
  const Scratch scratch;
  degrade(scratch, "sr:4", "y.png");
  const Json json =
      Json::parse(must({"restore", scratch.file("y.png"), "-o", scratch.file("x.png"), "--preset",
                        "ffhq-sr4-gaussian", "--steps", "2", "--mc", "20", "--json"})
                      .out);
  EXPECT_EQ(json.at("settings").at("strength"), 80.0);  // 160 at 256 x 256
  EXPECT_EQ(json.at("settings").at("mc"), 20);
  EXPECT_NE(must({"presets"}).out.find("ffhq-sr4-gaussian"), std::string::npos);
  EXPECT_NE(must({"methods"}).out.find("dpg"), std::string::npos);
}

TEST(Restore, SaysWhatIsWrong) {
  const Scratch scratch;
  degrade(scratch, "quantize:3", "y.png");
  const std::string y = scratch.file("y.png"), x = scratch.file("x.png");
  expect_refused(run_dpg({"restore", y, "-o", x, "--estimator", "exact"}), 1,
                 {"derivative", "--estimator mc"});
  expect_refused(run_dpg({"restore", y, "-o", x, "--method", "dgp"}), 1, {"dgp", "dpg"});
  expect_refused(run_dpg({"restore", y, "-o", x, "--set", "stepz=3"}), 1, {"stepz", "steps"});
  expect_refused(run_dpg({"restore", y, "-o", x, "--steps", "many"}), 1, {"steps", "many"});
  expect_refused(run_dpg({"restore", kFace, "-o", x}), 1, {"--op"});
  expect_refused(run_dpg({"restore", scratch.file("none.png"), "-o", x}), 1, {"none.png"});
  expect_refused(run_dpg({"restore", y, "-o", x, "--truth", scratch.file("none.png")}), 1, {"none.png"});
  EXPECT_FALSE(has(scratch, "x.png"));
}

// Ctrl-C: what there is so far is kept under another name, and nothing else is written.
TEST(Restore, InterruptedItKeepsTheEstimate) {
  const Scratch scratch;
  degrade(scratch, "sr:4", "y.png");
  const Outcome outcome = run_dpg_and_interrupt(
      {"restore", scratch.file("y.png"), "-o", scratch.file("x.png"), "--steps", "1000"});
  EXPECT_EQ(outcome.code, 130) << outcome.err;
  EXPECT_TRUE(has(scratch, "x.partial.png"));
  EXPECT_FALSE(has(scratch, "x.png"));
  EXPECT_FALSE(has(scratch, "x.manifest.json"));
  EXPECT_EQ(read_image(scratch.file("x.partial.png")).width, 128);
}

TEST(Tune, IsATableOfItsSettings) {
  const Scratch scratch;
  const Outcome outcome =
      must({"tune", "--images", DPG_SOURCE_DIR "/examples/pictures", "--count", "1", "--op", "sr:4", "--set",
            "steps=3", "--sweep", "strength=auto,20", "--json-out", scratch.file("t.json")});
  const Json json = Json::parse(read_text(scratch.file("t.json")));
  ASSERT_EQ(json.at("results").size(), 2u);
  EXPECT_EQ(json.at("results")[1].at("settings").at("strength"), 20.0);
  EXPECT_NE(outcome.out.find("strength=auto"), std::string::npos);
}

}  // namespace
}  // namespace dpg::testing
