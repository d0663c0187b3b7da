// How much arithmetic a U-Net is: the floor of its time. No torch here.
#pragma once

#include "dpg/prior/unet_config.h"

namespace dpg {

// Floating-point operations (a multiply-add is two) of the convolutions and attention products of one forward
// pass for one picture. The gradient with respect to the input takes as many again.
double network_flop(const UNetConfig& config, int height, int width);

}  // namespace dpg
