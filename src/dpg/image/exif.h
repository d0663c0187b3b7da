// The one thing this project needs of EXIF: which way up the camera was held.
#pragma once

#include <cstddef>
#include <span>

namespace dpg {

// The orientation (1 to 8) that an EXIF block names: a TIFF header ("II" or "MM") and its first directory,
// with or without "Exif\0\0" before it. 1 (as stored) where there is none. A damaged block counts as none: it
// says nothing about the pixels, which are still good.
int exif_orientation(std::span<const std::byte> exif);

}  // namespace dpg
