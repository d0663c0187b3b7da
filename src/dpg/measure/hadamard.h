// Compressed sensing: random signs, a random order of the pixels, an orthonormal Walsh-Hadamard transform,
// and of its coefficients a random part. The same for every channel and image: it is the device. Where the
// number of pixels is no power of two the shuffled pixels are split into blocks that are. "cs:ratio=0.25"
#pragma once

#include <memory>
#include <string>

#include "dpg/core/rng.h"
#include "dpg/measure/operator.h"

namespace dpg {

struct CompressedSensingOptions {
  double ratio = 0.25;  // measurements per pixel, in (0, 1]

  void validate() const;
  std::string spec() const;
};
// Measurements are [C, round(ratio * H * W)]. Drawn from stream (0, kBeforeFirstStep, kOperatorChoices).
std::shared_ptr<const SpectralOperator> make_compressed_sensing(const ImageShape& shape,
                                                                const CompressedSensingOptions& options,
                                                                const Rng& rng);

}  // namespace dpg
