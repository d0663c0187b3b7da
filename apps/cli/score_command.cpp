// dpg score PICTURE --truth TRUTH: how near pictures are to the truth.
#include <cstdio>
#include <memory>

#include "command.h"
#include "dpg/core/error.h"
#include "dpg/image/transform.h"
#include "dpg/tensor/convert.h"
#include "judge.h"
#include "pictures.h"

namespace dpg::cli {
namespace {

namespace fs = std::filesystem;

struct Options {
  fs::path pictures, truth, weights;
};

void score(const Options& o) {
  check(fs::exists(o.pictures), "there is no ", o.pictures.string(),
        "; give a picture or a folder of pictures");
  const std::vector<fs::path> files =
      fs::is_directory(o.pictures) ? pictures_in(o.pictures) : std::vector<fs::path>{o.pictures};
  const Judge judge(o.truth, o.weights, torch::kCPU);
  Scores sum;
  double lpips = 0;
  const auto print = [&](const std::string& name, double psnr, double ssim, double distance) {
    std::printf("%s: PSNR %.2f dB, SSIM %.4f", name.c_str(), psnr, ssim);
    if (judge.lpips_missing().empty()) std::printf(", LPIPS %.4f", distance);
    std::printf("\n");
  };
  for (const fs::path& file : files) {
    const Tensor picture = to_tensor(to_rgb(read_image(file)));
    const Scores one = judge.scores(picture, judge.truth_of(file, {3, picture.size(2), picture.size(3)}));
    print(file.string(), one.psnr, one.ssim, one.lpips.value_or(0));
    sum.psnr += one.psnr, sum.ssim += one.ssim, lpips += one.lpips.value_or(0);
  }
  const double n = static_cast<double>(files.size());
  if (files.size() > 1) print("mean", sum.psnr / n, sum.ssim / n, lpips / n);
  if (!judge.lpips_missing().empty()) std::fprintf(stderr, "dpg: %s\n", judge.lpips_missing().c_str());
}

}  // namespace

void add_score_command(CLI::App& app) {
  auto o = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand("score", "PSNR, SSIM and LPIPS of pictures whose truth is known");
  command->add_option("PICTURES", o->pictures, "a picture, or a folder of them")->required();
  command->add_option("--truth", o->truth, "the true picture, or a folder with one of the same name for each")
      ->required();
  command->add_option("--weights", o->weights, "folder with the weights of LPIPS");
  command->callback([o] { score(*o); });
}

}  // namespace dpg::cli
