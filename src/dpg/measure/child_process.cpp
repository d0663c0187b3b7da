#include "dpg/measure/child_process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <thread>

#include "dpg/core/error.h"

namespace dpg {
namespace {

using Clock = std::chrono::steady_clock;
using namespace std::chrono_literals;

constexpr std::size_t kErrorTail = 2000;
constexpr std::size_t kChunk = 1 << 16;

struct Pipe {
  int read_end = -1, write_end = -1;
};

Pipe make_pipe() {
  std::array<int, 2> ends;
  // Closed on exec: no other program started meanwhile, by any thread, keeps an end open.
  check(pipe2(ends.data(), O_CLOEXEC) == 0, "cannot make a pipe: ", std::strerror(errno));
  return {ends[0], ends[1]};
}

void make_non_blocking(int descriptor) {
  fcntl(descriptor, F_SETFL, fcntl(descriptor, F_GETFL) | O_NONBLOCK);
}

// Holds SIGPIPE back in this thread, and swallows one that came meanwhile, without touching the process's
// handlers.
class SigpipeGuard {
 public:
  SigpipeGuard() {
    sigemptyset(&sigpipe_);
    sigaddset(&sigpipe_, SIGPIPE);
    sigset_t pending;
    sigpending(&pending);
    was_pending_ = sigismember(&pending, SIGPIPE) == 1;
    pthread_sigmask(SIG_BLOCK, &sigpipe_, &before_);
  }
  SigpipeGuard(const SigpipeGuard&) = delete;
  SigpipeGuard& operator=(const SigpipeGuard&) = delete;
  ~SigpipeGuard() {
    const timespec now{};
    if (!was_pending_)
      while (sigtimedwait(&sigpipe_, nullptr, &now) < 0 && errno == EINTR) {
      }
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }

 private:
  sigset_t sigpipe_, before_;
  bool was_pending_ = false;
};

int milliseconds_until(Clock::time_point deadline) {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now()).count();
  return static_cast<int>(std::clamp<std::int64_t>(left, 0, 3'600'000));
}

}  // namespace

void ChildProcess::Descriptor::reset(int number) {
  if (number_ >= 0) close(number_);
  number_ = number;
}

ChildProcess::ChildProcess(std::vector<std::string> argv) : argv_(std::move(argv)) {
  check(!argv_.empty(), "no program to run was named");
  start();
}

void ChildProcess::start() {
  const Pipe in = make_pipe();
  input_.reset(in.write_end);
  const Descriptor child_in(in.read_end);
  const Pipe out = make_pipe();
  output_.reset(out.read_end);
  const Descriptor child_out(out.write_end);
  const Pipe err = make_pipe();
  errors_.reset(err.read_end);
  const Descriptor child_err(err.write_end);
  for (const Descriptor* ours : {&input_, &output_, &errors_}) make_non_blocking(ours->get());

  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, child_in.get(), 0);
  posix_spawn_file_actions_adddup2(&actions, child_out.get(), 1);
  posix_spawn_file_actions_adddup2(&actions, child_err.get(), 2);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setflags(&attributes,
                           POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK);
  posix_spawnattr_setpgroup(&attributes, 0);
  sigset_t signals;
  sigemptyset(&signals);
  posix_spawnattr_setsigmask(&attributes, &signals);
  sigaddset(&signals, SIGPIPE);
  posix_spawnattr_setsigdefault(&attributes, &signals);

  std::vector<char*> arguments;
  for (std::string& word : argv_) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  const int error = posix_spawnp(&pid_, arguments[0], &actions, &attributes, arguments.data(), environ);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) {
    pid_ = -1;
    fail("cannot start ", argv_[0], ": ", std::strerror(error),
         "; check its path, that it is executable, and its #! line");
  }
}

ChildProcess::~ChildProcess() {
  input_.reset();
  output_.reset();
  if (pid_ > 0 && !wait_for_exit(500ms)) kill_and_reap();
}

std::vector<std::byte> ChildProcess::exchange(std::span<const std::byte> request,
                                              const AnswerLength& answer_length,
                                              std::chrono::duration<double> timeout) {
  check(pid_ > 0, argv_[0], " is not running any more");
  const SigpipeGuard guard;
  const auto deadline = Clock::now() + std::chrono::duration_cast<Clock::duration>(timeout);
  std::vector<std::byte> answer;
  if (!read_answer(answer, 1)) fail_and_end("ended before it was asked");
  if (!answer.empty())
    fail_and_end("wrote to its standard output without being asked; only answers belong there");

  std::optional<std::size_t> length;
  bool errors_open = true;
  while (!request.empty() || !length || answer.size() < *length) {
    // poll ignores negative descriptors: what is finished is no longer waited for.
    const bool answered = length && answer.size() == *length;
    std::array<pollfd, 3> waiting = {{{answered ? -1 : output_.get(), POLLIN, 0},
                                      {errors_open ? errors_.get() : -1, POLLIN, 0},
                                      {request.empty() ? -1 : input_.get(), POLLOUT, 0}}};
    const int ready = poll(waiting.data(), waiting.size(), milliseconds_until(deadline));
    if (ready < 0 && errno == EINTR) continue;
    if (Clock::now() >= deadline)
      fail_and_end(str("did not answer within ", timeout.count(),
                       " s and was stopped; raise timeout= if it needs longer"));
    if (waiting[1].revents) {
      read_errors();
      errors_open = !(waiting[1].revents & POLLHUP);
    }
    if (waiting[2].revents) request = request.subspan(write_some(request));
    if (waiting[0].revents) {
      const bool open = read_answer(answer, length ? *length + 1 : answer.size() + kChunk);
      try {
        if (!length) length = answer_length(answer);
      } catch (const Error& error) {
        fail_and_end(str("answered with ", error.what()));
      }
      if (length) answer.reserve(*length + 1);
      if (length && answer.size() > *length) fail_and_end("wrote more than one array for one request");
      if (!open && (!length || answer.size() < *length)) fail_and_end("");
    }
  }
  return answer;
}

// Appends what is there, until `limit` bytes in all; false when the output is closed.
bool ChildProcess::read_answer(std::vector<std::byte>& answer, std::size_t limit) {
  while (answer.size() < limit) {
    const std::size_t size = answer.size(), chunk = std::min(limit - size, kChunk);
    answer.resize(size + chunk);
    const ssize_t got = read(output_.get(), answer.data() + size, chunk);
    answer.resize(size + static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
    if (got == 0) return false;
    if (got < 0) return errno == EAGAIN || errno == EINTR;
  }
  return true;
}

void ChildProcess::read_errors() {
  std::array<char, 4096> buffer;
  for (ssize_t got; (got = read(errors_.get(), buffer.data(), buffer.size())) > 0;) {
    error_tail_.append(buffer.data(), static_cast<std::size_t>(got));
    if (error_tail_.size() > kErrorTail) error_tail_.erase(0, error_tail_.size() - kErrorTail);
  }
}

// How much was written; all of it, for the caller, once the program has closed its input.
std::size_t ChildProcess::write_some(std::span<const std::byte> request) {
  const ssize_t written = write(input_.get(), request.data(), request.size());
  if (written >= 0) return static_cast<std::size_t>(written);
  return errno == EAGAIN || errno == EINTR ? 0 : request.size();
}

bool ChildProcess::wait_for_exit(std::chrono::milliseconds patience) {
  const auto deadline = Clock::now() + patience;
  while (pid_ > 0) {
    const pid_t gone = waitpid(pid_, &status_, WNOHANG);
    if (gone == pid_ || (gone < 0 && errno != EINTR)) {
      kill(-pid_, SIGKILL);  // what it may have started itself
      pid_ = -1;
    } else if (Clock::now() >= deadline) {
      return false;
    } else {
      std::this_thread::sleep_for(2ms);
    }
  }
  return true;
}

void ChildProcess::kill_and_reap() {
  kill(-pid_, SIGKILL);
  kill(pid_, SIGKILL);  // also when it has left its group
  while (waitpid(pid_, &status_, 0) < 0 && errno == EINTR) {
  }
  pid_ = -1;
}

void ChildProcess::fail_and_end(const std::string& what) {
  input_.reset();
  std::string ending = what;
  if (what.empty())
    ending = wait_for_exit(1000ms) ? how_it_ended() : "closed its output without a whole answer";
  if (pid_ > 0) kill_and_reap();
  read_errors();
  fail("the program ", argv_[0], " ", ending, last_words());
}

std::string ChildProcess::how_it_ended() const {
  if (WIFSIGNALED(status_))
    return str("was ended by signal ", WTERMSIG(status_), " (", strsignal(WTERMSIG(status_)), ")");
  return str("ended with exit code ", WEXITSTATUS(status_), " before it had answered");
}

std::string ChildProcess::last_words() const {
  std::string words = error_tail_;
  while (!words.empty() && (words.back() == '\n' || words.back() == ' ')) words.pop_back();
  return words.empty() ? "; it wrote nothing to stderr" : "; its stderr ends with: " + words;
}

}  // namespace dpg
