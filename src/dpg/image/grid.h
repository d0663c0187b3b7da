// Pictures side by side, with captions.
#pragma once

#include <span>
#include <string>

#include "dpg/image/image.h"

namespace dpg {

// Row by row into `columns` columns with `gap` pixels between them, on mid grey. Cells are as large as the
// largest picture; smaller ones are centred. The sheet is grey where all pictures are, otherwise RGB (see
// to_rgb).
Image make_grid(std::span<const Image> images, int columns, int gap = 2);

// One row.
Image side_by_side(std::span<const Image> images, int gap = 2);

// Writes into the picture with the built-in 5 x 7 font, `scale` pixels a dot, top left corner at (y, x); what
// lies outside is cut off. `value` is the colour, -1 black to 1 white, in every channel except alpha, which
// is made opaque.
void draw_label(Image& image, const std::string& text, int y, int x, int scale = 1, float value = 1.0f);

// The picture with a black strip below that holds the text in white, shortened to what fits.
Image with_caption(const Image& image, const std::string& text, int scale = 1);

}  // namespace dpg
