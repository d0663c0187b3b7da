// How near a restored picture is to the truth, where that is known.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "dpg/measure/operator.h"
#include "dpg/metrics/lpips.h"

namespace dpg::cli {

struct Scores {
  double psnr = 0, ssim = 0;
  std::optional<double> lpips;  // squeeze; none where its weights are not found
};

class Judge {
 public:
  // `truth`: a picture, or a folder with a picture of the same name for each. `weights`: see
  // metric_weight_folders.
  Judge(std::filesystem::path truth, const std::filesystem::path& weights, torch::Device device);

  // The true picture of this input.
  Tensor truth_of(const std::filesystem::path& input, const ImageShape& shape) const;
  // picture: [1, C, H, W].
  Scores scores(const Tensor& picture, const Tensor& truth) const;
  // Why there is no LPIPS; empty when there is.
  const std::string& lpips_missing() const { return missing_; }

 private:
  std::filesystem::path truth_;
  std::optional<Lpips> lpips_;
  std::string missing_;
};

}  // namespace dpg::cli
