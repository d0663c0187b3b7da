// Times of the GPU's own kernels beside what their bytes and their arithmetic alone would take.
#pragma once

#include "dpg/solve/settings.h"

namespace dpg::cli {

// What the card was measured to do: bf16 and fp32 matrix products, and copies, read and written.
struct CardLimits {
  double bf16_tflops, fp32_tflops, copy_terabytes;
};

// One row for each kernel and shape: microseconds, bytes read and written once, operations, and the shares of
// the copy rate and of the fp32 rate. Printed unless `quiet`. Throws in a build without GPU kernels.
Json bench_kernels(const CardLimits& limits, bool quiet);

}  // namespace dpg::cli
