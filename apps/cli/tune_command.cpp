// dpg tune: a method over a grid of settings on pictures whose truth is known, as a table.
#include <torch/torch.h>

#include <cmath>
#include <cstdio>
#include <memory>

#include "command.h"
#include "dpg/core/error.h"
#include "dpg/core/file.h"
#include "dpg/image/transform.h"
#include "dpg/measure/catalog.h"
#include "dpg/solve/catalog.h"
#include "dpg/tensor/convert.h"
#include "interrupt.h"
#include "judge.h"
#include "pictures.h"
#include "restoration.h"
#include "runtime.h"

namespace dpg::cli {
namespace {

namespace fs = std::filesystem;

struct Options {
  RestorePlan plan;
  RuntimeOptions runtime;
  fs::path images, weights, json;
  std::string op, noise = "gaussian:0.05";
  std::uint64_t op_seed = 0;
  int count = 16, first = 0, size = 0;
  std::vector<std::string> set, sweep;
};

// "strength=30,45" -> {"strength=30", "strength=45"}
std::vector<std::string> values_of(const std::string& sweep) {
  const std::size_t equals = sweep.find('=');
  check(equals != std::string::npos, "--sweep ", sweep, " must be written as NAME=VALUE,VALUE,...");
  std::vector<std::string> values;
  std::string rest = sweep.substr(equals + 1);
  for (std::size_t at = 0; at <= rest.size();) {
    const std::size_t comma = std::min(rest.find(',', at), rest.size());
    values.push_back(sweep.substr(0, equals + 1) + rest.substr(at, comma - at));
    at = comma + 1;
  }
  return values;
}

// Every combination of the sweeps' values, the last one changing fastest.
std::vector<std::vector<std::string>> grid_of(const std::vector<std::string>& sweeps) {
  std::vector<std::vector<std::string>> grid = {{}};
  for (const std::string& sweep : sweeps) {
    std::vector<std::vector<std::string>> longer;
    for (const auto& combination : grid)
      for (const std::string& value : values_of(sweep)) {
        longer.push_back(combination);
        longer.back().push_back(value);
      }
    grid = std::move(longer);
  }
  return grid;
}

struct Picture {
  Problem problem;
  Tensor truth;
};

std::vector<Picture> degraded(const Options& o) {
  const std::vector<fs::path> files = pictures_in(o.images);
  check(o.first >= 0 && o.first + o.count <= static_cast<int>(files.size()), "pictures ", o.first, " to ",
        o.first + o.count - 1, " were asked of ", o.images.string(), ", which holds ", files.size());
  std::vector<Picture> pictures;
  for (int i = 0; i < o.count; ++i) {
    const fs::path& file = files[static_cast<std::size_t>(o.first + i)];
    Image image = to_rgb(read_image(file));
    if (o.size > 0) image = fit(image, o.size);
    const ImageShape shape{image.channels, image.height, image.width};
    const std::vector<std::uint32_t> number = {static_cast<std::uint32_t>(o.first + i)};
    const auto A = make_operator(o.op, {shape, o.op_seed, number});
    const Tensor truth = to_tensor(image);
    const Measurement m = measure(A, make_noise(o.noise), truth, o.op_seed, number);
    pictures.push_back({{file, {}, A->spec(), m.noise->spec(), o.op_seed, number[0], shape, m.y}, truth});
  }
  return pictures;
}

// Means over the pictures.
Json try_settings(const Options& o, const NetworkPrior& prior, const std::vector<Picture>& pictures,
                  const Judge& judge) {
  std::vector<Problem> problems;
  for (const Picture& picture : pictures) problems.push_back(picture.problem);
  double psnr = 0, ssim = 0, lpips = 0, ratio = 0, seconds = 0;
  int calls = 0;
  std::size_t done = 0;
  bool has_lpips = true, has_floor = true;  // without noise there is no floor
  for (const auto& batch : batches_of(problems, o.plan.batch)) {
    const auto restored = restore_batch(o.plan, prior, batch);
    if (Interrupt::asked()) return {};
    for (const RestoredPicture& picture : restored) {
      const Scores scores = judge.scores(picture.samples.slice(0, 0, 1), pictures[done++].truth);
      psnr += scores.psnr, ssim += scores.ssim, lpips += scores.lpips.value_or(0);
      has_lpips = has_lpips && scores.lpips.has_value();
      has_floor = has_floor && picture.noise_floor > 0;
      ratio += picture.residuals[0] / picture.noise_floor, seconds += picture.seconds;
      calls = picture.cost.network_calls;
    }
  }
  const double n = static_cast<double>(done);
  return {{"psnr", psnr / n},
          {"ssim", ssim / n},
          {"lpips_squeeze", has_lpips ? Json(lpips / n) : Json("unavailable")},
          {"residual_over_floor", has_floor ? Json(ratio / n) : Json(nullptr)},
          {"seconds", seconds / n},
          {"network_calls", calls}};
}

// A number as printf writes it, or "-" where there is none.
std::string or_dash(const char* format, const Json& value) {
  if (!value.is_number()) return "-";
  char text[32];
  std::snprintf(text, sizeof text, format, value.get<double>());
  return text;
}

void tune(Options o) {
  if (!o.plan.preset.empty()) o.plan.method = load_preset(o.plan.preset).method;
  for (const std::string& assignment : o.set) set_from_text(o.plan.settings, assignment);
  const std::vector<Picture> pictures = degraded(o);
  const auto grid = grid_of(o.sweep);
  for (const auto& combination : grid) {
    Json settings = o.plan.settings;
    for (const std::string& assignment : combination) set_from_text(settings, assignment);
    make_solver(o.plan.method, settings);  // wrong settings are told before anything runs
  }
  const auto prior = load_prior(o.runtime);
  if (o.plan.batch == 0) o.plan.batch = prior->device().is_cuda() ? 16 : 1;
  const Judge judge(o.images, o.weights, prior->device());
  if (!judge.lpips_missing().empty()) std::fprintf(stderr, "dpg: %s\n", judge.lpips_missing().c_str());

  const Interrupt interrupt;
  const RestorePlan base = o.plan;
  Json results = Json::array();
  std::printf("%-48s %8s %8s %8s %9s %9s\n", str(o.plan.method, ", ", o.op, ", ", o.noise).c_str(), "PSNR",
              "SSIM", "LPIPS", "resid/fl", "s/picture");
  for (const auto& combination : grid) {
    std::string label;
    for (const std::string& assignment : combination) {
      set_from_text(o.plan.settings, assignment);
      label += (label.empty() ? "" : " ") + assignment;
    }
    Json result = try_settings(o, *prior, pictures, judge);
    if (Interrupt::asked()) break;
    std::printf("%-48s %8.2f %8.4f %8s %9s %9.2f\n", label.c_str(), result["psnr"].get<double>(),
                result["ssim"].get<double>(), or_dash("%.4f", result["lpips_squeeze"]).c_str(),
                or_dash("%.3f", result["residual_over_floor"]).c_str(), result["seconds"].get<double>());
    std::fflush(stdout);
    result["settings"] = settings_for(o.plan, pictures[0].problem.shape);
    results.push_back(result);
    o.plan = base;
  }
  if (o.json.empty()) return;
  write_text(o.json, Json({{"method", o.plan.method},
                           {"operator", o.op},
                           {"noise", o.noise},
                           {"pictures", o.count},
                           {"first", o.first},
                           {"seed", o.plan.seed},
                           {"results", results}})
                             .dump(2) +
                         "\n");
}

}  // namespace

void add_tune_command(CLI::App& app) {
  auto o = std::make_shared<Options>();
  o->plan.batch = 0;
  CLI::App* c = app.add_subcommand("tune", "try a method's settings on pictures whose truth is known");
  c->add_option("--images", o->images, "folder of clean pictures")->required();
  c->add_option("--count", o->count, "how many of them")->check(CLI::Range(1, 100000))->capture_default_str();
  c->add_option("--first", o->first, "the first one's place in the folder")->capture_default_str();
  c->add_option("--size", o->size, "resize and crop to a square of so many pixels")
      ->check(CLI::Range(1, 16384));
  c->add_option("--op", o->op, "operator (see \"dpg operators\")")->required();
  c->add_option("--noise", o->noise, "noise")->capture_default_str();
  c->add_option("--op-seed", o->op_seed, "of the noise, and of masks and trajectories")
      ->capture_default_str();
  c->add_option("--method", o->plan.method, "see \"dpg methods\"")->capture_default_str();
  c->add_option("--preset", o->plan.preset, "settings to start from");
  c->add_option("--set", o->set, "a setting for all, NAME=VALUE");
  c->add_option("--sweep", o->sweep, "settings to try, NAME=VALUE,VALUE,...; several make a grid");
  c->add_option("--seed", o->plan.seed, "seed")->capture_default_str();
  c->add_option("--batch", o->plan.batch, "pictures restored at once (default: 1, on a GPU 16)");
  c->add_option("--weights", o->weights, "folder with the weights of LPIPS");
  c->add_option("--json-out", o->json, "also write the results into this file");
  add_runtime_options(*c, o->runtime);
  c->callback([o] { tune(*o); });
}

}  // namespace dpg::cli
