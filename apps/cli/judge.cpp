#include "judge.h"

#include <torch/torch.h>

#include "dpg/core/error.h"
#include "dpg/image/transform.h"
#include "dpg/metrics/fidelity.h"
#include "dpg/tensor/convert.h"
#include "pictures.h"

namespace dpg::cli {

namespace fs = std::filesystem;

Judge::Judge(fs::path truth, const fs::path& weights, torch::Device device) : truth_(std::move(truth)) {
  check(fs::exists(truth_), "there is no ", truth_.string(),
        "; --truth is a picture or a folder of pictures");
  const auto folders = metric_weight_folders(weights);
  const FoundWeights found = find_metric_weights(Lpips::wanted_weights("squeeze"), folders);
  if (found)
    lpips_ = Lpips::load("squeeze", folders).to(device);
  else
    missing_ = found.missing;
}

Tensor Judge::truth_of(const fs::path& input, const ImageShape& shape) const {
  fs::path file = truth_;
  if (fs::is_directory(truth_)) {
    file.clear();
    for (const fs::path& candidate : pictures_in(truth_))
      if (candidate.stem() == input.stem()) file = candidate;
    check(!file.empty(), "the folder ", truth_.string(), " holds no picture called ", input.stem().string(),
          ", the truth of ", input.string());
  }
  Image picture = to_rgb(read_image(file));
  if (picture.height != shape.height || picture.width != shape.width) {
    check(shape.height == shape.width, "the truth ", file.string(), " is ", picture.width, "x",
          picture.height, " and the restored picture ", shape.width, "x", shape.height);
    picture = fit(picture, static_cast<int>(shape.height));  // as "dpg degrade --size" does
  }
  return to_tensor(picture);
}

Scores Judge::scores(const Tensor& picture, const Tensor& truth) const {
  Scores scores{psnr(picture, truth)[0], ssim(picture, truth)[0], {}};
  if (lpips_) scores.lpips = lpips_->distance(picture, truth)[0];
  return scores;
}

}  // namespace dpg::cli
