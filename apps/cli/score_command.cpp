// dpg score PICTURES --truth TRUTH: how near pictures are to the truth, one by one and as sets.
#include <cmath>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "command.h"
#include "dpg/core/error.h"
#include "dpg/image/transform.h"
#include "dpg/metrics/set_metrics.h"
#include "dpg/tensor/convert.h"
#include "judge.h"
#include "pictures.h"

namespace dpg::cli {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

struct Options {
  fs::path pictures, truth, weights;
  bool only_sets = false, json = false;
};

// JSON knows neither infinity (the PSNR of a perfect picture) nor NaN.
Json number(double value) {
  if (std::isfinite(value)) return value;
  return std::isinf(value) ? Json("inf") : Json();
}

Json as_json(const Scores& scores) {
  return {{"psnr", number(scores.psnr)},
          {"ssim", number(scores.ssim)},
          {"lpips_squeeze", scores.lpips ? number(*scores.lpips) : Json()}};
}

void print(const std::string& name, const Scores& scores) {
  std::printf("%s: PSNR %.2f dB, SSIM %.4f", name.c_str(), scores.psnr, scores.ssim);
  if (scores.lpips) std::printf(", LPIPS %.4f", *scores.lpips);
  std::printf("\n");
}

// Every picture by itself, then their mean.
Json score_pictures(const Options& o, const std::vector<fs::path>& files) {
  const Judge judge(o.truth, o.weights, torch::kCPU);
  Json list = Json::array();
  Scores mean;
  if (judge.lpips_missing().empty()) mean.lpips = 0;
  const double share = 1 / static_cast<double>(files.size());
  for (const fs::path& file : files) {
    const Tensor picture = to_tensor(to_rgb(read_image(file)));
    const Scores one = judge.scores(picture, judge.truth_of(file, {3, picture.size(2), picture.size(3)}));
    mean.psnr += share * one.psnr, mean.ssim += share * one.ssim;
    if (one.lpips) *mean.lpips += share * *one.lpips;
    if (!o.json) print(file.string(), one);
    list.push_back({{"file", file.string()}});
    list.back().update(as_json(one));
  }
  if (!o.json && files.size() > 1) print("mean", mean);
  if (!judge.lpips_missing().empty()) std::fprintf(stderr, "dpg: %s\n", judge.lpips_missing().c_str());
  return {{"pictures", list}, {"mean", as_json(mean)}};
}

void print(const SetDistance& distance) {
  if (!distance.value) {
    std::printf("%s unavailable: %s\n", distance.name.c_str(), distance.note.c_str());
    return;
  }
  std::printf("%s %.4g", distance.name.c_str(), *distance.value);
  if (distance.standard_error) std::printf(" +- %.2g (standard error)", *distance.standard_error);
  std::printf("%s\n", distance.note.empty() ? "" : (" (" + distance.note + ")").c_str());
}

// All of one folder against all of the other. `side`: square pictures are brought to this one first, as the
// truth of a single picture is; 0: none.
SetMetrics::Features features_of(const SetMetrics& metrics, const std::vector<fs::path>& files, int side) {
  SetMetrics::Features features;
  for (const fs::path& file : files) {
    Image picture = to_rgb(read_image(file));
    if (side > 0 && (picture.height != side || picture.width != side)) picture = fit(picture, side);
    metrics.add(features, to_tensor(picture));
  }
  return features;
}

Json score_sets(const Options& o, const std::vector<fs::path>& files, const std::vector<fs::path>& truth) {
  const SetMetrics metrics(metric_weight_folders(o.weights));
  const Image first = read_image(files[0]);
  const auto pictures = features_of(metrics, files, 0);
  const auto true_pictures = features_of(metrics, truth, first.height == first.width ? first.height : 0);
  if (!o.json) std::printf("%zu pictures as a set, against %zu\n", files.size(), truth.size());
  Json sets = {{"pictures", files.size()}, {"truth", truth.size()}};
  for (const SetDistance& distance : metrics.distances(pictures, true_pictures)) {
    if (!o.json) print(distance);
    sets[distance.name] = distance.value ? Json(*distance.value) : Json("unavailable: " + distance.note);
    if (distance.standard_error) sets[distance.name + " standard error"] = *distance.standard_error;
    if (distance.value && !distance.note.empty()) sets[distance.name + " note"] = distance.note;
  }
  return sets;
}

void score(const Options& o) {
  check(fs::exists(o.pictures), "there is no ", o.pictures.string(),
        "; give a picture or a folder of pictures");
  const bool folders = fs::is_directory(o.pictures) && fs::is_directory(o.truth);
  check(folders || !o.only_sets, "--sets compares two folders; give a folder of pictures and --truth FOLDER");
  const std::vector<fs::path> files =
      fs::is_directory(o.pictures) ? pictures_in(o.pictures) : std::vector<fs::path>{o.pictures};
  const std::vector<fs::path> truth = folders ? pictures_in(o.truth) : std::vector<fs::path>{};
  Json json = Json::object();
  if (!o.only_sets) json = score_pictures(o, files);
  if (o.only_sets || (files.size() > 1 && truth.size() > 1)) json["sets"] = score_sets(o, files, truth);
  if (o.json) std::printf("%s\n", json.dump(2).c_str());
}

}  // namespace

void add_score_command(CLI::App& app) {
  auto o = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand(
      "score", "PSNR, SSIM and LPIPS of pictures whose truth is known; FID, KID and others of folders");
  command->add_option("PICTURES", o->pictures, "a picture, or a folder of them")->required();
  command->add_option("--truth", o->truth, "the true picture, or a folder with one of the same name for each")
      ->required();
  command->add_flag("--sets", o->only_sets,
                    "only compare the two folders as sets; their pictures need not have the same names");
  command->add_option("--weights", o->weights,
                      "folder with the weights of LPIPS and of the feature networks");
  command->add_flag("--json", o->json, "for programs");
  command->callback([o] { score(*o); });
}

}  // namespace dpg::cli
