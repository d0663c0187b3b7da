// Loading a prior: checkpoint, architecture (sidecar or detected), precision, device.
#include <filesystem>

#include <nlohmann/json.hpp>

#include "dpg/core/error.h"
#include "dpg/core/file.h"
#include "dpg/prior/prior.h"

namespace dpg {
namespace {

namespace fs = std::filesystem;

UNetConfig config_from_file(const std::string& file) {
  try {
    return unet_config_from_json(nlohmann::json::parse(read_text(file)));
  } catch (const nlohmann::json::exception& error) {
    fail(file, " is not a valid architecture description: ", error.what());
  }
}

}  // namespace

UNetConfig checkpoint_config(const StateDict& checkpoint, const std::string& file,
                             const std::string& config_file) {
  if (!config_file.empty()) return config_from_file(config_file);
  const fs::path sidecar = fs::path(file).replace_extension(".json");
  if (sidecar != fs::path(file) && fs::exists(sidecar)) return config_from_file(sidecar.string());
  std::vector<NamedShape> tensors;
  for (const TensorView& view : checkpoint.tensors()) tensors.push_back({view.name, view.shape});
  const Detection detection = detect_unet(tensors);
  check(detection.config.has_value(), file, ": ", detection.explanation);
  // A guessed head count would run and give wrong pictures: ask instead.
  if (!detection.undecided.empty()) {
    std::string fields;
    for (const std::string& field : detection.undecided) fields += (fields.empty() ? "" : ", ") + field;
    fail(file, ": tensor shapes do not tell ", fields, "; put them into ", sidecar.string(),
         " or give --config");
  }
  return *detection.config;
}

std::shared_ptr<const NetworkPrior> load_prior(const std::string& file, const LoadOptions& options) {
  const StateDict checkpoint = StateDict::open(file);
  const UNetConfig config = checkpoint_config(checkpoint, file, options.config_file);
  const auto network =
      std::make_shared<const UNet>(config, checkpoint_weights(checkpoint, config, options.device),
                                   choose_precision(options.precision, options.device), options.device);
  return std::make_shared<const NetworkPrior>(network, options.label);
}

std::string bundled_prior_path() {
  std::vector<fs::path> places;
  if (const char* chosen = std::getenv("DPG_PRIOR")) places.emplace_back(chosen);
  std::error_code ignored;
  const fs::path program = fs::read_symlink("/proc/self/exe", ignored);
  if (!ignored)
    places.push_back(program.parent_path().parent_path() / "share" / "dpg" / "priors" / "faces128.pt");
  places.emplace_back(DPG_BUNDLED_PRIOR);
  for (const fs::path& place : places)
    if (fs::exists(place)) return place.string();
  fail("the bundled prior was not found (looked for ", places.front().string(),
       "); give --model FILE or set DPG_PRIOR to a checkpoint");
}

}  // namespace dpg
