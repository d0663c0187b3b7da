// dpg degrade IN --op OPERATOR --noise NOISE -o OUT: makes a measurement of a clean picture, or of each in a
// folder.
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "command.h"
#include "dpg/core/error.h"
#include "dpg/image/image.h"
#include "dpg/image/transform.h"
#include "dpg/measure/catalog.h"
#include "dpg/measure/noise.h"
#include "dpg/measure/sidecar.h"
#include "dpg/measure/view.h"
#include "dpg/tensor/convert.h"
#include "pictures.h"

namespace dpg::cli {
namespace {

namespace fs = std::filesystem;

struct DegradeOptions {
  fs::path in, out;
  std::string operator_spec, noise_spec = "none";
  std::uint64_t seed = 0;
  int size = 0;  // 0: the picture's own
};

void degrade_one(const DegradeOptions& options, const fs::path& in, const fs::path& out,
                 std::uint32_t image) {
  Image picture = to_rgb(read_image(in));
  if (options.size > 0) picture = fit(picture, options.size);
  const ImageShape shape = {picture.channels, picture.height, picture.width};
  const std::vector<std::uint32_t> images = {image};
  const auto a = make_operator(options.operator_spec, {shape, options.seed, images});
  const Measurement m = measure(a, make_noise(options.noise_spec), to_tensor(picture), options.seed, images);

  write_sidecar(fs::path(out).replace_extension(".json"),
                {a->spec(), m.noise->spec(), options.seed, images, shape, in.string(), m.y});
  const View view = view_of(m.y);
  write_image(out, to_image(view.pictures));
  std::printf("%s: %s, %s (level %.4g)%s%s\n", out.string().c_str(), a->spec().c_str(),
              m.noise->spec().c_str(), noise_level(m), view.note.empty() ? "" : "; ", view.note.c_str());
}

void degrade(const DegradeOptions& options) {
  check(fs::exists(options.in), "there is no ", options.in.string(),
        "; give a picture or a folder of pictures");
  if (!fs::is_directory(options.in)) {
    const fs::path extension = options.out.extension();
    check(!extension.empty() && extension != ".npy" && extension != ".json",
          "the measurement's picture cannot be called ", options.out.string(),
          "; name it like y.png (y.npy and y.json are written beside it)");
    return degrade_one(options, options.in, options.out, 0);
  }
  const std::vector<fs::path> files = pictures_in(options.in);
  fs::create_directories(options.out);
  for (std::size_t i = 0; i < files.size(); ++i)
    degrade_one(options, files[i], options.out / files[i].filename().replace_extension(".png"),
                static_cast<std::uint32_t>(i));
}

}  // namespace

void add_degrade_command(CLI::App& app) {
  auto* command =
      app.add_subcommand("degrade", "Make a measurement of a clean picture: y.png, y.npy and y.json");
  auto options = std::make_shared<DegradeOptions>();
  command->add_option("IN", options->in, "A picture, or a folder of them")->required();
  command->add_option("--op", options->operator_spec, "Operator, as in sr:4 (see \"dpg operators\")")
      ->required();
  command
      ->add_option("--noise", options->noise_spec, "gaussian:S, poisson:R, salt-pepper:A, speckle:S or none")
      ->capture_default_str();
  command->add_option("--seed", options->seed, "Of the noise, and of masks and trajectories")
      ->capture_default_str();
  command->add_option("--size", options->size, "Resize and crop to a square of so many pixels")
      ->check(CLI::Range(1, 16384));
  command->add_option("-o,--out", options->out, "Picture to write (a folder when IN is one)")->required();
  command->callback([options] { degrade(*options); });
}

}  // namespace dpg::cli
