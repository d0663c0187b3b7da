// Runs the dpg program as a user would, for tests.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace dpg::testing {

struct Outcome {
  int code = -1;  // exit code; 128 + signal when it was killed
  std::string out, err;
};

// Runs the program under test; the arguments reach it as they are, without a shell.
Outcome run_dpg(const std::vector<std::string>& arguments);
// The same, with a Ctrl-C once it has started to work.
Outcome run_dpg_and_interrupt(const std::vector<std::string>& arguments);

// A folder of its own that goes away with the object.
class Scratch {
 public:
  Scratch();
  ~Scratch();
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;

  std::string file(const std::string& name) const { return (folder_ / name).string(); }
  std::vector<std::string> files() const;  // names, sorted

 private:
  std::filesystem::path folder_;
};

std::string read_bytes(const std::filesystem::path& path);
void write_bytes(const std::filesystem::path& path, const std::string& bytes);

// Refused: exit code, nothing on stdout, and one line on stderr that contains each of `words`.
void expect_refused(const Outcome& outcome, int code, const std::vector<std::string>& words);

}  // namespace dpg::testing
