// A reader for Python pickles (protocols 2 to 5) that executes nothing. Where Python would import or call
// something, the reader notes down what was asked for (Global, Call, Persistent); a name that is not in
// pickle_globals.cpp is an error. Values live in one flat list and refer to each other by index: a value may
// be shared, and may even contain itself, so whoever walks them must bound depth and steps.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "dpg/checkpoint/byte_reader.h"
#include "dpg/checkpoint/pickle_globals.h"

namespace dpg::checkpoint {

using Ref = std::uint32_t;  // the place of a value in PickleDocument::values

struct None {};
struct WideInteger {  // does not fit in 64 bits: two's complement, little-endian
  std::string_view digits;
};
struct Text {
  std::string_view utf8;  // not validated
};
struct Blob {
  Bytes bytes;
};
struct Sequence {  // tuple, list or set
  std::vector<Ref> items;
  bool grows = false;
};
struct Dict {  // in the order written; a key may come twice
  std::vector<std::pair<Ref, Ref>> items;
};
struct Global {
  const AllowedGlobal* global;
};
struct Call {  // noted, never performed
  const AllowedGlobal* callable;
  Ref arguments;  // a Sequence
};
struct Persistent {  // something kept outside of the pickle: a storage
  Ref id;
};
using Value = std::variant<None, bool, std::int64_t, double, WideInteger, Text, Blob, Sequence, Dict, Global,
                           Call, Persistent>;

struct PickleDocument {
  std::vector<Value> values;
  Ref root = 0;
  std::size_t size = 0;  // bytes up to and with the final STOP

  // The value as a T, or nullptr when it is something else.
  template <class T>
  const T* get(Ref ref) const {
    return std::get_if<T>(&values[ref]);
  }
};

// Reads the pickle at the start of `bytes`; more may follow it. Text and blobs stay views into `bytes`.
PickleDocument read_pickle(Bytes bytes, const std::string& file);

}  // namespace dpg::checkpoint
