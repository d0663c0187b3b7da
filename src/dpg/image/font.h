// A small bitmap font, 5 x 7 dots, for labels in contact sheets.
#pragma once

#include <string_view>

namespace dpg::font {

inline constexpr int kWidth = 5;
inline constexpr int kHeight = 7;
inline constexpr int kAdvance = kWidth + 1;  // from one letter to the next

// Whether the dot at (row, column) of a printable ASCII character is set; anything else shows as '?'.
bool dot(char character, int row, int column);

// Dots that a line of text is wide.
int text_width(std::string_view text);

}  // namespace dpg::font
