#include "dpg/kernels/emulated/emulated.h"

#include <ucontext.h>

#include <algorithm>
#include <limits>
#include <memory>
#include <numeric>
#include <random>
#include <vector>

#include "dpg/core/error.h"

namespace dpg::emulated {
namespace {

constexpr int kLanes = 32;
constexpr std::size_t kStackBytes = 64 * 1024;
constexpr unsigned kMostThreads = 1024;

enum class State { ready, waits_for_block, waits_for_warp, done };

// A thread of the kernel, with a stack of its own.
struct Thread {
  ucontext_t context;
  std::unique_ptr<char[]> stack{new char[kStackBytes]};
  State state = State::done;
  unsigned exchanges = 0;
  dim3 index;
};

// One launch at a time; the tests that use it are of one thread.
struct Machine {
  ucontext_t scheduler;
  std::vector<Thread> threads = std::vector<Thread>(kMostThreads);
  unsigned count = 0, running = 0;  // threads of a block, and the one that runs
  std::vector<float> shared;
  // What lanes hand over, twice: one may be at the next exchange before all have read the last one's.
  float handed[2][kMostThreads];
  Place place;
  const std::function<void()>* kernel = nullptr;
  std::mt19937 order{1};
};

Machine& machine() {
  static Machine one;
  return one;
}

void run_thread() {
  Machine& m = machine();
  (*m.kernel)();
  m.threads[m.running].state = State::done;
  swapcontext(&m.threads[m.running].context, &m.scheduler);
}

void wait(State state) {
  Machine& m = machine();
  Thread& self = m.threads[m.running];
  self.state = state;
  swapcontext(&self.context, &m.scheduler);
}

void resume(unsigned thread) {
  Machine& m = machine();
  m.running = thread;
  m.place.thread = m.threads[thread].index;
  swapcontext(&m.scheduler, &m.threads[thread].context);
}

// Lets go on whoever may: a block in which all that are left wait, warps in which all lanes wait.
bool release() {
  Machine& m = machine();
  const auto begin = m.threads.begin(), end = begin + m.count;
  const auto in = [](State state) { return [state](const Thread& t) { return t.state == state; }; };
  if (std::none_of(begin, end, in(State::waits_for_warp))) {
    for (auto t = begin; t != end; ++t)
      if (t->state == State::waits_for_block) t->state = State::ready;
    return true;
  }
  bool any = false;
  for (auto warp = begin; end - warp >= kLanes; warp += kLanes) {
    if (!std::all_of(warp, warp + kLanes, in(State::waits_for_warp))) continue;
    for (auto t = warp; t != warp + kLanes; ++t) t->state = State::ready;
    any = true;
  }
  return any;
}

void start(Thread& thread, unsigned number) {
  const dim3& size = machine().place.threads;
  thread.state = State::ready;
  thread.exchanges = 0;
  thread.index = {number % size.x, number / size.x % size.y, number / (size.x * size.y)};
  getcontext(&thread.context);
  thread.context.uc_stack.ss_sp = thread.stack.get();
  thread.context.uc_stack.ss_size = kStackBytes;
  thread.context.uc_link = nullptr;
  makecontext(&thread.context, run_thread, 0);
}

void run_block(std::size_t shared_bytes) {
  Machine& m = machine();
  m.shared.assign(shared_bytes / sizeof(float) + 1, std::numeric_limits<float>::quiet_NaN());
  for (unsigned i = 0; i < m.count; ++i) start(m.threads[i], i);
  std::vector<unsigned> turns(m.count);
  std::iota(turns.begin(), turns.end(), 0u);
  const auto done = [&] {
    return std::all_of(turns.begin(), turns.end(),
                       [&](unsigned i) { return m.threads[i].state == State::done; });
  };
  while (!done()) {
    std::shuffle(turns.begin(), turns.end(), m.order);
    for (const unsigned i : turns)
      if (m.threads[i].state == State::ready) resume(i);
    check(done() || release(), "an emulated kernel stands still: a warp waits for lanes that do not come");
  }
}

}  // namespace

void wait_for_block() {
  wait(State::waits_for_block);
}

float exchange(float value, int flip) {
  Machine& m = machine();
  const unsigned self = m.running, turn = m.threads[self].exchanges++ % 2;
  m.handed[turn][self] = value;
  wait(State::waits_for_warp);
  return m.handed[turn][self ^ static_cast<unsigned>(flip)];
}

void* shared_memory() {
  return machine().shared.data();
}

const Place& place() {
  return machine().place;
}

void launch(const dim3& blocks, const dim3& threads, std::size_t shared_bytes,
            const std::function<void()>& kernel) {
  Machine& m = machine();
  m.count = threads.x * threads.y * threads.z;
  check(m.count >= 1 && m.count <= kMostThreads, "a block has 1 to ", kMostThreads, " threads, not ",
        m.count);
  check(blocks.x >= 1 && blocks.y >= 1 && blocks.y <= 65535 && blocks.z >= 1 && blocks.z <= 65535,
        "a grid of ", blocks.x, "x", blocks.y, "x", blocks.z, " blocks cannot be launched");
  check(shared_bytes <= 48 * 1024, shared_bytes, " bytes of shared memory are more than a launch may ask");
  m.kernel = &kernel;
  m.place.threads = threads;
  m.place.blocks = blocks;
  std::vector<unsigned> turns(blocks.x * blocks.y * blocks.z);
  std::iota(turns.begin(), turns.end(), 0u);
  std::shuffle(turns.begin(), turns.end(), m.order);
  for (const unsigned i : turns) {
    m.place.block = {i % blocks.x, i / blocks.x % blocks.y, i / (blocks.x * blocks.y)};
    run_block(shared_bytes);
  }
}

}  // namespace dpg::emulated
