// Operators by their text, and measurements on disk.
#include "dpg/measure/catalog.h"

#include <gtest/gtest.h>
#include <torch/torch.h>
#include <unistd.h>

#include <filesystem>
#include <functional>
#include <set>

#include "dpg/core/error.h"
#include "dpg/core/file.h"
#include "dpg/core/test_folder.h"
#include "dpg/image/image.h"
#include "dpg/image/npy.h"
#include "dpg/measure/jpeg_round_trip.h"
#include "dpg/measure/sidecar.h"
#include "dpg/measure/spec.h"
#include "dpg/measure/view.h"

namespace dpg {
namespace {

std::string failure_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const Error& error) {
    return error.what();
  }
  return "no failure";
}

class CatalogTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::temp_directory_path() / ("dpg_catalog_" + std::to_string(::getpid()));
    std::filesystem::create_directories(folder_);
    Image mask{1, 32, 32, std::vector<float>(32 * 32, 1.0f)};
    for (int i = 0; i < 300; ++i) mask.data[static_cast<std::size_t>(3 * i)] = -1;
    write_image(folder_ / "a, mask.pgm", mask);
    const std::vector<std::int64_t> shape = {3, 2};
    const std::vector<float> kernel = {1, 2, 3, 0, 1, 1};
    write_npy(folder_ / "kernel.npy", shape, kernel);
  }
  void TearDown() override { remove_folder(folder_); }

  // At least one text for every operator, with every kind of option.
  std::vector<std::string> texts() const {
    const std::string quoted = "\"" + (folder_ / "a, mask.pgm").string() + "\"";
    std::vector<std::string> list = {"inpaint",
                                     "inpaint:box",
                                     "inpaint:box,height=8,width=4,position=centre",
                                     "inpaint:box,height=8,width=4,margin=3",
                                     "inpaint:box,height=8,width=4,top=2,left=5",
                                     "inpaint:random",
                                     "inpaint:random,removed=0.3",
                                     "inpaint:mask=" + quoted,
                                     "inpaint:invert=yes,mask=" + quoted,
                                     "uncrop",
                                     "uncrop:border,keep=0.7",
                                     "uncrop:half,0.25,bottom",
                                     "sr:4",
                                     "sr-bicubic:2",
                                     "blur",
                                     "blur:sigma=3,size=9",
                                     "blur:1.5,7,circular",
                                     "motion",
                                     "motion:intensity=0.1,size=5,boundary=zero",
                                     "kernel:" + (folder_ / "kernel.npy").string(),
                                     "kernel:" + (folder_ / "kernel.npy").string() + ",boundary=circular",
                                     "gray",
                                     "gray:luma",
                                     "identity",
                                     "cs:ratio=0.25",
                                     "phase",
                                     "nonlinear-blur",
                                     "nonlinear-blur:0.2,exposure=3",
                                     "hdr",
                                     "hdr:scale=1.7",
                                     "quantize:bits=3",
                                     "exec:cat",
                                     "exec:cat,timeout=5,budget=1000",
                                     "blur:1,size=5 | inpaint:box | quantize:4"};
    if (jpeg_available()) list.insert(list.end(), {"jpeg:10", "jpeg:30,chroma=444"});
    return list;
  }

  const OperatorContext context_ = {{3, 32, 32}, 9, {3, 5}};
  std::filesystem::path folder_;
};

TEST_F(CatalogTest, SpecBuildsTheSameOperatorAgain) {
  torch::manual_seed(1);
  const Tensor x = torch::rand({2, 3, 32, 32}) * 2 - 1;
  for (const std::string& text : texts()) {
    const auto a = make_operator(text, context_);
    const auto b = make_operator(a->spec(), context_);
    EXPECT_EQ(b->spec(), a->spec()) << text;
    EXPECT_TRUE(torch::equal(a->apply(x), b->apply(x))) << text << " as " << a->spec();
    EXPECT_STREQ(kind_name(*a), kind_name(*b)) << text;
    EXPECT_EQ(a->apply(x).sizes().slice(1), torch::IntArrayRef(a->output_shape())) << text;
  }
}

TEST_F(CatalogTest, EveryOperatorIsListedWithItsTrueKindAndDefaults) {
  std::set<std::string> tried;
  for (const std::string& text : texts())
    for (const Spec& spec : parse_specs(text)) tried.insert(spec.name);
  for (const OperatorInfo& info : operator_catalog()) {
    if (info.name == "jpeg" && !jpeg_available()) continue;
    EXPECT_TRUE(tried.count(info.name)) << info.name << " has no case in this test";
    EXPECT_EQ(parse_spec(info.example).name, info.name);
    if (info.name == "kernel" || info.name == "exec")
      continue;  // nothing to build without a file or a program
    const auto a = make_operator(info.name, context_);
    EXPECT_EQ(info.kind.substr(0, info.kind.find(';')), kind_name(*a)) << info.name;
    for (const OperatorParameter& parameter : info.parameters) {
      const bool other_mode =
          parameter.name == "removed" || parameter.name == "invert" || parameter.name == "spread";
      const bool a_value = !parameter.default_value.empty() && parameter.default_value != "half" &&
                           parameter.default_value.find(' ') == std::string::npos;
      if (other_mode || !a_value) continue;
      const std::string text = info.name + ":" + parameter.name + "=" + parameter.default_value;
      EXPECT_EQ(make_operator(text, context_)->spec(), a->spec()) << text;
    }
  }
}

TEST_F(CatalogTest, WrongNamesAndValuesAreAnsweredWithTheNearest) {
  const auto failure = [&](const std::string& text) {
    return failure_of([&] { make_operator(text, context_); });
  };
  const auto expect = [&](const std::string& text, const std::string& part) {
    EXPECT_NE(failure(text).find(part), std::string::npos) << text << ": " << failure(text);
  };
  expect("blurr:sigma=3", "did you mean \"blur\"?");
  expect("jpg:10", "did you mean \"jpeg\"?");
  expect("Inpaint", "did you mean \"inpaint\"?");
  expect("blur:sgima=3", "did you mean \"sigma\"?");
  expect("blur:boundary=mirror", "is not one of reflect, circular, zero");
  expect("inpaint:bx", "did you mean \"box\"?");
  expect("inpaint:box,removed=0.5", "has no option \"removed\"");
  expect("inpaint:random,height=3", "has no option \"height\"");
  expect("uncrop:border,side=left", "remove it");
  expect("quantize:bits=0", "nearest valid value is 1");
  expect("sr:four", "not a whole number");
  expect("identity:3", "takes no options");
  expect("kernel", "needs the kernel's file");
  expect("exec", "needs a program");
  expect("sr:4 | blurr", "did you mean \"blur\"?");
}

TEST_F(CatalogTest, StatesFollowTheImageNotTheBatch) {
  const Tensor x = torch::ones({2, 3, 32, 32});
  for (const std::string text : {"inpaint:box", "inpaint:random", "motion:size=9", "nonlinear-blur:size=9"}) {
    const Tensor both = make_operator(text, context_)->apply(x * 0.3 + torch::linspace(-0.5, 0.5, 32));
    OperatorContext swapped = context_;
    swapped.images = {5, 3};
    const Tensor other = make_operator(text, swapped)->apply(x * 0.3 + torch::linspace(-0.5, 0.5, 32));
    EXPECT_LT((both.flip(0) - other).abs().max().item<double>(), 1e-5) << text;
    EXPECT_GT((both[0] - both[1]).abs().max().item<double>(), 1e-3) << text;
  }
}

TEST_F(CatalogTest, SidecarsAreExact) {
  const std::string noise = "poisson:rate=0.7,clip=yes";
  const auto a = make_operator("motion:size=5 | inpaint:box", context_);
  const Tensor x = torch::rand({2, 3, 32, 32}) * 2 - 1;
  const Measurement m = measure(a, make_noise(noise), x, context_.seed, context_.images);
  const Sidecar written = {
      a->spec(), m.noise->spec(), context_.seed, context_.images, context_.shape, "some \"file\".png", m.y};
  write_sidecar(folder_ / "y.json", written);
  const Sidecar read = read_sidecar(folder_ / "y.json");
  EXPECT_EQ(read.operator_spec, written.operator_spec);
  EXPECT_EQ(read.noise_spec, noise);
  EXPECT_EQ(read.seed, written.seed);
  EXPECT_EQ(read.images, written.images);
  EXPECT_EQ(read.source, written.source);
  EXPECT_TRUE(torch::equal(read.y, m.y));
  const Measurement again = to_measurement(read);
  EXPECT_TRUE(torch::equal(again.A->apply(x), a->apply(x)));  // the same masks and trajectories
  EXPECT_EQ(again.noise->spec(), noise);
}

TEST_F(CatalogTest, DamagedSidecarsAreRefused) {
  const auto refused = [&](const std::string& text) {
    write_text(folder_ / "y.json", text);
    return failure_of([&] { read_sidecar(folder_ / "y.json"); });
  };
  const std::string good =
      R"({"format": "dpg measurement", "version": 1, "operator": "sr:4", "noise": "none", "seed": 1, "images": [0],)"
      R"( "image_shape": [3, 32, 32], "source": ""})";
  const std::vector<std::int64_t> shape = {1, 3, 8, 8};
  write_npy(folder_ / "y.npy", shape, std::vector<float>(192, 0.0f));
  EXPECT_EQ(refused(good), "no failure");
  for (const std::string& bad : {std::string("{"), std::string("[]"), std::string("{\"format\": \"other\"}"),
                                 good.substr(0, good.find("\"seed\"")) + "\"images\": [0]}",
                                 std::string(good).replace(good.find("\"version\": 1"), 12, "\"version\": 9"),
                                 std::string(good).replace(good.find("\"seed\": 1"), 9, "\"seed\": \"x\""),
                                 std::string(good).replace(good.find("[0]"), 3, "[0, 1]")})
    EXPECT_NE(refused(bad).find("y."), std::string::npos) << bad << ": " << refused(bad);
  // Numbers that do not belong to the operator.
  write_text(folder_ / "y.json", std::string(good).replace(good.find("sr:4"), 4, "sr:2"));
  EXPECT_THROW(to_measurement(read_sidecar(folder_ / "y.json")), Error);
}

TEST_F(CatalogTest, MeasurementsCanBeLookedAt) {
  const Tensor x = torch::linspace(-1, 1, 32).expand({2, 3, 32, 32});
  const auto view = [&](const std::string& op, const std::string& noise) {
    return view_of(measure(make_operator(op, context_), make_noise(noise), x, 1, context_.images).y);
  };
  const auto fits = [](const View& v) { return v.pictures.abs().max().item<double>() <= 1.0 + 1e-6; };
  EXPECT_TRUE(torch::equal(view("identity", "none").pictures, x));
  EXPECT_EQ(view("identity", "speckle:0.5").note, "");  // strong noise on a picture is still a picture
  EXPECT_NE(view("phase", "gaussian:0.05").note.find("logarithmic"), std::string::npos);
  EXPECT_TRUE(fits(view("phase", "gaussian:0.05")));
  const View coefficients = view("cs:0.3", "none");
  EXPECT_NE(coefficients.note.find("no picture"), std::string::npos);
  EXPECT_TRUE(fits(coefficients));
  EXPECT_GE(coefficients.pictures[0].numel(), make_operator("cs:0.3", context_)->measurements());
}

}  // namespace
}  // namespace dpg
