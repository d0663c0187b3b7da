// Super-resolution by average pooling: each measured pixel is the mean of a factor x factor block. "sr:4"
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "dpg/measure/operator.h"

namespace dpg {

struct DownsampleOptions {
  std::int64_t factor = 4;  // at least 1; divides the image's height and width

  void validate(const ImageShape& shape) const;
  std::string spec() const;
};
std::shared_ptr<const SpectralOperator> make_downsample(const ImageShape& shape,
                                                        const DownsampleOptions& options);

}  // namespace dpg
