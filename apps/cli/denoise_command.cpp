// dpg denoise: adds the noise of time step t to pictures and shows what the prior makes of them in one call.
// The quickest look at whether a checkpoint, its architecture and its precision are right.
#include <torch/torch.h>

#include <cmath>
#include <cstdio>

#include "command.h"
#include "dpg/core/error.h"
#include "dpg/image/grid.h"
#include "dpg/image/transform.h"
#include "dpg/tensor/convert.h"
#include "runtime.h"

namespace dpg::cli {
namespace {

struct Options {
  RuntimeOptions runtime;
  std::vector<std::string> inputs;
  std::string output;
  int t = 300;
  std::uint64_t seed = 0;
};

// Peak is 2, the width of [-1, 1].
double psnr(const Tensor& a, const Tensor& b) {
  return 10 * std::log10(4.0 / (a - b).square().mean().item<double>());
}

void run(const Options& o) {
  const auto prior = load_prior(o.runtime);
  check(o.t >= 0 && o.t < prior->schedule().steps(), "--t ", o.t, " is outside 0 to ",
        prior->schedule().steps() - 1);
  const double abar = prior->schedule().alpha_bar()[static_cast<std::size_t>(o.t)];
  std::vector<Image> noisy_row, denoised_row, clean_row;
  for (std::size_t i = 0; i < o.inputs.size(); ++i) {
    const Image clean_image = fit(to_rgb(read_image(o.inputs[i])), prior->image_size());
    const Tensor clean = to_tensor(clean_image).to(prior->device());
    const std::uint32_t index[] = {static_cast<std::uint32_t>(i)};
    const Tensor noise = normal_noise(Rng(o.seed), index, kBeforeFirstStep, kMeasurementNoise,
                                      clean.sizes().slice(1), prior->device());
    const Tensor x_t = std::sqrt(abar) * clean + std::sqrt(1 - abar) * noise;
    const Tensor x0 = prior->denoise(x_t, o.t, Track::nothing).x0;
    std::printf("%s: noisy %.2f dB, denoised %.2f dB\n", o.inputs[i].c_str(),
                psnr(x_t / std::sqrt(abar), clean), psnr(x0, clean));
    noisy_row.push_back(to_image((x_t / std::sqrt(abar)).clamp(-1, 1)));
    denoised_row.push_back(to_image(x0));
    clean_row.push_back(clean_image);
  }
  std::vector<Image> all;
  for (auto* row : {&noisy_row, &denoised_row, &clean_row}) all.insert(all.end(), row->begin(), row->end());
  write_image(o.output, make_grid(all, static_cast<int>(o.inputs.size())));
}

}  // namespace

void add_denoise_command(CLI::App& app) {
  auto o = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand(
      "denoise", "add the noise of step t to pictures and denoise them once: rows noisy, denoised, clean");
  command->add_option("inputs", o->inputs, "pictures")->required();
  command->add_option("-o,--output", o->output, "the sheet")->required();
  command->add_option("--t", o->t, "time step, 0 (clean) to 999 (noise)")->capture_default_str();
  command->add_option("--seed", o->seed, "seed of the noise")->capture_default_str();
  add_runtime_options(*command, o->runtime);
  command->callback([o] { run(*o); });
}

}  // namespace dpg::cli
