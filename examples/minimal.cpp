// The library end to end: make a prior, degrade a picture, restore it, and measure how well that went.
//   minimal PRIOR OUT.png [IN]      Without IN the prior first makes up a picture of its own.
#include <torch/torch.h>

#include <cstdint>
#include <cstdio>
#include <exception>
#include <vector>

#include "dpg/core/rng.h"
#include "dpg/image/grid.h"
#include "dpg/image/transform.h"
#include "dpg/measure/downsample.h"
#include "dpg/measure/noise.h"
#include "dpg/metrics/fidelity.h"
#include "dpg/prior/prior.h"
#include "dpg/sample/sample.h"
#include "dpg/solve/dpg.h"
#include "dpg/tensor/convert.h"

namespace {

void run(const char* prior_file, const char* out_file, const char* in_file) {
  const auto prior = dpg::load_prior(prior_file);
  const dpg::Rng rng(/*seed=*/1);  // the same numbers on any machine, in any batch
  const std::vector<std::uint32_t> images = {0};
  const int size = prior->image_size();

  torch::Tensor clean;  // [1, 3, H, W], values in [-1, 1]
  if (in_file) {
    clean = dpg::to_tensor(dpg::fit(dpg::to_rgb(dpg::read_image(in_file)), size));
  } else {
    dpg::SampleOptions options;
    options.steps = 10;
    clean = dpg::sample(*prior, options, rng, images).clamp(-1, 1);
  }

  // y = A(x) + n: a quarter of the size, with noise of 0.05 on the [-1, 1] range.
  const auto A = dpg::make_downsample({3, size, size}, {4});
  const dpg::Measurement measurement =
      dpg::measure(A, dpg::make_noise("gaussian:0.05"), clean, /*seed=*/2, images);

  dpg::DpgOptions options;  // no strength: it is found from the residual and the noise level
  options.sampler.steps = 20;
  const dpg::Result result =
      dpg::Dpg(options).solve(measurement, *prior, rng, images, [](const dpg::StepRecord& step) {
        if (step.done % 5 == 0)
          std::printf("step %d: residual %.2f\n", step.done, step.residual.item<double>());
        return dpg::Next::go_on;
      });

  std::printf("residual %.2f (noise floor %.2f), PSNR %.2f dB\n", result.history.residual_of(0).back(),
              dpg::noise_floors(measurement)[0], dpg::psnr(result.image, clean)[0]);
  const std::vector<dpg::Image> row = {dpg::resize(dpg::to_image(measurement.y), size, size),
                                       dpg::to_image(result.image), dpg::to_image(clean)};
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
