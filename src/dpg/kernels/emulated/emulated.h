// GPU kernels on the CPU, one thread at a time, for tests on machines without a card: their arithmetic, their
// indices and their synchronisation are the source's own. Only what our kernels use of CUDA is here; neither
// speed nor the order of memory operations between blocks is imitated.
//
// The build makes C++ of a kernel's source with two replacements (cmake/EmulateKernel.cmake): f<<<...>>>(...)
// becomes f ->* Launch{...}(...), and a block's dynamic memory becomes a pointer.
//
// Blocks, and the threads of a block between two waits, are run in random order, another one at each launch:
// a missing wait shows as a result that changes.
#pragma once

#include <cstddef>
#include <functional>
#include <tuple>

struct CUstream_st;

struct dim3 {
  unsigned x = 1, y = 1, z = 1;
  constexpr dim3(unsigned x_ = 1, unsigned y_ = 1, unsigned z_ = 1) : x(x_), y(y_), z(z_) {}
};

namespace dpg::emulated {

// Waits, as a thread of a kernel. Throws out of the launch where threads wait for each other in vain.
void wait_for_block();
// The value of the lane whose number differs by `flip`. All 32 lanes of the warp must take part.
float exchange(float value, int flip);

// Of the block that is running; NaN at its start.
void* shared_memory();

// What the running thread sees.
struct Place {
  dim3 thread, block, threads, blocks;
};
const Place& place();

void launch(const dim3& blocks, const dim3& threads, std::size_t shared_bytes,
            const std::function<void()>& kernel);

template <class... Arguments>
struct Bound;

struct Launch {
  dim3 blocks, threads;
  std::size_t shared_bytes = 0;
  CUstream_st* stream = nullptr;

  template <class... Arguments>
  Bound<Arguments...> operator()(Arguments... arguments) const {
    return {*this, {arguments...}};
  }
};

template <class... Arguments>
struct Bound {
  Launch how;
  std::tuple<Arguments...> arguments;
};

template <class... Parameters, class... Arguments>
void operator->*(void (*kernel)(Parameters...), const Bound<Arguments...>& call) {
  launch(call.how.blocks, call.how.threads, call.how.shared_bytes,
         [&] { std::apply([&](const Arguments&... a) { kernel(a...); }, call.arguments); });
}

}  // namespace dpg::emulated
