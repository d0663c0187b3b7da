#include "dpg/measure/sidecar.h"

#include <torch/torch.h>

#include <nlohmann/json.hpp>

#include "dpg/core/error.h"
#include "dpg/core/file.h"
#include "dpg/image/npy.h"
#include "dpg/measure/catalog.h"

namespace dpg {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kFormat = "dpg measurement";
constexpr int kVersion = 1;

std::filesystem::path numbers_of(const std::filesystem::path& json) {
  check(json.extension() == ".json", "the sidecar ", json.string(), " does not end in .json; give that file");
  return std::filesystem::path(json).replace_extension(".npy");
}

Sidecar parse(const Json& json, const std::string& file) {
  check(json.is_object() && json.value("format", "") == kFormat, file,
        " is no measurement of dpg (its \"format\" is not \"", kFormat,
        "\"); give the .json file that \"dpg degrade\" wrote");
  check(json.at("version") == kVersion, file, " is of version ", json.at("version").dump(),
        ", this build reads version ", kVersion, "; use a newer dpg");
  Sidecar sidecar;
  sidecar.operator_spec = json.at("operator").get<std::string>();
  sidecar.noise_spec = json.at("noise").get<std::string>();
  sidecar.seed = json.at("seed").get<std::uint64_t>();
  sidecar.images = json.at("images").get<std::vector<std::uint32_t>>();
  sidecar.source = json.value("source", "");
  const auto shape = json.at("image_shape").get<std::vector<std::int64_t>>();
  check(shape.size() == 3, file, ": image_shape must be [channels, height, width]");
  sidecar.shape = {shape[0], shape[1], shape[2]};
  return sidecar;
}

}  // namespace

void write_sidecar(const std::filesystem::path& json, const Sidecar& sidecar) {
  const std::filesystem::path numbers = numbers_of(json);
  const Tensor y = sidecar.y.detach().to(torch::kCPU, torch::kFloat32).contiguous();
  check(y.dim() >= 2 && y.size(0) == static_cast<std::int64_t>(sidecar.images.size()), "a measurement of ",
        sidecar.images.size(), " images needs as many rows");
  write_npy(numbers, y.sizes(), {y.data_ptr<float>(), static_cast<std::size_t>(y.numel())});
  const Json content = {
      {"format", kFormat},
      {"version", kVersion},
      {"operator", sidecar.operator_spec},
      {"noise", sidecar.noise_spec},
      {"seed", sidecar.seed},
      {"images", sidecar.images},
      {"image_shape", {sidecar.shape.channels, sidecar.shape.height, sidecar.shape.width}},
      {"source", sidecar.source},
  };
  write_text(json, content.dump(2) + "\n");
}

Sidecar read_sidecar(const std::filesystem::path& json) {
  const std::filesystem::path numbers = numbers_of(json);
  Sidecar sidecar;
  try {
    sidecar = parse(Json::parse(read_text(json)), json.string());
  } catch (const nlohmann::json::exception& error) {
    fail(json.string(), " is not a sidecar that can be read: ", error.what(),
         "; write it again with \"dpg degrade\"");
  }
  const NpyArray array = read_npy(numbers);
  check(array.shape.size() >= 2 && array.shape[0] == static_cast<std::int64_t>(sidecar.images.size()),
        numbers.string(), " does not hold one row for each of the ", sidecar.images.size(), " images of ",
        json.string());
  sidecar.y = torch::tensor(c10::ArrayRef<float>(array.data)).reshape(array.shape);
  return sidecar;
}

Measurement to_measurement(const Sidecar& sidecar) {
  auto a = make_operator(sidecar.operator_spec, {sidecar.shape, sidecar.seed, sidecar.images});
  a->check_output(sidecar.y);
  return {sidecar.y, std::move(a), make_noise(sidecar.noise_spec)};
}

}  // namespace dpg
