// dpg estimate-noise FILE...: the Gaussian noise level of a picture, for users who don't know it.
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "command.h"
#include "dpg/image/image.h"
#include "dpg/image/transform.h"
#include "dpg/measure/noise.h"
#include "dpg/tensor/convert.h"

namespace dpg::cli {
namespace {

// Grey stays grey: repeating a channel would not add information. Alpha is no light.
Image without_alpha(const Image& image) {
  return image.channels <= 2 ? to_grey(image) : to_rgb(image);
}

void estimate(const std::vector<std::string>& files) {
  for (const std::string& file : files) {
    const double sigma = estimate_noise(to_tensor(without_alpha(read_image(file)))).item().toDouble();
    std::printf("%s: gaussian:%.4f (%.1f of 255)\n", file.c_str(), sigma, sigma * 127.5);
  }
}

}  // namespace

void add_estimate_noise_command(CLI::App& app) {
  auto* command = app.add_subcommand("estimate-noise", "Estimate the Gaussian noise level of pictures");
  auto files = std::make_shared<std::vector<std::string>>();
  command->add_option("FILE", *files, "Pictures")->required();
  command->callback([files] { estimate(*files); });
}

}  // namespace dpg::cli
