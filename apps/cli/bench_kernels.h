// Times of the GPU's own kernels beside what their bytes alone would take.
#pragma once

#include "dpg/solve/settings.h"

namespace dpg::cli {

// One row for each kernel and shape: microseconds, bytes read and written once, share of the copy rate.
// Printed unless `quiet`. Throws in a build without GPU kernels.
Json bench_kernels(double copy_terabytes, bool quiet);

}  // namespace dpg::cli
