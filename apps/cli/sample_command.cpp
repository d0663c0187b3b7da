// dpg sample: unconditional samples of a prior, as a grid.
#include <cstdio>
#include <filesystem>

#include "command.h"
#include "dpg/core/error.h"
#include "dpg/image/grid.h"
#include "dpg/sample/sample.h"
#include "dpg/tensor/convert.h"
#include "progress.h"
#include "runtime.h"

namespace dpg::cli {
namespace {

struct Options {
  RuntimeOptions runtime;
  SampleOptions sample;
  int count = 16, batch = 4, columns = 0, size = 0;
  std::uint64_t seed = 0;
  std::string output, folder;
};

std::vector<Image> draw_samples(const Options& o, const Prior& prior) {
  std::vector<Image> pictures;
  const int batches = (o.count + o.batch - 1) / o.batch;
  Progress progress("sampling");
  for (int b = 0; b < batches; ++b) {
    std::vector<std::uint32_t> indices;
    for (int i = b * o.batch; i < std::min((b + 1) * o.batch, o.count); ++i) indices.push_back(i);
    const Tensor x = sample(prior, o.sample, Rng(o.seed), indices, [&](const StepRecord& record) {
      progress.update(b * record.total + record.done, batches * record.total);
      return Next::go_on;
    });
    for (Image& picture : to_images(x)) pictures.push_back(std::move(picture));
  }
  return pictures;
}

void run(Options o) {
  check(o.count >= 1, "-n ", o.count, " must be at least 1");
  check(o.batch >= 1, "--batch ", o.batch, " must be at least 1");
  o.sample.height = o.sample.width = o.size;
  const auto prior = load_prior(o.runtime);
  const std::vector<Image> pictures = draw_samples(o, *prior);
  int columns = o.columns;
  if (columns <= 0)
    for (columns = 1; columns * columns < o.count; ++columns) {
    }
  write_image(o.output, make_grid(pictures, columns));
  if (o.folder.empty()) return;
  std::filesystem::create_directories(o.folder);
  for (std::size_t i = 0; i < pictures.size(); ++i) {
    char name[32];
    std::snprintf(name, sizeof name, "%04zu.png", i);
    write_image(std::filesystem::path(o.folder) / name, pictures[i]);
  }
}

}  // namespace

void add_sample_command(CLI::App& app) {
  auto o = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand("sample", "draw unconditional samples of a prior as one picture");
  command->add_option("-n", o->count, "number of samples")->capture_default_str();
  command->add_option("-o,--output", o->output, "the picture")->required();
  command->add_option("--each", o->folder, "also write every sample into this folder");
  command->add_option("--steps", o->sample.steps, "network calls per sample")->capture_default_str();
  command->add_option("--sampler", o->sample.sampler, "ddpm or ddim")->capture_default_str();
  command->add_option("--spacing", o->sample.spacing, "even, power:P, or sections such as 10,15,20")
      ->capture_default_str();
  command->add_option("--variance", o->sample.variance, "ddpm: auto, learned, small or large")
      ->capture_default_str();
  command->add_option("--eta", o->sample.eta, "ddim: 0 deterministic to 1")->capture_default_str();
  command
      ->add_option("--second-order", o->sample.second_order,
                   "0 first-order steps to 1 second-order ones (DPM-Solver++ 2M), at no cost")
      ->capture_default_str();
  command->add_option("--seed", o->seed, "seed")->capture_default_str();
  command->add_option("--batch", o->batch, "samples drawn at once; does not change them")
      ->capture_default_str();
  command->add_option("--columns", o->columns, "columns of the grid");
  command->add_option("--size", o->size, "side in pixels (default: the prior's)");
  add_runtime_options(*command, o->runtime);
  command->callback([o] { run(*o); });
}

}  // namespace dpg::cli
