// Loading a prior: checkpoint, architecture (sidecar or detected), precision, device.
#include <filesystem>

#include <nlohmann/json.hpp>
#include <sstream>

#include "dpg/core/bundled.h"
#include "dpg/core/error.h"
#include "dpg/core/file.h"
#include "dpg/prior/prior.h"

namespace dpg {
namespace {

namespace fs = std::filesystem;

// A field as it would be written in --arch.
std::string value_text(const UNetConfig& config, const std::string& field) {
  const nlohmann::json value = to_json(config).at(field);
  return value.is_string() ? value.get<std::string>() : value.dump();
}

nlohmann::json json_from_file(const std::string& file) {
  try {
    return nlohmann::json::parse(read_text(file));
  } catch (const nlohmann::json::exception& error) {
    fail(file, " is not valid JSON: ", error.what());
  }
}

// "a=1,b=true,c=cosine" as {"a":1,"b":true,"c":"cosine"}.
nlohmann::json json_from_flags(const std::string& flags) {
  nlohmann::json fields = nlohmann::json::object();
  std::istringstream list(flags);
  for (std::string item; std::getline(list, item, ',');) {
    const std::size_t equals = item.find('=');
    check(equals != std::string::npos && equals > 0 && equals + 1 < item.size(), "architecture flag \"", item,
          "\" is not of the form name=value, e.g. num_heads=4");
    const std::string name = item.substr(0, equals), value = item.substr(equals + 1);
    check(to_json(UNetConfig{}).contains(name), "architecture flag \"", name, "\" is unknown; there are ",
          to_json(UNetConfig{}).dump());
    const nlohmann::json parsed = nlohmann::json::parse(value, nullptr, /*allow_exceptions=*/false);
    fields[name] = parsed.is_boolean() || parsed.is_number() ? parsed : nlohmann::json(value);
  }
  return fields;
}

UNetConfig with_flags(UNetConfig config, const nlohmann::json& flags) {
  // Attention resolutions are written in pixels of the image size: change that first, in the structure
  // itself.
  if (flags.contains("image_size") && !flags.contains("attention_resolutions") &&
      flags["image_size"].is_number())
    config.image_size = flags["image_size"];
  nlohmann::json fields = to_json(config);
  // A head count given by a user replaces a guessed head width.
  if (flags.contains("num_heads") && !flags.contains("num_head_channels")) fields["num_head_channels"] = -1;
  fields.update(flags);
  return unet_config_from_json(fields);
}

UNetConfig detected_config(const StateDict& checkpoint, const std::string& file, const std::string& sidecar,
                           const nlohmann::json& flags) {
  std::vector<NamedShape> tensors;
  for (const TensorView& view : checkpoint.tensors()) tensors.push_back({view.name, view.shape});
  const Detection detection = detect_unet(tensors);
  check(detection.config.has_value(), file, ": ", detection.explanation);
  // A guessed head count or schedule would run and give wrong pictures: ask instead.
  std::string open;
  for (const std::string& field : detection.undecided) {
    const bool heads = field == "num_heads" || field == "num_head_channels";
    const bool given = flags.contains(field) ||
                       (heads && (flags.contains("num_heads") || flags.contains("num_head_channels")));
    if (!given) open += (open.empty() ? "" : ",") + field + "=" + value_text(*detection.config, field);
  }
  check(open.empty(), file,
        ": tensor shapes do not tell everything about this network; if these values are right, give ",
        "--arch ", open, " or put them into ", sidecar);
  return *detection.config;
}

}  // namespace

UNetConfig checkpoint_config(const StateDict& checkpoint, const std::string& file,
                             const ArchitectureSource& source) {
  const nlohmann::json flags = json_from_flags(source.flags);
  fs::path sidecar = fs::path(file).replace_extension(".json");
  const bool has_sidecar = sidecar != fs::path(file) && fs::exists(sidecar);
  if (!source.config_file.empty()) sidecar = source.config_file;
  const UNetConfig config = has_sidecar || !source.config_file.empty()
                                ? unet_config_from_json(json_from_file(sidecar.string()))
                                : detected_config(checkpoint, file, sidecar.string(), flags);
  return flags.empty() ? config : with_flags(config, flags);
}

std::shared_ptr<const NetworkPrior> load_prior(const std::string& file, const LoadOptions& options) {
  const StateDict checkpoint = StateDict::open(file);
  const UNetConfig config = checkpoint_config(checkpoint, file, options.architecture);
  const auto network =
      std::make_shared<const UNet>(config, checkpoint_weights(checkpoint, config, options.device),
                                   choose_precision(options.precision, options.device), options.device);
  return std::make_shared<const NetworkPrior>(network, options.label);
}

std::string bundled_prior_path() {
  return bundled("priors/faces128.pt", "DPG_PRIOR", "the bundled prior").string();
}

}  // namespace dpg
