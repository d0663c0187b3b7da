#include "dpg/prior/unet_config.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <limits>
#include <nlohmann/json.hpp>
#include <random>
#include <string>

#include "dpg/checkpoint/state_dict.h"
#include "dpg/core/error.h"
#include "dpg/core/file.h"
#include "dpg/prior/network_cost.h"

namespace dpg {

// How GoogleTest shows what differs.
void PrintTo(const NamedShape& tensor, std::ostream* out) {
  *out << tensor.name << testing::PrintToString(tensor.shape);
}
void PrintTo(const UNetConfig& config, std::ostream* out) {
  *out << to_json(config);
}

namespace {

using Json = nlohmann::json;
namespace fs = std::filesystem;

std::vector<NamedShape> tensors_of(const fs::path& checkpoint) {
  std::vector<NamedShape> tensors;
  const StateDict file = StateDict::open(checkpoint);
  for (const TensorView& tensor : file.tensors()) tensors.push_back({tensor.name, tensor.shape});
  return tensors;
}

std::int64_t parameters(const UNetConfig& config) {
  std::int64_t sum = 0;
  for (const NamedShape& tensor : expected_tensors(config)) {
    std::int64_t product = 1;
    for (const std::int64_t size : tensor.shape) product *= size;
    sum += product;
  }
  return sum;
}

UNetConfig from_flags(const char* flags) {
  return unet_config_from_json(Json::parse(flags));
}

template <class Action>
std::string error_of(Action action) {
  try {
    action();
  } catch (const Error& error) {
    return error.what();
  }
  return {};
}

// Flags as published beside the checkpoints; what all of them share is added below.
struct Published {
  const char* name;  // must occur in Detection::known_as
  const char* flags;
  double millions;  // of parameters; 0 where no figure is published
};

constexpr Published kPublished[] = {
    {"ffhq_10m.pt",
     R"({"image_size":256,"num_channels":128,"num_res_blocks":1,"attention_resolutions":16,"num_heads":4,
         "num_head_channels":64,"channel_mult":""})",
     93.6},
    {"64x64_diffusion.pt",
     R"({"image_size":64,"num_channels":192,"num_res_blocks":3,"attention_resolutions":"32,16,8","class_cond":true,
         "num_head_channels":64,"noise_schedule":"cosine","use_new_attention_order":true})",
     0},
    {"128x128_diffusion.pt",
     R"({"image_size":128,"num_channels":256,"num_res_blocks":2,"attention_resolutions":"32,16,8","class_cond":true,
         "num_heads":4})",
     0},
    {"256x256_diffusion.pt",
     R"({"image_size":256,"num_channels":256,"num_res_blocks":2,"attention_resolutions":"32,16,8","class_cond":true,
         "num_head_channels":64})",
     0},
    {"OpenAI ImageNet or LSUN",
     R"({"image_size":256,"num_channels":256,"num_res_blocks":2,"attention_resolutions":"32,16,8",
         "num_head_channels":64})",
     552.8},
    {"512x512_diffusion.pt",
     R"({"image_size":512,"num_channels":256,"num_res_blocks":2,"attention_resolutions":"32,16,8","class_cond":true,
         "num_head_channels":64})",
     0},
    {"faces128.pt",
     R"({"image_size":128,"num_channels":64,"num_res_blocks":1,"attention_resolutions":"16,8",
         "num_head_channels":64})",
     18.5},
};

UNetConfig published_config(const Published& published) {
  Json json = Json::parse(published.flags);
  json.update({{"learn_sigma", true}, {"resblock_updown", true}, {"use_scale_shift_norm", true}});
  return unet_config_from_json(json);
}

TEST(UNetConfig, ParameterCountsAreThePublishedOnes) {
  for (const Published& published : kPublished) {
    if (published.millions == 0) continue;
    const double millions = static_cast<double>(parameters(published_config(published))) / 1e6;
    EXPECT_NEAR(millions, published.millions, 0.05) << published.name;
  }
}

TEST(UNetConfig, ExpectedTensorsAreTheCheckpoints) {
  for (const char* stem :
       {"fixtures/adm-tiny", "fixtures/ddpm-style", "fixtures/new-attention", "priors/faces128"}) {
    const fs::path path = fs::path(DPG_SHARED_DIR) / stem;
    if (!fs::exists(path.string() + ".pt")) GTEST_SKIP() << "there is no " << path << ".pt";
    const UNetConfig config = unet_config_from_json(Json::parse(read_text(path.string() + ".json")));
    EXPECT_EQ(expected_tensors(config), tensors_of(path.string() + ".pt")) << stem;
  }
}

TEST(UNetConfig, TakesGuidedDiffusionsDefaults) {
  const UNetConfig config = unet_config_from_json(Json::object());
  UNetConfig expected;
  expected.image_size = 64;
  expected.model_channels = 128;
  expected.channel_mult = {1, 2, 3, 4};
  expected.num_res_blocks = 2;
  expected.attention_downsampling = {4, 8};
  expected.num_heads = 4;
  EXPECT_EQ(config, expected);
}

TEST(UNetConfig, ReadsEveryNotationOfAList) {
  const UNetConfig text = from_flags(R"({"channel_mult":"0.5, 1,2","attention_resolutions":"32,16"})");
  const UNetConfig list =
      from_flags(R"({"channel_mult":[0.5,1,2],"attention_resolutions":[16,32,7],"note":[]})");
  EXPECT_EQ(text, list);
  EXPECT_EQ(text.channel_mult, (std::vector<double>{0.5, 1, 2}));
  EXPECT_EQ(text.attention_downsampling, (std::vector<int>{2, 4}));
  EXPECT_EQ(from_flags(R"({"attention_resolutions":16})").attention_downsampling, std::vector<int>{4});
  EXPECT_TRUE(from_flags(R"({"attention_resolutions":""})").attention_downsampling.empty());
}

TEST(UNetConfig, ErrorsNameTheField) {
  const std::pair<const char*, const char*> cases[] = {
      {R"({"num_channels":"many"})", "num_channels"},
      {R"({"num_channels":33})", "num_channels"},
      {R"({"num_channels":18446744073709551615})", "num_channels"},
      {R"({"num_channels":-128})", "num_channels"},
      {R"({"image_size":96})", "channel_mult"},
      {R"({"image_size":100,"channel_mult":"1,2,2,2"})", "image_size"},
      {R"({"channel_mult":"1,x"})", "channel_mult"},
      {R"({"channel_mult":"1,nan"})", "channel_mult"},
      {R"({"channel_mult":"1,-1"})", "channel_mult"},
      {R"({"channel_mult":[1,1e300]})", "channel_mult"},
      {R"({"channel_mult":[1,"2"]})", "channel_mult"},
      {R"({"channel_mult":"1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1"})",
       "channel_mult"},
      {R"({"num_res_blocks":0})", "num_res_blocks"},
      {R"({"num_res_blocks":1.5})", "num_res_blocks"},
      {R"({"attention_resolutions":"0"})", "attention_resolutions"},
      {R"({"attention_resolutions":"8,1e99"})", "attention_resolutions"},
      {R"({"num_heads":7})", "num_heads"},
      {R"({"num_heads_upsample":7})", "num_heads_upsample"},
      {R"({"num_head_channels":48})", "num_head_channels"},
      {R"({"num_head_channels":0})", "num_head_channels"},
      {R"({"learn_sigma":"True"})", "learn_sigma"},
      {R"({"noise_schedule":"sigmoid"})", "noise_schedule"},
      {R"({"noise_schedule":3})", "noise_schedule"},
      {R"({"diffusion_steps":0})", "diffusion_steps"},
      {R"({"num_classes":-1})", "num_classes"},
      {R"([])", "object"},
  };
  for (const auto& [flags, field] : cases) {
    const std::string message = error_of([&] { from_flags(flags); });
    EXPECT_NE(message.find(field), std::string::npos) << flags << " gave '" << message << "'";
  }
}

TEST(CheckTensors, NamesFileAndTensor) {
  const UNetConfig config = published_config(kPublished[6]);
  const std::vector<NamedShape> whole = expected_tensors(config);
  check_tensors(config, whole, "a.pt");
  const auto expect = [&](std::vector<NamedShape> tensors, std::initializer_list<const char*> parts) {
    const std::string message = error_of([&] { check_tensors(config, tensors, "a.pt"); });
    for (const char* part : parts) EXPECT_NE(message.find(part), std::string::npos) << message;
  };
  auto missing = whole;
  std::erase_if(missing, [](const NamedShape& t) { return t.name.starts_with("middle_block.1."); });
  expect(missing, {"a.pt", "missing", "middle_block.1.norm.weight", "3 more"});
  auto surplus = whole;
  surplus.push_back({"extra\x1b[31m", {1}});
  expect(surplus, {"a.pt", "surplus", "extra?[31m"});
  auto shape = whole;
  shape[10].shape.push_back(7);
  expect(shape, {"a.pt", shape[10].name.c_str(), ",7]"});
  auto twice = whole;
  twice.push_back(whole[3]);
  expect(twice, {"a.pt", "twice", whole[3].name.c_str()});
}

TEST(DetectUNet, WellKnownCheckpointsAreRecognisedWhole) {
  for (const Published& published : kPublished) {
    const UNetConfig config = published_config(published);
    const Detection detection = detect_unet(expected_tensors(config));
    ASSERT_TRUE(detection.config) << published.name << ": " << detection.explanation;
    EXPECT_EQ(*detection.config, config) << published.name;
    EXPECT_NE(detection.known_as.find(published.name), std::string::npos) << detection.known_as;
    EXPECT_TRUE(detection.undecided.empty()) << published.name;
  }
}

TEST(DetectUNet, UpsamplersAreRefusedByName) {
  const std::pair<const char*, const char*> cases[] = {
      {R"({"image_size":256,"in_channels":6,"num_channels":192,"num_res_blocks":2,"attention_resolutions":"32,16,8",
           "class_cond":true,"resblock_updown":true})",
       "64_256_upsampler.pt"},
      {R"({"image_size":512,"in_channels":6,"num_channels":192,"num_res_blocks":2,"attention_resolutions":"32,16",
           "class_cond":true,"resblock_updown":true,"num_head_channels":64,"channel_mult":"1,1,2,2,4,4"})",
       "128_512_upsampler.pt"}};
  for (const auto& [flags, name] : cases) {
    const Detection detection = detect_unet(expected_tensors(from_flags(flags)));
    EXPECT_FALSE(detection.config);
    EXPECT_NE(detection.explanation.find(name), std::string::npos) << detection.explanation;
    EXPECT_NE(detection.explanation.find("super-resolution"), std::string::npos) << detection.explanation;
  }
}

// A random architecture, in the form in which detection gives it: fields without effect have their defaults.
UNetConfig random_config(std::mt19937& random) {
  const auto pick = [&](int low, int high) { return std::uniform_int_distribution(low, high)(random); };
  UNetConfig config;
  config.model_channels = 32 * pick(1, 9);
  const int levels = pick(1, 6);
  for (int level = 0; level < levels; ++level) {
    const int channels = 32 * pick(1, 12);
    config.channel_mult.push_back(static_cast<double>(channels) / config.model_channels);
    if (config.level_channels(level) != channels) config.channel_mult.back() = 1;
    if (pick(0, 2) == 0) config.attention_downsampling.push_back(1 << level);
  }
  config.image_size = config.downsampling() * pick(1, 9);
  config.in_channels = pick(1, 5);
  config.num_res_blocks = pick(1, 4);
  config.num_heads = 1 << pick(0, 5);
  config.num_heads_upsample = pick(0, 1) == 0 ? -1 : 8;
  config.num_head_channels = pick(0, 1) == 0 ? -1 : 16;
  config.use_new_attention_order = pick(0, 1) == 0;
  config.use_scale_shift_norm = pick(0, 1) == 0;
  if (levels > 1) config.resblock_updown = pick(0, 1) == 0;
  if (levels > 1 && !config.resblock_updown) config.conv_resample = pick(0, 1) == 0;
  config.learn_sigma = pick(0, 1) == 0;
  config.num_classes = pick(0, 1) == 0 ? 0 : pick(1, 2000);
  config.noise_schedule = pick(0, 1) == 0 ? "linear" : "cosine";
  config.diffusion_steps = pick(50, 4000);
  return config;
}

TEST(UNetConfig, JsonRoundTrip) {
  std::mt19937 random(1);
  for (int i = 0; i < 300; ++i) {
    const UNetConfig config = random_config(random);
    EXPECT_EQ(unet_config_from_json(Json::parse(to_json(config).dump())), config) << to_json(config);
  }
}

TEST(DetectUNet, FindsTheArchitectureOfItsOwnTensors) {
  std::mt19937 random(2);
  for (int i = 0; i < 300; ++i) {
    const UNetConfig config = random_config(random);
    std::vector<NamedShape> tensors = expected_tensors(config);
    std::shuffle(tensors.begin(), tensors.end(), random);
    const Detection detection = detect_unet(tensors);
    ASSERT_TRUE(detection.config) << detection.explanation << to_json(config);
    // What shapes cannot tell is listed, and is all that may differ.
    UNetConfig completed = *detection.config;
    const auto open = [&](const char* field) { return std::ranges::count(detection.undecided, field) == 1; };
    EXPECT_TRUE(open("image_size") && open("use_new_attention_order") && open("noise_schedule"));
    EXPECT_TRUE(open("num_head_channels") || open("num_heads"));
    completed.image_size = config.image_size;
    completed.num_heads = config.num_heads;
    completed.num_heads_upsample = config.num_heads_upsample;
    completed.num_head_channels = config.num_head_channels;
    completed.use_new_attention_order = config.use_new_attention_order;
    completed.noise_schedule = config.noise_schedule;
    completed.diffusion_steps = config.diffusion_steps;
    EXPECT_EQ(completed, config) << to_json(config);
  }
}

TEST(DetectUNet, OneTensorTooFewTooManyOrMisshapenIsNamed) {
  const std::vector<NamedShape> whole = expected_tensors(published_config(kPublished[6]));
  for (std::size_t i = 0; i < whole.size(); ++i) {
    auto missing = whole;
    missing.erase(missing.begin() + static_cast<std::ptrdiff_t>(i));
    const Detection detection = detect_unet(missing);
    EXPECT_FALSE(detection.config) << whole[i].name;
    EXPECT_NE(detection.explanation.find(whole[i].name), std::string::npos)
        << "without " << whole[i].name << ": " << detection.explanation;
    auto misshapen = whole;
    misshapen[i].shape.back() += 1;
    EXPECT_FALSE(detect_unet(misshapen).config) << whole[i].name;
  }
  auto surplus = whole;
  surplus.push_back({"input_blocks.3.1.skip.weight", {1}});
  EXPECT_NE(detect_unet(surplus).explanation.find("input_blocks.3.1.skip.weight"), std::string::npos);
}

TEST(DetectUNet, OtherNetworksGetTheirOwnSentence) {
  const std::pair<std::vector<NamedShape>, const char*> cases[] = {
      {{}, "no tensors"},
      {{{"conv1.weight", {64, 3, 7, 7}}, {"layer1.0.conv1.weight", {64, 64, 3, 3}}}, "conv1.weight"},
      {{{"lin0.model.1.weight", {1, 64, 1, 1}}}, "no diffusion U-Net"},
      {{{"inception_3a.1x1.weight", {64, 192, 1, 1}}}, "no diffusion U-Net"},
      {{{"down_blocks.0.resnets.0.conv1.weight", {128, 128, 3, 3}}}, "diffusers"},
      {{{"model.diffusion_model.time_embed.0.weight", {1280, 320}}}, "latent-diffusion"},
      {{{"module.time_embed.0.weight", {128, 32}}}, "'module.'"},
      {{{"temb.dense.0.weight", {512, 128}}}, "DDPM"},
      {{{"time_embed.0.weight", {512, 128}}, {"out.2.positional_embedding", {512, 65}}}, "classifier"},
  };
  for (const auto& [tensors, part] : cases) {
    const Detection detection = detect_unet(tensors);
    EXPECT_FALSE(detection.config) << part;
    EXPECT_NE(detection.explanation.find(part), std::string::npos) << detection.explanation;
  }
}

TEST(DetectUNet, HostileTensorsAreRefusedQuickly) {
  constexpr std::int64_t huge = std::numeric_limits<std::int64_t>::max();
  const std::vector<NamedShape> whole = expected_tensors(
      from_flags(R"({"image_size":16,"num_channels":32,"channel_mult":"1,2","num_res_blocks":1,"num_heads":4,
                     "attention_resolutions":"8","resblock_updown":true})"));
  ASSERT_TRUE(detect_unet(whole).config);
  const auto begin = std::chrono::steady_clock::now();
  for (const std::int64_t size :
       {std::int64_t{0}, std::int64_t{-1}, std::int64_t{1} << 24, std::int64_t{1} << 31, huge}) {
    for (const NamedShape& target : whole) {
      auto tensors = whole;
      for (NamedShape& tensor : tensors)
        if (tensor.name == target.name) std::ranges::fill(tensor.shape, size);
      EXPECT_FALSE(detect_unet(tensors).config);
    }
    auto tensors = whole;
    for (NamedShape& tensor : tensors) std::ranges::fill(tensor.shape, size);
    EXPECT_FALSE(detect_unet(tensors).config);
    for (NamedShape& tensor : tensors) tensor.shape.clear();
    EXPECT_FALSE(detect_unet(tensors).config);
  }
  for (const char* suffix :
       {".0.in_layers.2.weight", ".0.op.weight", ".1.qkv.weight", ".-1.x", ".", "", ".1"}) {
    auto tensors = whole;
    for (int i = 0; i < 20'000; ++i)
      tensors.push_back({"input_blocks." + std::to_string(i) + suffix, {32, 32}});
    EXPECT_FALSE(detect_unet(tensors).config) << suffix;
    auto few = whole;
    for (int i = 0; i <= 4096; ++i) few.push_back({"input_blocks." + std::to_string(i) + suffix, {32, 32}});
    EXPECT_FALSE(detect_unet(few).config) << suffix;
  }
  auto far = whole;
  far.push_back({"input_blocks.99999999999999999999.0.weight", {1}});
  far.push_back({"output_blocks.2147483647.1.in_layers.0.weight", {1}});
  EXPECT_FALSE(detect_unet(far).config);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(20));
}

// By hand: one level, no attention but the middle's, 4x4 pixels.
TEST(NetworkFlop, CountsEveryMultiplyAdd) {
  UNetConfig c;
  c.image_size = 4;
  c.model_channels = 32;
  c.channel_mult = {1};
  c.num_res_blocks = 1;
  c.num_head_channels = 32;
  const double square = 9 * 32 * 32;  // a 3x3 convolution at one pixel
  const double ends = 2 * 9 * 3 * 32, encoder = 2 * square, middle = 4 * square;
  const double decoder = 2 * (3 * square + 64 * 32);   // 64 to 32, 32 to 32, and a 1x1 skip
  const double attention = 4 * 32 * 32 + 2 * 32 * 16;  // q, k, v, projection; two products
  EXPECT_DOUBLE_EQ(network_flop(c, 4, 4), 2 * 16 * (ends + encoder + middle + decoder + attention));
}

// The two published architectures at 256x256, forward and input gradient: 0.78 and 4.5 TFLOP.
TEST(NetworkFlop, KnowsThePublishedNetworks) {
  UNetConfig c;
  c.image_size = 256;
  c.model_channels = 128;
  c.channel_mult = {1, 1, 2, 2, 4, 4};
  c.num_res_blocks = 1;
  c.attention_downsampling = {16};
  c.num_head_channels = 64;
  c.learn_sigma = c.resblock_updown = true;
  EXPECT_NEAR(2e-12 * network_flop(c, 256, 256), 0.776, 0.001);
  c.model_channels = 256;
  c.num_res_blocks = 2;
  c.attention_downsampling = {8, 16, 32};
  EXPECT_NEAR(2e-12 * network_flop(c, 256, 256), 4.479, 0.001);
}

}  // namespace
}  // namespace dpg
