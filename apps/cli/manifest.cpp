#include "manifest.h"

#include <torch/utils.h>

#include "dpg/core/error.h"
#include "dpg/core/file.h"
#include "dpg/core/fingerprint.h"

namespace dpg::cli {
namespace {

namespace fs = std::filesystem;

constexpr const char* kFormat = "dpg manifest";
constexpr int kVersion = 1;

// Files are named from the manifest's folder, so that a folder can be moved with all that is in it.
std::string from_folder(const fs::path& folder, const fs::path& file) {
  std::error_code failed;
  const fs::path relative = fs::relative(file, folder.empty() ? "." : folder, failed);
  return failed || relative.empty() ? fs::absolute(file).string() : relative.string();
}

Json file_json(const fs::path& folder, const fs::path& file) {
  return {{"path", from_folder(folder, file)}, {"fingerprint", file_fingerprint(file)}};
}

fs::path checked_file(const fs::path& folder, const Json& json, const fs::path& manifest) {
  const fs::path file = (folder / json.at("path").get<std::string>()).lexically_normal();
  check(fs::exists(file), "there is no ", file.string(), ", which ", manifest.string(), " was made from");
  check(file_fingerprint(file) == json.at("fingerprint").get<std::string>(), file.string(),
        " is no longer the file that ", manifest.string(), " was made from; bring that back to run it again");
  return file;
}

Json problem_json(const fs::path& folder, const Problem& problem) {
  Json files = Json::array();
  for (const fs::path& file : problem.files) files.push_back(file_json(folder, file));
  const bool photo = problem.files.size() == 1;
  return {{"input", from_folder(folder, problem.input)},
          {"files", files},
          {"from", photo ? "picture" : "sidecar"},
          {"operator", problem.op},
          {"noise", problem.noise},
          {"operator_seed", problem.op_seed},
          {"image", problem.image}};
}

Problem problem_from(const fs::path& folder, const Json& json, const fs::path& manifest) {
  for (const Json& file : json.at("files")) checked_file(folder, file, manifest);
  ProblemOptions options;
  if (json.at("from") == "picture") {
    options.op = json.at("operator").get<std::string>();
    options.noise = json.at("noise").get<std::string>();
    options.op_seed = json.at("operator_seed").get<std::uint64_t>();
  }
  const fs::path input = (folder / json.at("input").get<std::string>()).lexically_normal();
  return read_problem(input, options, json.at("image").get<std::uint32_t>());
}

Manifest parse(const Json& json, const fs::path& file) {
  check(json.is_object() && json.value("format", "") == kFormat, file.string(),
        " is no manifest of dpg; give the "
        "NAME.manifest.json beside a restored picture");
  check(json.at("version") == kVersion, file.string(), " is of version ", json.at("version").dump(),
        ", this build reads version ", kVersion, "; use a newer dpg");
  const fs::path folder = file.parent_path();
  Manifest manifest;
  RestorePlan& plan = manifest.job.plan;
  plan.method = json.at("method").get<std::string>();
  plan.settings = json.at("settings");
  plan.seed = json.at("seed").get<std::uint64_t>();
  plan.samples = json.at("samples").get<int>();
  plan.batch = json.at("pictures_at_once").get<int>();
  RuntimeOptions& runtime = manifest.job.runtime;
  const Json& model = json.at("model");
  if (model.at("bundled").get<bool>())
    check(file_fingerprint(bundled_prior_path()) == model.at("fingerprint").get<std::string>(),
          "the bundled prior is another one than ", file.string(),
          " was made with; use the dpg that made it");
  else
    runtime.model = checked_file(folder, model, file).string();
  runtime.architecture.config_file = model.at("config").get<std::string>();
  runtime.architecture.flags = model.at("arch").get<std::string>();
  runtime.label = model.at("class").get<int>();
  runtime.device = json.at("device").get<std::string>();
  runtime.precision = json.at("precision").get<std::string>();
  runtime.threads = json.at("threads").get<int>();
  for (const Json& problem : json.at("batch")) manifest.batch.push_back(problem_from(folder, problem, file));
  manifest.row = json.at("row").get<std::size_t>();
  check(manifest.row < manifest.batch.size(), file.string(), " names row ", manifest.row, " of ",
        manifest.batch.size());
  manifest.output = (folder / json.at("output").at("path").get<std::string>()).lexically_normal();
  manifest.output_fingerprint = json.at("output").at("fingerprint").get<std::string>();
  return manifest;
}

}  // namespace

fs::path manifest_path(const fs::path& output) {
  return output.parent_path() / (output.stem().string() + ".manifest.json");
}

void write_manifest(const RestoreJob& job, const NetworkPrior& prior, const std::vector<Problem>& batch,
                    std::size_t row, const Restored& restored) {
  const fs::path file = manifest_path(restored.output), folder = file.parent_path();
  const bool bundled = job.runtime.model.empty();
  Json model = file_json(folder, bundled ? fs::path(bundled_prior_path()) : fs::path(job.runtime.model));
  if (bundled) model["path"] = "";
  model["bundled"] = bundled;
  model["config"] = job.runtime.architecture.config_file;
  model["arch"] = job.runtime.architecture.flags;
  model["class"] = job.runtime.label;
  Json problems = Json::array();
  for (const Problem& problem : batch) problems.push_back(problem_json(folder, problem));
  const Json json = {{"format", kFormat},
                     {"version", kVersion},
                     {"dpg", DPG_VERSION},
                     {"output", file_json(folder, restored.output)},
                     {"method", job.plan.method},
                     {"preset", job.plan.preset},
                     {"settings", settings_for(job.plan, restored.problem.shape)},
                     {"seed", job.plan.seed},
                     {"samples", job.plan.samples},
                     {"pictures_at_once", job.plan.batch},
                     {"batch", problems},
                     {"row", row},
                     {"model", model},
                     {"device", prior.device().str()},
                     // What "auto" and "all cores" came to: sums are rounded differently otherwise.
                     {"precision", precision_name(prior.network().precision())},
                     {"threads", torch::get_num_threads()},
                     {"result", summary(restored)}};
  write_text(file, json.dump(2) + "\n");
}

Manifest read_manifest(const fs::path& file) {
  try {
    return parse(Json::parse(read_text(file)), file);
  } catch (const nlohmann::json::exception& error) {
    fail(file.string(), " cannot be read as a manifest: ", error.what());
  }
}

}  // namespace dpg::cli
