// The Gaussian noise of a single picture. Fine detail and noise look alike, so the noise is read where the
// picture has little detail:
//   1. A second-difference mask in both directions (Immerkaer, Fast noise variance estimation, 1996) removes
//   all that is
//      locally a plane; white noise of deviation sigma leaves it with deviation 6 sigma.
//   2. Of all blocks, the quietest tenth is kept, judged by the gradient of a smoothed copy: smoothing takes
//   most of the
//      noise out of that choice, so that choosing does not prefer blocks whose noise happens to be low.
//   3. There the deviation is taken robustly, from the median of the magnitudes.
#include <torch/torch.h>

#include "dpg/core/error.h"
#include "dpg/measure/noise.h"

namespace dpg {
namespace {

constexpr std::int64_t kBlock = 16;
constexpr double kQuietPart = 0.1;
constexpr double kMedianOfMagnitude = 0.6744897501960817;  // of a standard normal

Tensor second_difference(const Tensor& x, std::int64_t dimension) {
  return x.slice(dimension, 2) - 2 * x.slice(dimension, 1, -1) + x.slice(dimension, 0, -2);
}

// Mean gradient magnitude of a smoothed copy in each block of the inner picture, [blocks].
Tensor activity(const Tensor& picture, std::int64_t block) {
  const Tensor smooth = torch::avg_pool2d(torch::reflection_pad2d(picture, {2, 2, 2, 2}), 5, 1);
  const Tensor inner = smooth.slice(2, 1, -1).slice(3, 1, -1);
  const Tensor down = smooth.slice(2, 2).slice(3, 1, -1) - smooth.slice(2, 0, -2).slice(3, 1, -1);
  const Tensor across = smooth.slice(3, 2).slice(2, 1, -1) - smooth.slice(3, 0, -2).slice(2, 1, -1);
  // A clipped block has lost its noise: nothing there may count.
  const Tensor clipped = (inner.abs() > 0.97).to(torch::kFloat64);
  return torch::avg_pool2d((down.square() + across.square()).mean(1, true) + clipped.amax(1, true), block)
      .flatten();
}

double sigma_of(const Tensor& picture) {  // [1, C, H, W]
  const std::int64_t block = std::min({kBlock, picture.size(2) - 2, picture.size(3) - 2});
  const Tensor differences =
      second_difference(second_difference(picture, 2), 3) / 6;  // unit gain for white noise
  const Tensor quiet = activity(picture, block);
  const std::int64_t keep =
      std::max<std::int64_t>(1, static_cast<std::int64_t>(kQuietPart * static_cast<double>(quiet.numel())));
  const Tensor chosen = std::get<1>(quiet.topk(keep, 0, /*largest=*/false));
  // [C * block * block, blocks]: the differences of each block in one column, in the order of avg_pool2d.
  const Tensor columns = torch::im2col(differences, {block, block}, {1, 1}, {0, 0}, {block, block})[0];
  return columns.index_select(1, chosen).abs().median().item<double>() / kMedianOfMagnitude;
}

}  // namespace

Tensor estimate_noise(const Tensor& image) {
  check(image.dim() == 4 && image.size(2) >= 8 && image.size(3) >= 8,
        "the noise can be estimated on pictures of at least 8 x 8 pixels only; give its level, as in "
        "gaussian:0.05");
  const Tensor pictures = image.detach().to(torch::kCPU, torch::kFloat64);
  Tensor sigma = torch::empty({image.size(0)}, torch::kFloat32);
  for (std::int64_t i = 0; i < image.size(0); ++i) sigma[i] = sigma_of(pictures.slice(0, i, i + 1));
  return sigma;
}

}  // namespace dpg
