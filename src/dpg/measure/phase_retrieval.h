// Phase retrieval: the picture's spectrum is seen without its phase. "phase:oversample=2"
//
// y = |F P x|: P pads each side by oversample / 8 of the picture's size with zeros, F is the unitary Fourier
// transform with the lowest frequency in the middle. Shifted and turned pictures give the same y: a solver
// runs a few times and keeps the best.
#pragma once

#include <memory>
#include <string>

#include "dpg/measure/operator.h"

namespace dpg {

struct PhaseRetrievalOptions {
  double oversample = 2;  // 0 to 8; 2 makes each side 1.5 times as long

  void validate() const;
  std::string spec() const;
};
// Measurements are [C, H + 2 pad, W + 2 pad], not negative.
std::shared_ptr<const DifferentiableOperator> make_phase_retrieval(const ImageShape& shape,
                                                                   const PhaseRetrievalOptions& options);

}  // namespace dpg
