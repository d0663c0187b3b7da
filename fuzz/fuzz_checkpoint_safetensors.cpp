// safetensors. An input that starts with '{' is taken as a header and gets the right length and some data:
// otherwise hardly any mutation of a header would be read to its end.
#include "dpg/checkpoint/sample_files.h"
#include "fuzz_checkpoint.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  namespace sample = dpg::checkpoint::sample;
  const std::string_view text = dpg::fuzz::as_text(data, size);
  if (text.starts_with("PK") || text.starts_with('\x80')) return dpg::fuzz::kDrop;
  if (text.starts_with('{')) {
    const std::string file = sample::safetensors(text, sample::floats({1, 2, 3, 4}));
    dpg::fuzz::parse_and_read(sample::view(file));
  } else {
    dpg::fuzz::parse_and_read(std::as_bytes(std::span(data, size)));
  }
  return dpg::fuzz::kKeep;
}
