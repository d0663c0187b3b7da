// The library end to end: load a prior, put noise on a picture, take it off again, and measure how well that
// went.
//   minimal PRIOR OUT.png [IN]      Without IN the prior first makes up a picture of its own.
#include <torch/torch.h>

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <vector>

#include "dpg/core/rng.h"
#include "dpg/image/grid.h"
#include "dpg/image/transform.h"
#include "dpg/prior/prior.h"
#include "dpg/sample/sample.h"
#include "dpg/tensor/convert.h"

namespace {

double psnr(const torch::Tensor& a, const torch::Tensor& b) {
  return 10 * std::log10(4 / (a - b).square().mean().item<double>());  // pictures span [-1, 1]: the peak is 2
}

void run(const char* prior_file, const char* out_file, const char* in_file) {
  const auto prior = dpg::load_prior(prior_file);
  const dpg::Rng rng(/*seed=*/1);  // the same numbers on any machine, in any batch
  const std::vector<std::uint32_t> images = {0};

  torch::Tensor clean;  // [1, 3, H, W], values in [-1, 1]
  if (in_file) {
    clean = dpg::to_tensor(dpg::fit(dpg::to_rgb(dpg::read_image(in_file)), prior->image_size()));
  } else {
    dpg::SampleOptions options;
    options.steps = 10;
    clean = dpg::sample(*prior, options, rng, images).clamp(-1, 1);
  }

  // x_t = sqrt(abar) x0 + sqrt(1 - abar) eps: at t = 300 about as much noise as picture.
  const int t = 300;
  const double abar = prior->schedule().alpha_bar()[t];
  const auto eps = dpg::normal_noise(rng, images, /*step=*/t, dpg::kSamplerNoise, clean.sizes().slice(1));
  const auto noisy = std::sqrt(abar) * clean + std::sqrt(1 - abar) * eps;

  const dpg::Denoised denoised = prior->denoise(noisy, t, dpg::Track::gradient);
  // J^T v: how a wish in the space of clean pictures (here: be closer to `clean`) moves the noisy one.
  const torch::Tensor direction = denoised.pull_back(clean - denoised.x0);

  std::printf("noisy %.1f dB, denoised %.1f dB, |J^T v| = %.3f\n", psnr(noisy / std::sqrt(abar), clean),
              psnr(denoised.x0, clean), direction.norm().item<double>());
  const std::vector<dpg::Image> row = {dpg::to_image(noisy), dpg::to_image(denoised.x0),
                                       dpg::to_image(clean)};
  dpg::write_image(out_file, dpg::side_by_side(row));
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3 || argc > 4) {
    std::fprintf(stderr, "usage: minimal PRIOR OUT.png [IN]\n");
    return 2;
  }
  try {
    run(argv[1], argv[2], argc == 4 ? argv[3] : nullptr);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "minimal: %s\n", error.what());
    return 1;
  }
  return 0;
}
