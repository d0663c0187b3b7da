// The guided-diffusion (ADM) U-Net's architecture as data: read from a sidecar JSON, or detected from the
// names and shapes of a checkpoint's tensors. No torch here.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace dpg {

struct UNetConfig {
  int image_size = 0;  // what it was trained at; runs at any multiple of downsampling()
  int in_channels = 3;
  int model_channels = 0;            // "num_channels" in guided-diffusion's flags
  std::vector<double> channel_mult;  // one per level; may be fractional (0.5 in the 512 model)
  int num_res_blocks = 0;
  std::vector<int> attention_downsampling;  // the factors 1, 2, 4, ... at which there is attention, ascending
  int num_heads = 1;                        // used when num_head_channels is -1
  int num_head_channels = -1;               // width of a head; -1: take num_heads
  int num_heads_upsample = -1;  // heads in the decoder when num_head_channels is -1; -1: as num_heads
  bool use_new_attention_order = false;  // q, k, v split before heads instead of after
  bool use_scale_shift_norm = true;
  bool resblock_updown = false;  // resample inside residual blocks instead of by own layers
  bool conv_resample = true;     // those own layers carry a convolution
  bool learn_sigma = false;      // twice the output channels: noise and variance
  int num_classes = 0;           // 0: not class-conditional
  std::string noise_schedule = "linear";
  int diffusion_steps = 1000;

  int out_channels() const { return learn_sigma ? 2 * in_channels : in_channels; }
  int levels() const { return static_cast<int>(channel_mult.size()); }
  int level_channels(int level) const { return static_cast<int>(channel_mult[level] * model_channels); }
  int downsampling() const { return 1 << (levels() - 1); }
  int time_channels() const { return 4 * model_channels; }
  bool has_attention(int downsampling_factor) const;
  int heads(int channels, bool decoder) const;  // checks divisibility

  bool operator==(const UNetConfig&) const = default;
};

// Throws with field, value and constraint when something does not fit together.
void validate(const UNetConfig& config);

// guided-diffusion's flag names, e.g. {"image_size":256,"num_channels":128,"channel_mult":"1,1,2,2,4,4",...}.
// attention_resolutions are in pixels ("32,16,8"); missing fields take guided-diffusion's defaults, an empty
// channel_mult the default for the image size. Unknown fields are ignored (cards carry training notes).
UNetConfig unet_config_from_json(const nlohmann::json& json);
nlohmann::json to_json(const UNetConfig& config);

struct NamedShape {
  std::string name;
  std::vector<std::int64_t> shape;
  bool operator==(const NamedShape&) const = default;
};

// Every tensor a checkpoint of this architecture holds, in guided-diffusion's order.
std::vector<NamedShape> expected_tensors(const UNetConfig& config);

// What the names and shapes alone say.
struct Detection {
  std::optional<UNetConfig> config;  // empty: no diffusion U-Net of this family; `explanation` says why
  std::string known_as;  // "FFHQ 256x256 (DPS, ffhq_10m.pt)", ...; empty when not a well-known one
  std::vector<std::string>
      undecided;            // fields that shapes can't tell and that were guessed, e.g. "num_heads"
  std::string explanation;  // one sentence for people
};
Detection detect_unet(const std::vector<NamedShape>& tensors);

// Throws naming the first missing tensors, the surplus ones, or a wrong shape; `source` names the file.
void check_tensors(const UNetConfig& config, const std::vector<NamedShape>& tensors,
                   const std::string& source);

}  // namespace dpg
