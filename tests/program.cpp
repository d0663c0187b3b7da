#include "program.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <stdexcept>

#include "dpg/core/test_folder.h"

namespace dpg::testing {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void become_program(std::vector<std::string> arguments, const std::string& out,
                                 const std::string& err) {
  std::vector<char*> argv;
  for (std::string& argument : arguments) argv.push_back(argument.data());
  argv.push_back(nullptr);
  const int flags = O_WRONLY | O_CREAT | O_TRUNC;
  const bool redirected = dup2(open(out.c_str(), flags, 0600), STDOUT_FILENO) >= 0 &&
                          dup2(open(err.c_str(), flags, 0600), STDERR_FILENO) >= 0;
  if (redirected) execv(argv[0], argv.data());
  _exit(127);
}

}  // namespace

namespace {

// Runs the program, interrupting it after `seconds` unless that is negative.
Outcome run_program(const std::vector<std::string>& arguments, int seconds, bool& killed) {
  const Scratch scratch;
  const std::string out = scratch.file("out"), err = scratch.file("err");
  std::vector<std::string> command = {DPG_PROGRAM};
  command.insert(command.end(), arguments.begin(), arguments.end());
  const pid_t child = fork();
  if (child == 0) become_program(std::move(command), out, err);
  if (seconds >= 0) {
    sleep(static_cast<unsigned>(seconds));
    kill(child, SIGINT);
  }
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  killed = !WIFEXITED(status);
  const int code = killed ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  return {code, read_bytes(out), read_bytes(err)};
}

}  // namespace

Outcome run_dpg(const std::vector<std::string>& arguments) {
  bool killed = false;
  return run_program(arguments, -1, killed);
}

Outcome run_dpg_and_interrupt(const std::vector<std::string>& arguments) {
  // Before it listens to Ctrl-C the program simply dies of it: then it gets more time to start.
  bool killed = true;
  Outcome outcome;
  for (int seconds = 4; killed && seconds <= 64; seconds *= 2)
    outcome = run_program(arguments, seconds, killed);
  EXPECT_FALSE(killed) << "it never listened to Ctrl-C";
  return outcome;
}

Scratch::Scratch() {
  std::string name = (fs::temp_directory_path() / "dpg-test-XXXXXX").string();
  if (mkdtemp(name.data()) == nullptr) throw std::runtime_error("no temporary folder can be made");
  folder_ = name;
}

Scratch::~Scratch() {
  dpg::remove_folder(folder_);
}

std::vector<std::string> Scratch::files() const {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder_)) names.push_back(entry.path().filename().string());
  std::sort(names.begin(), names.end());
  return names;
}

std::string read_bytes(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  EXPECT_TRUE(file) << path << " can't be read";
  return {std::istreambuf_iterator<char>(file), {}};
}

void write_bytes(const fs::path& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

void expect_refused(const Outcome& outcome, int code, const std::vector<std::string>& words) {
  EXPECT_EQ(outcome.code, code) << outcome.err;
  EXPECT_EQ(outcome.out, "");
  EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << outcome.err;
  for (const std::string& word : words) EXPECT_NE(outcome.err.find(word), std::string::npos) << outcome.err;
}

}  // namespace dpg::testing
