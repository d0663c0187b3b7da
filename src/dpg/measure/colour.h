// Colourisation (the picture is seen in grey) and denoising (the picture is seen as it is). "gray",
// "identity"
#pragma once

#include <memory>
#include <string>

#include "dpg/measure/operator.h"

namespace dpg {

struct GrayOptions {
  enum class Weights {
    mean,  // every channel alike; any number of channels
    luma,  // 0.299 R + 0.587 G + 0.114 B
  };
  Weights weights = Weights::mean;

  void validate(const ImageShape& shape) const;
  std::string spec() const;  // "gray", "gray:weights=luma"
};
// Measurements are [1, H, W].
std::shared_ptr<const SpectralOperator> make_gray(const ImageShape& shape, const GrayOptions& options = {});

std::shared_ptr<const SpectralOperator> make_identity(const ImageShape& shape);

}  // namespace dpg
