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
  // The same with the share of the work that is done, 0 to 1.
  void update(double share, const std::string& note);
  // Whether update would draw now: for notes that cost something to make.
  bool due() const;

 private:
  void draw(double share, const std::string& text);
  std::string what_;
  bool visible_;
  std::chrono::steady_clock::time_point start_, last_drawn_;
};

// "1:05" or "2:03:04".
std::string clock_text(double seconds);

}  // namespace dpg::cli
