// Torch files from before 1.6: pickles one after the other, then the storages.
#include "fuzz_checkpoint.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (!dpg::fuzz::as_text(data, size).starts_with('\x80')) return dpg::fuzz::kDrop;
  dpg::fuzz::parse_and_read(std::as_bytes(std::span(data, size)));
  return dpg::fuzz::kKeep;
}
