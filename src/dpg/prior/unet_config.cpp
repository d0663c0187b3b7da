#include "dpg/prior/unet_config.h"

#include <algorithm>
#include <charconv>
#include <limits>
#include <nlohmann/json.hpp>
#include <string_view>
#include <unordered_map>

#include "dpg/core/error.h"
#include "dpg/core/text.h"

namespace dpg {
namespace {

using nlohmann::json;

// Far above any published network, low enough that no product of two of them can overflow.
constexpr int kMaxChannels = 1 << 16;
constexpr int kMaxLevels = 12;
constexpr int kMaxResBlocks = 64;
constexpr int kMaxClasses = 1 << 24;
constexpr int kMaxImageSize = 1 << 16;
constexpr int kMaxDiffusionSteps = 1'000'000;
constexpr int kNormGroups = 32;  // guided-diffusion's GroupNorm always has 32 groups
constexpr int kImageNetClasses = 1000;

void check_range(const char* field, int value, int low, int high) {
  check(value >= low && value <= high, "U-Net configuration: ", field, " = ", value, " must be between ", low,
        " and ", high);
}

// Reading JSON: every reader names the field in its message.

std::string describe(const json& value) {
  return value.is_primitive() ? value.dump() : str("an ", value.type_name());
}

int int_field(const json& fields, const char* field, int missing) {
  const auto found = fields.find(field);
  if (found == fields.end() || found->is_null()) return missing;
  check(found->is_number_integer(), "U-Net configuration: ", field, " must be a whole number, not ",
        describe(*found));
  const auto value = found->get<double>();  // exact for every int
  check(value >= std::numeric_limits<int>::min() && value <= std::numeric_limits<int>::max(),
        "U-Net configuration: ", field, " = ", found->dump(), " is out of range");
  return static_cast<int>(value);
}

bool bool_field(const json& fields, const char* field, bool missing) {
  const auto found = fields.find(field);
  if (found == fields.end() || found->is_null()) return missing;
  check(found->is_boolean(), "U-Net configuration: ", field, " must be true or false, not ",
        describe(*found));
  return found->get<bool>();
}

std::string string_field(const json& fields, const char* field, const char* missing) {
  const auto found = fields.find(field);
  if (found == fields.end() || found->is_null()) return missing;
  check(found->is_string(), "U-Net configuration: ", field, " must be a text, not ", describe(*found));
  return found->get<std::string>();
}

double parse_number(std::string_view text, const char* field) {
  const auto is_space = [](char c) { return c == ' ' || c == '\t'; };
  while (!text.empty() && is_space(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_space(text.back())) text.remove_suffix(1);
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  check(error == std::errc() && end == text.data() + text.size(), "U-Net configuration: ", field,
        " must be numbers separated by commas, not '", text, "'");
  return value;
}

// A list in any of the notations in use: "32,16,8", 16 or [32, 16, 8].
std::vector<double> numbers_field(const json& fields, const char* field, const char* missing) {
  const auto found = fields.find(field);
  std::vector<double> numbers;
  if (found != fields.end() && found->is_number()) return {found->get<double>()};
  if (found != fields.end() && found->is_array()) {
    for (const auto& item : *found) {
      check(item.is_number(), "U-Net configuration: ", field, " must hold numbers, not ", describe(item));
      numbers.push_back(item.get<double>());
    }
    return numbers;
  }
  const std::string text = string_field(fields, field, missing);
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t comma = std::min(text.find(',', begin), text.size());
    numbers.push_back(parse_number(std::string_view(text).substr(begin, comma - begin), field));
    begin = comma + 1;
  }
  return numbers;
}

std::vector<double> default_channel_mult(int image_size) {
  switch (image_size) {
    case 512:
      return {0.5, 1, 1, 2, 2, 4, 4};
    case 256:
      return {1, 1, 2, 2, 4, 4};
    case 128:
      return {1, 1, 2, 3, 4};
    case 64:
      return {1, 2, 3, 4};
    default:
      fail("U-Net configuration: there is no default channel_mult for image_size ", image_size,
           "; give channel_mult");
  }
}

// Pixels to downsampling factors. As in guided-diffusion, a resolution that no level has is without effect.
std::vector<int> attention_factors(const std::vector<double>& resolutions, const UNetConfig& config) {
  for (const double resolution : resolutions)
    check(resolution >= 1 && resolution <= kMaxImageSize && resolution == static_cast<int>(resolution),
          "U-Net configuration: attention_resolutions holds ", resolution, ", which is not a size in pixels");
  std::vector<int> factors;
  for (int factor = 1; factor <= config.downsampling(); factor *= 2) {
    const auto has_factor = [&](double resolution) {
      return config.image_size / static_cast<int>(resolution) == factor;
    };
    if (std::any_of(resolutions.begin(), resolutions.end(), has_factor)) factors.push_back(factor);
  }
  return factors;
}

// The shortest text that reads back as the same number, joined by commas.
template <class Number>
std::string join(const std::vector<Number>& numbers) {
  std::string text;
  for (const Number number : numbers) {
    char buffer[40];
    const auto end = std::to_chars(buffer, buffer + sizeof buffer, number).ptr;
    if (!text.empty()) text += ',';
    text.append(buffer, end);
  }
  return text;
}

std::string shape_text(const std::vector<std::int64_t>& shape) {
  return str("[", join(shape), "]");
}

// Lists the tensors in the order in which the layers are built.
class TensorList {
 public:
  explicit TensorList(const UNetConfig& config) : config_(config) {}

  void linear(const std::string& name, int in, int out) { layer(name, {out, in}); }
  void conv(const std::string& name, int in, int out, int size) { layer(name, {out, in, size, size}); }
  void norm(const std::string& name, int channels) { layer(name, {channels}); }
  void embedding(const std::string& name, int count, int width) { add(name + ".weight", {count, width}); }

  void res_block(const std::string& name, int in, int out) {
    norm(name + ".in_layers.0", in);
    conv(name + ".in_layers.2", in, out, 3);
    linear(name + ".emb_layers.1", config_.time_channels(), config_.use_scale_shift_norm ? 2 * out : out);
    norm(name + ".out_layers.0", out);
    conv(name + ".out_layers.3", out, out, 3);
    if (in != out) conv(name + ".skip_connection", in, out, 1);
  }

  void attention(const std::string& name, int channels) {
    norm(name + ".norm", channels);
    layer(name + ".qkv", {3 * channels, channels, 1});
    layer(name + ".proj_out", {channels, channels, 1});
  }

  void resample(const std::string& name, int channels, const char* layer_name) {
    if (config_.resblock_updown)
      res_block(name, channels, channels);
    else if (config_.conv_resample)
      conv(name + layer_name, channels, channels, 3);
  }

  std::vector<NamedShape> take() { return std::move(tensors_); }

 private:
  void add(std::string name, std::vector<std::int64_t> shape) {
    tensors_.push_back({std::move(name), std::move(shape)});
  }
  void layer(const std::string& name, std::vector<std::int64_t> weight) {
    const std::int64_t out = weight[0];
    add(name + ".weight", std::move(weight));
    add(name + ".bias", {out});
  }

  const UNetConfig& config_;
  std::vector<NamedShape> tensors_;
};

// Returns the channels of every input block's output: what the decoder will be handed, last first.
std::vector<int> list_encoder(const UNetConfig& config, TensorList& list) {
  int channels = config.level_channels(0);
  std::vector<int> skips = {channels};
  const auto block = [&](int layer) { return str("input_blocks.", skips.size(), ".", layer); };
  list.conv("input_blocks.0.0", config.in_channels, channels, 3);
  for (int level = 0; level < config.levels(); ++level) {
    for (int i = 0; i < config.num_res_blocks; ++i) {
      list.res_block(block(0), channels, config.level_channels(level));
      channels = config.level_channels(level);
      if (config.has_attention(1 << level)) list.attention(block(1), channels);
      skips.push_back(channels);
    }
    if (level + 1 == config.levels()) break;
    list.resample(block(0), channels, ".op");
    skips.push_back(channels);
  }
  return skips;
}

void list_decoder(const UNetConfig& config, std::vector<int> skips, TensorList& list) {
  int channels = skips.back();
  int index = 0;
  for (int level = config.levels() - 1; level >= 0; --level) {
    for (int i = 0; i <= config.num_res_blocks; ++i, ++index) {
      int layer = 0;
      const auto next = [&] { return str("output_blocks.", index, ".", layer++); };
      list.res_block(next(), channels + skips.back(), config.level_channels(level));
      skips.pop_back();
      channels = config.level_channels(level);
      if (config.has_attention(1 << level)) list.attention(next(), channels);
      if (level > 0 && i == config.num_res_blocks) list.resample(next(), channels, ".conv");
    }
  }
}

}  // namespace

bool UNetConfig::has_attention(int downsampling_factor) const {
  return std::find(attention_downsampling.begin(), attention_downsampling.end(), downsampling_factor) !=
         attention_downsampling.end();
}

int UNetConfig::heads(int channels, bool decoder) const {
  if (num_head_channels != -1) {
    check(num_head_channels > 0 && channels % num_head_channels == 0,
          "U-Net configuration: num_head_channels = ", num_head_channels, " does not divide the ", channels,
          " channels of an attention layer");
    return channels / num_head_channels;
  }
  const bool own = decoder && num_heads_upsample != -1;
  const int count = own ? num_heads_upsample : num_heads;
  check(count > 0 && channels % count == 0, "U-Net configuration: ", own ? "num_heads_upsample" : "num_heads",
        " = ", count, " does not divide the ", channels, " channels of an attention layer");
  return count;
}

void validate(const UNetConfig& config) {
  check_range("levels of channel_mult", config.levels(), 1, kMaxLevels);
  check_range("image_size", config.image_size, 1, kMaxImageSize);
  check_range("in_channels", config.in_channels, 1, kMaxChannels);
  check_range("num_channels", config.model_channels, 1, kMaxChannels);
  check_range("num_res_blocks", config.num_res_blocks, 1, kMaxResBlocks);
  check_range("num_classes", config.num_classes, 0, kMaxClasses);
  check_range("diffusion_steps", config.diffusion_steps, 1, kMaxDiffusionSteps);
  check(config.image_size % config.downsampling() == 0,
        "U-Net configuration: image_size = ", config.image_size, " must be a multiple of ",
        config.downsampling(), ", the downsampling of its ", config.levels(), " levels");
  check(config.noise_schedule == "linear" || config.noise_schedule == "cosine",
        "U-Net configuration: noise_schedule = '", config.noise_schedule, "' must be linear or cosine");
  for (int level = 0; level < config.levels(); ++level) {
    const double channels = config.channel_mult[static_cast<std::size_t>(level)] * config.model_channels;
    check(
        channels >= kNormGroups && channels <= kMaxChannels && static_cast<int>(channels) % kNormGroups == 0,
        "U-Net configuration: channel_mult x num_channels = ", channels, " at level ", level,
        " must be a multiple of ", kNormGroups, " and at most ", kMaxChannels);
  }
  int previous = 0;
  for (const int factor : config.attention_downsampling) {
    const bool of_a_level = factor > 0 && (factor & (factor - 1)) == 0 && factor <= config.downsampling();
    check(of_a_level && factor > previous, "U-Net configuration: attention at downsampling ", factor,
          " is not possible: the factors must ascend and be powers of two up to ", config.downsampling());
    previous = factor;
  }
  for (int level = 0; level < config.levels(); ++level) {
    const bool middle = level + 1 == config.levels();  // there is always attention in the middle
    if (middle || config.has_attention(1 << level)) config.heads(config.level_channels(level), false);
    if (config.has_attention(1 << level)) config.heads(config.level_channels(level), true);
  }
}

UNetConfig unet_config_from_json(const json& fields) {
  check(fields.is_object(), "U-Net configuration: a JSON object is needed");
  UNetConfig config;
  config.image_size = int_field(fields, "image_size", 64);
  config.in_channels = int_field(fields, "in_channels", 3);
  config.model_channels = int_field(fields, "num_channels", 128);
  config.channel_mult = numbers_field(fields, "channel_mult", "");
  if (config.channel_mult.empty()) config.channel_mult = default_channel_mult(config.image_size);
  check_range("levels of channel_mult", config.levels(), 1, kMaxLevels);
  config.num_res_blocks = int_field(fields, "num_res_blocks", 2);
  config.attention_downsampling =
      attention_factors(numbers_field(fields, "attention_resolutions", "16,8"), config);
  config.num_heads = int_field(fields, "num_heads", 4);
  config.num_head_channels = int_field(fields, "num_head_channels", -1);
  config.num_heads_upsample = int_field(fields, "num_heads_upsample", -1);
  config.use_new_attention_order = bool_field(fields, "use_new_attention_order", false);
  config.use_scale_shift_norm = bool_field(fields, "use_scale_shift_norm", true);
  config.resblock_updown = bool_field(fields, "resblock_updown", false);
  config.conv_resample = bool_field(fields, "conv_resample", true);
  config.learn_sigma = bool_field(fields, "learn_sigma", false);
  const bool class_conditional = bool_field(fields, "class_cond", false);
  config.num_classes = int_field(fields, "num_classes", class_conditional ? kImageNetClasses : 0);
  config.noise_schedule = string_field(fields, "noise_schedule", "linear");
  config.diffusion_steps = int_field(fields, "diffusion_steps", 1000);
  validate(config);
  return config;
}

json to_json(const UNetConfig& config) {
  std::vector<int> attention_resolutions;
  for (const int factor : config.attention_downsampling)
    attention_resolutions.push_back(config.image_size / factor);
  return {{"image_size", config.image_size},
          {"in_channels", config.in_channels},
          {"num_channels", config.model_channels},
          {"channel_mult", join(config.channel_mult)},
          {"num_res_blocks", config.num_res_blocks},
          {"attention_resolutions", join(attention_resolutions)},
          {"num_heads", config.num_heads},
          {"num_head_channels", config.num_head_channels},
          {"num_heads_upsample", config.num_heads_upsample},
          {"use_new_attention_order", config.use_new_attention_order},
          {"use_scale_shift_norm", config.use_scale_shift_norm},
          {"resblock_updown", config.resblock_updown},
          {"conv_resample", config.conv_resample},
          {"learn_sigma", config.learn_sigma},
          {"class_cond", config.num_classes > 0},
          {"num_classes", config.num_classes},
          {"noise_schedule", config.noise_schedule},
          {"diffusion_steps", config.diffusion_steps}};
}

std::vector<NamedShape> expected_tensors(const UNetConfig& config) {
  validate(config);
  TensorList list(config);
  list.linear("time_embed.0", config.model_channels, config.time_channels());
  list.linear("time_embed.2", config.time_channels(), config.time_channels());
  if (config.num_classes > 0) list.embedding("label_emb", config.num_classes, config.time_channels());
  std::vector<int> skips = list_encoder(config, list);
  const int channels = skips.back();
  list.res_block("middle_block.0", channels, channels);
  list.attention("middle_block.1", channels);
  list.res_block("middle_block.2", channels, channels);
  list_decoder(config, std::move(skips), list);
  list.norm("out.0", config.level_channels(0));
  list.conv("out.2", config.level_channels(0), config.out_channels(), 3);
  return list.take();
}

void check_tensors(const UNetConfig& config, const std::vector<NamedShape>& tensors,
                   const std::string& source) {
  std::unordered_map<std::string_view, const NamedShape*> given;
  for (const NamedShape& tensor : tensors)
    check(given.emplace(tensor.name, &tensor).second, source, ": tensor ", printable(tensor.name),
          " occurs twice");

  std::string missing;
  int missing_count = 0;
  for (const NamedShape& expected : expected_tensors(config)) {
    const auto found = given.find(expected.name);
    if (found == given.end()) {
      if (++missing_count <= 3) missing += (missing.empty() ? "" : ", ") + expected.name;
      continue;
    }
    check(found->second->shape == expected.shape, source, ": tensor ", expected.name, " has the shape ",
          shape_text(found->second->shape), " where this architecture needs ", shape_text(expected.shape));
    given.erase(found);
  }
  check(missing_count == 0, source, ": ", missing_count == 1 ? "a tensor is" : "tensors are",
        " missing: ", missing, missing_count > 3 ? str(" and ", missing_count - 3, " more") : "");
  for (const NamedShape& tensor : tensors)
    check(!given.contains(tensor.name), source, ": tensor ", printable(tensor.name),
          " is surplus: this architecture has no such layer",
          given.size() > 1 ? str(" (and ", given.size() - 1, " more)") : "");
}

}  // namespace dpg
