// Torch zip files. An input that is a bare pickle is put into a sound zip first: mutations inside of a zip
// rarely keep its sizes right, and the pickle should be reached often.
#include "dpg/checkpoint/sample_files.h"
#include "fuzz_checkpoint.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  namespace sample = dpg::checkpoint::sample;
  const std::string_view text = dpg::fuzz::as_text(data, size);
  if (text.starts_with("PK")) {
    dpg::fuzz::parse_and_read(std::as_bytes(std::span(data, size)));
    return dpg::fuzz::kKeep;
  }
  if (!text.starts_with('\x80')) return dpg::fuzz::kDrop;
  const std::string zip = sample::torch_zip(
      std::string(text), {{"0", sample::floats({1, 2, 3, 4, 5, 6})}, {"1", sample::floats({7})}});
  dpg::fuzz::parse_and_read(sample::view(zip));
  return dpg::fuzz::kKeep;
}
