// JPEG: the picture is encoded and decoded again by libjpeg, exactly as a camera's file would be. Rounding
// makes it a black box. "jpeg:quality=10,chroma=420". For methods that need a derivative there is a stand-in,
// "jpeg:10,gradient=straight".
#pragma once

#include <memory>
#include <string>

#include "dpg/measure/operator.h"

namespace dpg {

struct JpegOptions {
  enum class Chroma {
    half,  // "420": colour at half resolution, as cameras do
    full,  // "444"
  };
  std::int64_t quality = 10;  // 1 to 100; above 95 little is lost
  Chroma chroma = Chroma::half;
  // A derivative as if nothing were rounded ("straight through"): what is left of JPEG is then the colours'
  // lower resolution. The measurement stays the codec's own.
  bool straight = false;

  void validate() const;
  std::string spec() const;
};
// Pictures of one channel (grey) or three (RGB), rounded to 8 bits first. The images of a batch are coded in
// parallel. Throws when this build has no libjpeg.
std::shared_ptr<const Operator> make_jpeg(const ImageShape& shape, const JpegOptions& options);

}  // namespace dpg
