#include "dpg/measure/kernel_blur.h"

#include <torch/torch.h>

#include <cmath>
#include <utility>

#include "dpg/core/error.h"
#include "dpg/image/image.h"
#include "dpg/measure/fourier_blur.h"
#include "dpg/measure/padded_blur.h"
#include "dpg/measure/spec.h"

namespace dpg {

std::shared_ptr<const LinearOperator> make_kernel_blur(const ImageShape& shape, const Tensor& kernels,
                                                       Boundary boundary, std::string spec) {
  check(kernels.dim() == 3 && kernels.numel() > 0, "The kernels of \"", spec,
        "\" must be [images, height, width].");
  const Tensor weights = kernels.to(torch::kDouble);
  const Tensor sums = weights.sum({1, 2}, /*keepdim=*/true);
  check((sums > 1e-12 * weights.abs().sum({1, 2}, /*keepdim=*/true)).all().item<bool>(), "A kernel of \"",
        spec, "\" does not sum to a positive number: it cannot be normalised to sum one.");
  const Tensor normalised = weights / sums;
  if (boundary == Boundary::circular) return make_fourier_blur(shape, normalised, std::move(spec));
  return make_padded_blur(shape, normalised, boundary, std::move(spec));
}

void FileKernelOptions::validate() const {
  check(!file.empty(), "kernel needs the name of a kernel image or NPY file.");
}

std::string FileKernelOptions::spec() const {
  return to_text({"kernel", {{"", file.string()}, {"boundary", name(boundary)}}});
}

Tensor read_kernel(const std::filesystem::path& file) {
  const Image image = read_image(file);
  const int colours = image.channels >= 3 ? 3 : 1;
  const bool numbers = file.extension() == ".npy";
  Tensor kernel = torch::zeros({image.height, image.width}, torch::kDouble);
  auto weight = kernel.accessor<double, 2>();
  for (int y = 0; y < image.height; ++y)
    for (int x = 0; x < image.width; ++x)
      for (int c = 0; c < colours; ++c) {
        const double value = image.at(c, y, x);
        weight[y][x] += numbers ? value : (value + 1) / 2;  // a picture's black is -1 and stands for zero
      }
  const double sum = kernel.sum().item<double>();
  check(std::isfinite(sum) && sum > 0, "The kernel ", file.string(),
        " does not sum to a positive number: it cannot be normalised to sum one.");
  return kernel / sum;
}

std::shared_ptr<const LinearOperator> make_file_kernel_blur(const ImageShape& shape,
                                                            const FileKernelOptions& options) {
  options.validate();
  return make_kernel_blur(shape, read_kernel(options.file).unsqueeze(0), options.boundary, options.spec());
}

}  // namespace dpg
