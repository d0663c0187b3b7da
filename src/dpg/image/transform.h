// Pictures to the size, orientation and channels that are wanted.
#pragma once

#include "dpg/image/image.h"

namespace dpg {

// Antialiased bicubic (Keys' kernel, a = -1/2), separable; when shrinking, the kernel is widened by the
// ratio. At the border the kernel is cut and normalised again: a constant picture stays constant. This is
// Pillow's convention. What overshoots is clamped to [-1, 1]. Alpha is resized like a colour: flatten with
// to_rgb first where that matters.
Image resize(const Image& image, int height, int width);

// The middle of the picture; where the margin is odd, the smaller half is at the top and left.
Image centre_crop(const Image& image, int height, int width);

// A square picture for the prior: shorter side resized to `size`, then the centre. Computes only what it
// keeps.
Image fit(const Image& image, int size);

// Three channels: grey is repeated, alpha is composited over white.
Image to_rgb(const Image& image);
// One channel: Rec. 601 luma (0.299 R + 0.587 G + 0.114 B), alpha composited over white.
Image to_grey(const Image& image);

Image flip_horizontal(Image image);
Image flip_vertical(Image image);
Image transpose(Image image);
// Turned upright from how EXIF orientation 1 to 8 says that it was stored.
Image oriented(Image image, int orientation);

}  // namespace dpg
