// Pictures in memory through libjpeg and back. Apart from jpeg_operator.cpp so that no torch header meets
// libjpeg's.
#pragma once

#include <cstdint>

namespace dpg {

bool jpeg_available();  // whether this build has libjpeg

// Interleaved 8-bit pictures, one after the other; 1 channel (grey) or 3 (RGB).
struct JpegPictures {
  std::uint8_t* pixels = nullptr;
  std::int64_t count = 0, height = 0, width = 0, channels = 0;
};

// Replaces each picture by its decoded JPEG. The result does not depend on the number of threads.
void jpeg_round_trip(const JpegPictures& pictures, int quality, bool half_chroma, int threads);

}  // namespace dpg
