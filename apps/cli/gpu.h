// What the program asks of the GPU beside tensors. In a build without GPU kernels these throw.
#pragma once

#include <string>

#include "dpg/prior/prior.h"

namespace dpg::cli {

std::string gpu_name();
void reset_gpu_peak();
double gpu_peak_gibibytes();  // allocated at most since reset_gpu_peak
// A step's parts one by one, instead of as one launch.
void launch_steps_in_parts(bool on);
// How many pictures of this size one batch may have, from what one alone takes and what is free; 0: not even
// one. To be asked after a batch did not fit.
int batch_that_fits(const Prior& prior, std::int64_t height, std::int64_t width);

}  // namespace dpg::cli
