// Ctrl-C: the first one asks the work to stop where it can, the second one ends the program.
#pragma once

namespace dpg::cli {

class Interrupt {
 public:
  Interrupt();
  ~Interrupt();
  Interrupt(const Interrupt&) = delete;
  Interrupt& operator=(const Interrupt&) = delete;
  static bool asked();
};

inline constexpr int kInterrupted = 130;  // exit code, as shells have it: 128 + SIGINT

}  // namespace dpg::cli
