// A progress bar on stderr with the time left; silent when stderr is not a terminal.
#pragma once

#include <chrono>
#include <string>

namespace dpg::cli {

class Progress {
 public:
  explicit Progress(std::string what);
  ~Progress();  // clears the line
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // `done` of `total` equal pieces of work; `note` is shown behind the bar.
  void update(int done, int total, const std::string& note = "");

 private:
  std::string what_;
  bool visible_;
  std::chrono::steady_clock::time_point start_, last_drawn_;
};

// "1:05" or "2:03:04".
std::string clock_text(double seconds);

}  // namespace dpg::cli
