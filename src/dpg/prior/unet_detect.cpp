// The architecture from names and shapes alone. The pieces: other families are told apart by tell-tale names,
// the structure is read from the blocks' places and sizes, well-known checkpoints lend what shapes cannot
// tell, and at the end the whole list of tensors must be the one that the architecture has.
#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <string_view>
#include <unordered_map>

#include "dpg/core/error.h"
#include "dpg/core/text.h"
#include "dpg/prior/unet_config.h"

namespace dpg {
namespace {

constexpr int kMaxBlocks = 4096;
constexpr int kMaxLevels = 12;
constexpr std::int64_t kMaxSize = 1 << 24;
constexpr std::string_view kTimeEmbedding = "time_embed.0.weight";

// Other families

struct Family {
  std::string_view sign;  // occurs in a tensor's name
  std::string_view sentence;
};

constexpr Family kOtherFamilies[] = {
    {"model.diffusion_model.",
     "this is a latent-diffusion checkpoint: its network works on an autoencoder's codes, and a pixel-space "
     "prior is "
     "needed"},
    {"down_blocks.",
     "this is a network in the diffusers library's layout (down_blocks), which is not read; take the "
     "original "
     "guided-diffusion checkpoint"},
    {"transformer_blocks.",
     "this is a text-conditional latent-diffusion network, and a pixel-space prior of the guided-diffusion "
     "family is "
     "needed"},
    {"temb.dense.",
     "this is a U-Net of the original DDPM family (temb.dense), whose blocks differ from guided-diffusion's; "
     "it is not "
     "read"},
    {"out.2.positional_embedding",
     "this is a classifier of noisy images (such as guided-diffusion's 256x256_classifier.pt), not a "
     "diffusion prior"},
};

void refuse_other_families(const std::vector<NamedShape>& tensors) {
  check(!tensors.empty(), "the file holds no tensors");
  for (const Family& family : kOtherFamilies)
    for (const NamedShape& tensor : tensors)
      check(tensor.name.find(family.sign) == std::string::npos, family.sentence);
  for (const NamedShape& tensor : tensors) {
    const std::string_view name = tensor.name;
    if (name == kTimeEmbedding) return;
    check(!name.ends_with(str(".", kTimeEmbedding)), "the tensors' names carry the prefix '",
          printable(name.substr(0, name.size() - kTimeEmbedding.size())),
          "'; save the network's own state dict, without it");
  }
  fail("this is no diffusion U-Net of the guided-diffusion family: there is no ", kTimeEmbedding,
       " among its ", tensors.size(), tensors.size() == 1 ? " tensor" : " tensors", " (the first is ",
       printable(tensors.front().name), ")");
}

// Structure

// "input_blocks.4.1.qkv.weight" is layer 1 of block 4, and "qkv.weight" within it.
struct BlockTensor {
  int block = 0, layer = 0;
  std::string_view rest;
};

// Reads "12." off the front of the text.
std::optional<int> take_number(std::string_view& text) {
  int number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const auto length = static_cast<std::size_t>(end - text.data());
  if (error != std::errc() || number < 0 || length == text.size() || *end != '.') return std::nullopt;
  text.remove_prefix(length + 1);
  return number;
}

std::optional<BlockTensor> parse_block(std::string_view name, std::string_view group) {
  if (!name.starts_with(group)) return std::nullopt;
  name.remove_prefix(group.size());
  const auto block = take_number(name);
  if (!block) return std::nullopt;
  check(*block <= kMaxBlocks, "the network has more blocks (", *block, ") than any U-Net");
  const auto layer = take_number(name);
  if (!layer) return std::nullopt;
  return BlockTensor{*block, *layer, name};
}

// Where things are, in block numbers.
struct Places {
  static constexpr int kNowhere = std::numeric_limits<int>::max();
  std::vector<bool> encoder = std::vector<bool>(kMaxBlocks + 1);  // input blocks that have tensors
  int last_encoder_block = 0;
  int first_down_convolution = kNowhere;  // an input block that is only a strided convolution
  int first_up_res_block = kNowhere;      // an output block with a second residual block
};

Places find_places(const std::vector<NamedShape>& tensors) {
  Places places;
  for (const NamedShape& tensor : tensors) {
    if (const auto in = parse_block(tensor.name, "input_blocks.")) {
      places.encoder[static_cast<std::size_t>(in->block)] = true;
      places.last_encoder_block = std::max(places.last_encoder_block, in->block);
      if (in->rest.starts_with("op."))
        places.first_down_convolution = std::min(places.first_down_convolution, in->block);
    } else if (const auto out = parse_block(tensor.name, "output_blocks.")) {
      if (out->layer > 0 && out->rest.starts_with("in_layers."))
        places.first_up_res_block = std::min(places.first_up_res_block, out->block);
    }
  }
  return places;
}

class Shapes {
 public:
  explicit Shapes(const std::vector<NamedShape>& tensors) {
    for (const NamedShape& tensor : tensors) shapes_.emplace(tensor.name, &tensor.shape);
  }
  bool has(const std::string& name) const { return shapes_.contains(name); }

  int size(const std::string& name, std::size_t axis) const {
    const auto found = shapes_.find(name);
    check(found != shapes_.end(), "this looks like a guided-diffusion U-Net, but tensor ", name,
          " is missing");
    const auto& shape = *found->second;
    check(axis < shape.size() && shape[axis] > 0 && shape[axis] <= kMaxSize,
          "this looks like a guided-diffusion U-Net, but tensor ", name,
          " has a shape that no layer can have");
    return static_cast<int>(shape[axis]);
  }

 private:
  std::unordered_map<std::string_view, const std::vector<std::int64_t>*> shapes_;
};

// With R residual blocks per level and L levels, L (R + 1) - 1 input blocks follow the first convolution; the
// place of the first resampling gives R.
void read_levels(const Places& places, const Shapes& shapes, UNetConfig& config) {
  const int last = places.last_encoder_block;
  const auto gap = std::find(places.encoder.begin() + 1, places.encoder.begin() + last + 1, false);
  const int first_gap = static_cast<int>(gap - places.encoder.begin());
  if (places.first_up_res_block != Places::kNowhere) {
    config.resblock_updown = true;
    config.num_res_blocks = places.first_up_res_block;
  } else if (places.first_down_convolution != Places::kNowhere) {
    config.num_res_blocks = places.first_down_convolution - 1;
  } else {
    // Average pooling has no tensors and leaves a gap in the numbers; without a gap there is one level.
    config.conv_resample = first_gap > last;
    config.num_res_blocks = first_gap - 1;
  }
  const int per_level = config.num_res_blocks + 1;
  check(per_level >= 2 && last > 0 && (last + 1) % per_level == 0,
        "this looks like a guided-diffusion U-Net, but its ", last + 1,
        " input blocks do not divide into levels of ", per_level);
  const int levels = (last + 1) / per_level;
  check(levels <= kMaxLevels, "the network has more levels (", levels, ") than any U-Net");
  for (int level = 0; level < levels; ++level) {
    const std::string block = str("input_blocks.", 1 + level * per_level);
    const int channels = shapes.size(block + ".0.out_layers.0.weight", 0);
    double mult = static_cast<double>(channels) / config.model_channels;
    // The multiplication rounds towards zero: take the next number where the quotient came out too small.
    if (static_cast<int>(mult * config.model_channels) < channels) mult = std::nextafter(mult, kMaxSize);
    config.channel_mult.push_back(mult);
    if (shapes.has(block + ".1.qkv.weight") || shapes.has(block + ".1.norm.weight"))
      config.attention_downsampling.push_back(1 << level);
  }
}

UNetConfig read_structure(const std::vector<NamedShape>& tensors) {
  const Shapes shapes(tensors);
  UNetConfig config;
  config.model_channels = shapes.size(std::string(kTimeEmbedding), 1);
  config.in_channels = shapes.size("input_blocks.0.0.weight", 1);
  if (shapes.has("label_emb.weight")) config.num_classes = shapes.size("label_emb.weight", 0);
  read_levels(find_places(tensors), shapes, config);
  config.use_scale_shift_norm = shapes.size("input_blocks.1.0.emb_layers.1.weight", 0) ==
                                2 * shapes.size("input_blocks.1.0.out_layers.0.weight", 0);
  const int out_channels = shapes.size("out.2.weight", 0);
  config.learn_sigma = out_channels == 2 * config.in_channels;
  check(out_channels == config.out_channels() || config.in_channels == 6,
        "this looks like a guided-diffusion U-Net, but it takes ", config.in_channels, " channels and gives ",
        out_channels, ": a prior gives as many, or twice as many with a learned variance");
  return config;
}

// Well-known checkpoints

struct KnownCheckpoint {
  std::string name;
  UNetConfig config;
};

UNetConfig adm(int image_size, int model_channels, std::vector<double> channel_mult, int num_res_blocks,
               std::vector<int> attention_downsampling) {
  UNetConfig config;
  config.image_size = image_size;
  config.model_channels = model_channels;
  config.channel_mult = std::move(channel_mult);
  config.num_res_blocks = num_res_blocks;
  config.attention_downsampling = std::move(attention_downsampling);
  config.num_heads = 4;
  config.num_head_channels = 64;
  config.resblock_updown = true;
  config.learn_sigma = true;
  return config;
}

// Flags as published beside the checkpoints (guided-diffusion's README, DPS's model_config.yaml).
std::vector<KnownCheckpoint> known_checkpoints() {
  constexpr int image_net = 1000;
  UNetConfig faces = adm(128, 64, {1, 1, 2, 3, 4}, 1, {8, 16});
  UNetConfig ffhq = adm(256, 128, {1, 1, 2, 2, 4, 4}, 1, {16});
  UNetConfig size64 = adm(64, 192, {1, 2, 3, 4}, 3, {2, 4, 8});
  size64.num_classes = image_net;
  size64.use_new_attention_order = true;
  size64.noise_schedule = "cosine";
  UNetConfig size128 = adm(128, 256, {1, 1, 2, 3, 4}, 2, {4, 8, 16});
  size128.num_classes = image_net;
  size128.num_head_channels = -1;
  const UNetConfig unconditional256 = adm(256, 256, {1, 1, 2, 2, 4, 4}, 2, {8, 16, 32});
  UNetConfig size256 = unconditional256;
  size256.num_classes = image_net;
  UNetConfig size512 = adm(512, 256, {0.5, 1, 1, 2, 2, 4, 4}, 2, {16, 32, 64});
  size512.num_classes = image_net;
  return {{"faces 128x128 (the bundled prior, faces128.pt)", std::move(faces)},
          {"FFHQ 256x256 (DPS, ffhq_10m.pt)", std::move(ffhq)},
          {"ImageNet 64x64, class-conditional (OpenAI, 64x64_diffusion.pt)", std::move(size64)},
          {"ImageNet 128x128, class-conditional (OpenAI, 128x128_diffusion.pt)", std::move(size128)},
          {"ImageNet 256x256, class-conditional (OpenAI, 256x256_diffusion.pt)", std::move(size256)},
          // 256x256_diffusion_uncond.pt and the LSUN ones share every shape and every flag that matters here.
          {"256x256 unconditional ADM (OpenAI ImageNet or LSUN)", unconditional256},
          {"ImageNet 512x512, class-conditional (OpenAI, 512x512_diffusion.pt)", std::move(size512)}};
}

// What is left when everything that shapes cannot tell is put aside.
UNetConfig structure_of(UNetConfig config) {
  const UNetConfig unset;
  config.image_size = unset.image_size;
  config.num_heads = unset.num_heads;
  config.num_head_channels = unset.num_head_channels;
  config.num_heads_upsample = unset.num_heads_upsample;
  config.use_new_attention_order = unset.use_new_attention_order;
  config.noise_schedule = unset.noise_schedule;
  config.diffusion_steps = unset.diffusion_steps;
  return config;
}

void refuse_upsampler(const UNetConfig& structure) {
  if (structure.in_channels != 6) return;
  std::string_view known;
  if (structure.model_channels == 192 && structure.num_res_blocks == 2 && structure.levels() == 6)
    known = structure.has_attention(8) ? " (OpenAI, 64_256_upsampler.pt)" : " (OpenAI, 128_512_upsampler.pt)";
  fail("this is a conditional super-resolution network", known,
       ": it takes a noisy image and a low-resolution one (6 channels) and is not a prior over images");
}

// guided-diffusion's usual choices: 8x8 pixels at the coarsest level, heads of 64 channels where that is
// possible.
void guess_the_rest(Detection& detection) {
  UNetConfig& config = *detection.config;
  config.image_size = 8 * config.downsampling();
  bool heads_of_64 = config.level_channels(config.levels() - 1) % 64 == 0;
  for (int level = 0; level < config.levels(); ++level)
    if (config.has_attention(1 << level)) heads_of_64 &= config.level_channels(level) % 64 == 0;
  config.num_heads = 4;
  config.num_head_channels = heads_of_64 ? 64 : -1;
  detection.undecided = {"image_size", heads_of_64 ? "num_head_channels" : "num_heads",
                         "use_new_attention_order", "noise_schedule", "diffusion_steps"};
  detection.explanation =
      str("a guided-diffusion U-Net of ", config.levels(), " levels; its names and shapes leave open:");
  for (const std::string& field : detection.undecided)
    detection.explanation += (&field == &detection.undecided.front() ? " " : ", ") + field;
  detection.explanation += " (guessed; a JSON file beside the checkpoint can give them)";
}

}  // namespace

Detection detect_unet(const std::vector<NamedShape>& tensors) {
  Detection detection;
  try {
    refuse_other_families(tensors);
    const UNetConfig structure = read_structure(tensors);
    refuse_upsampler(structure);
    detection.config = structure;
    for (KnownCheckpoint& known : known_checkpoints()) {
      if (structure_of(known.config) != structure_of(structure)) continue;
      detection.config = std::move(known.config);
      detection.known_as = std::move(known.name);
      detection.explanation = "recognised as " + detection.known_as;
    }
    if (detection.known_as.empty()) guess_the_rest(detection);
    check_tensors(*detection.config, tensors, "this is not a whole guided-diffusion U-Net");
  } catch (const Error& error) {
    return {std::nullopt, {}, {}, error.what()};
  }
  return detection;
}

}  // namespace dpg
