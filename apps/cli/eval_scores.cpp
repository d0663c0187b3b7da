#include "eval_scores.h"

#include <torch/torch.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "dpg/core/error.h"
#include "dpg/core/file.h"
#include "dpg/core/fingerprint.h"
#include "dpg/evaluate/plan.h"
#include "dpg/image/transform.h"
#include "dpg/metrics/fidelity.h"
#include "dpg/metrics/set_metrics.h"
#include "dpg/tensor/convert.h"

namespace dpg::cli {
namespace {

namespace fs = std::filesystem;
using evaluate::Json;

const std::string kLpips = "lpips_";
constexpr std::size_t kFewest = 2;  // pictures of a set

Tensor read_picture(const fs::path& file) {
  return to_tensor(to_rgb(read_image(file)));
}

Json number(double value) {
  if (std::isfinite(value)) return value;
  return std::isinf(value) && value > 0 ? Json("inf") : Json(nullptr);
}

std::string text_fingerprint(const std::string& text) {
  return fingerprint({reinterpret_cast<const std::byte*>(text.data()), text.size()});
}

// The set's values for these pictures, if they were computed before.
std::optional<Json> kept_scores(const fs::path& file, const std::string& key) {
  if (!fs::exists(file)) return {};
  const Json json = Json::parse(read_text(file), nullptr, /*allow_exceptions=*/false);
  if (!json.is_object() || json.value("key", "") != key || !json.contains("values")) return {};
  return json["values"];
}

// The two sets' features are made when they are first needed: where every set is kept, none is.
class SetScorer {
 public:
  SetScorer(const std::vector<fs::path>& truth, const fs::path& weights, torch::Device device)
      : truth_(truth), metrics_(metric_weight_folders(weights), device) {}

  Json values(const std::vector<std::string>& wanted, const std::vector<fs::path>& pictures) {
    if (!truth_features_) truth_features_ = features(truth_);
    Json values = Json::object();
    for (const SetDistance& distance : metrics_.distances(*truth_features_, features(pictures))) {
      if (std::find(wanted.begin(), wanted.end(), distance.name) == wanted.end()) continue;
      if (distance.value)
        values[distance.name] = *distance.value;
      else
        values[distance.name] = "unavailable: " + distance.note;
      if (distance.standard_error && std::isfinite(*distance.standard_error))
        values[distance.name + " standard error"] = *distance.standard_error;
      if (!distance.leaving_out.empty()) values[distance.name + " leaving out"] = distance.leaving_out;
      if (distance.value && !distance.note.empty()) values[distance.name + " note"] = distance.note;
    }
    return values;
  }

 private:
  SetMetrics::Features features(const std::vector<fs::path>& files) const {
    SetMetrics::Features features;
    for (const fs::path& file : files) metrics_.add(features, read_picture(file));
    return features;
  }

  std::vector<fs::path> truth_;
  SetMetrics metrics_;
  std::optional<SetMetrics::Features> truth_features_;
};

}  // namespace

PictureScorer::PictureScorer(const std::vector<std::string>& metrics, const fs::path& weights,
                             torch::Device device) {
  const auto folders = metric_weight_folders(weights);
  for (const std::string& metric : metrics) {
    const auto& known = evaluate::picture_metrics();
    if (std::find(known.begin(), known.end(), metric) == known.end()) continue;
    if (metric.rfind(kLpips, 0) == 0) {
      const std::string net = metric.substr(kLpips.size());
      const FoundWeights found = find_metric_weights(Lpips::wanted_weights(net), folders);
      if (!found) {
        missing_[metric] = found.missing;
        continue;
      }
      networks_.emplace(metric, Lpips::load(net, folders).to(device));
    }
    metrics_.push_back(metric);
  }
}

bool PictureScorer::complete(Json& record, const fs::path& picture, const fs::path& truth) const {
  std::vector<std::string> lacking;
  for (const std::string& metric : metrics_)
    if (!record.contains(metric) || record[metric].is_null()) lacking.push_back(metric);
  if (lacking.empty()) return false;
  const Tensor a = read_picture(picture), b = read_picture(truth);
  for (const std::string& metric : lacking) {
    if (metric == "psnr")
      record[metric] = number(psnr(a, b)[0]);
    else if (metric == "ssim")
      record[metric] = number(ssim(a, b)[0]);
    else
      record[metric] = number(networks_.at(metric).distance(a, b)[0]);
  }
  return true;
}

std::vector<Json> set_scores(const std::vector<std::string>& metrics, const std::vector<PictureSet>& sets,
                             const std::vector<fs::path>& truth, const evaluate::RunFolder& folder,
                             const fs::path& weights, torch::Device device,
                             const std::function<void(std::size_t)>& progress) {
  std::vector<std::string> wanted;
  for (const std::string& metric : evaluate::set_metrics())
    if (std::find(metrics.begin(), metrics.end(), metric) != metrics.end()) wanted.push_back(metric);
  std::vector<Json> result;
  if (wanted.empty()) return result;
  std::string common;
  for (const std::string& metric : wanted) common += metric + "\n";
  for (const std::string& name : FeatureNetwork::names())
    for (const fs::path& file :
         find_metric_weights(FeatureNetwork::wanted_weights(name), metric_weight_folders(weights)).files)
      common += str(file.filename().string(), " ", fs::file_size(file), "\n");
  for (const fs::path& file : truth) common += file_fingerprint(file) + "\n";

  SetScorer scorer(truth, weights, device);
  for (std::size_t i = 0; i < sets.size(); ++i) {
    const PictureSet& set = sets[i];
    Json values = Json::object();
    if (set.pictures.size() < set.wanted || set.pictures.size() < kFewest) {
      const std::string why =
          set.pictures.size() < set.wanted
              ? str("unavailable: ", set.wanted - set.pictures.size(), " pictures are not restored yet")
              : str("unavailable: a set needs at least ", kFewest, " pictures");
      for (const std::string& metric : wanted) values[metric] = why;
    } else {
      std::string key = common;
      for (const std::string& one : set.fingerprints) key += one + "\n";
      key = text_fingerprint(key);
      const fs::path file = folder.root() / set.task / (set.method + ".sets.json");
      if (const auto kept = kept_scores(file, key)) {
        values = *kept;
      } else {
        values = scorer.values(wanted, set.pictures);
        write_text(file, Json({{"key", key}, {"values", values}}).dump(1) + "\n");
      }
    }
    Json entry = {{"task", set.task}, {"method", set.method}, {"pictures", set.pictures.size()}};
    entry.update(values);
    result.push_back(std::move(entry));
    progress(i + 1);
  }
  return result;
}

}  // namespace dpg::cli
