// Errors: the library throws dpg::Error with what went wrong, where, and what to do about it.
// The message is one sentence for a user; the command line prints it as it is.
#pragma once

#include <sstream>
#include <stdexcept>
#include <string>

namespace dpg {

class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Joins anything that can be streamed: str("t = ", 3, " is out of range").
template <class... Parts>
std::string str(const Parts&... parts) {
  std::ostringstream out;
  (out << ... << parts);
  return out.str();
}

template <class... Parts>
[[noreturn]] void fail(const Parts&... parts) {
  throw Error(dpg::str(parts...));
}

// check(condition, parts...): fails with the joined parts when the condition does not hold.
template <class... Parts>
void check(bool condition, const Parts&... parts) {
  if (!condition) [[unlikely]]
    fail(parts...);
}

}  // namespace dpg
