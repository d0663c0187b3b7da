// Any bytes: a picture within the limit, or a dpg::Error. Any other exception, crash or leak is a finding.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>

#include "dpg/core/error.h"
#include "dpg/image/image.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const dpg::ReadLimits limits{.max_pixels = 1'000'000};
  try {
    const dpg::Image image = dpg::decode_image(std::as_bytes(std::span(data, size)), "input", limits);
    const bool sound = image.channels >= 1 && image.channels <= 4 && image.pixels() >= 1 &&
                       image.pixels() <= limits.max_pixels &&
                       image.data.size() == static_cast<std::size_t>(image.channels * image.pixels());
    if (!sound) std::abort();
  } catch (const dpg::Error&) {
  }
  return 0;
}
