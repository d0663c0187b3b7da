// A program that runs beside us and answers one request at a time over its standard input and output.
// Whatever it does (dies, hangs, answers before it has read, chatters on stderr), no call waits longer than
// its timeout, nothing is left behind, and SIGPIPE does not reach us.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace dpg {

class ChildProcess {
 public:
  // Starts argv[0] (searched in PATH when it has no slash) without a shell, in a process group of its own.
  explicit ChildProcess(std::vector<std::string> argv);
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;
  ~ChildProcess();  // closes its input; kills its group when it does not leave by itself soon

  // The length of the whole answer, given its beginning; empty while that is not known. May throw.
  using AnswerLength = std::function<std::optional<std::size_t>(std::span<const std::byte>)>;

  // Writes the request while reading the answer. After a failure the process is gone.
  std::vector<std::byte> exchange(std::span<const std::byte> request, const AnswerLength& answer_length,
                                  std::chrono::duration<double> timeout);

 private:
  class Descriptor {
   public:
    explicit Descriptor(int number = -1) : number_(number) {}
    Descriptor(const Descriptor&) = delete;
    Descriptor& operator=(const Descriptor&) = delete;
    ~Descriptor() { reset(); }
    int get() const { return number_; }
    void reset(int number = -1);

   private:
    int number_;
  };

  void start();
  bool read_answer(std::vector<std::byte>& answer, std::size_t limit);
  void read_errors();
  std::size_t write_some(std::span<const std::byte> request);
  bool wait_for_exit(std::chrono::milliseconds patience);  // true when it is gone
  void kill_and_reap();
  [[noreturn]] void fail_and_end(const std::string& what);
  std::string how_it_ended() const;
  std::string last_words() const;

  std::vector<std::string> argv_;
  Descriptor input_, output_, errors_;  // our ends of its stdin, stdout, stderr
  pid_t pid_ = -1;                      // -1: gone and reaped
  int status_ = 0;                      // of waitpid
  std::string error_tail_;
};

}  // namespace dpg
