// The fused norm kernels alone, per instruction set: time, and bytes moved (each input read and each output
// written once per pass) per second.
#include <benchmark/benchmark.h>

#include <vector>

#include "dpg/kernels/norm.h"

namespace dpg::kernels {
namespace {

template <class T>
void BM_Norm(benchmark::State& state, Isa isa, bool backward) {
  if (!isa_supported(isa)) return state.SkipWithError("not on this processor");
  const NormShape shape{1, 128 * 128, 64, 32, 1e-5f, true};
  const std::size_t n = static_cast<std::size_t>(shape.pixels * shape.channels);
  std::vector<T> x(n), y(n), dy(n);
  for (std::size_t i = 0; i < n; ++i)
    if constexpr (sizeof(T) == 2)
      x[i].bits = dy[i].bits = static_cast<std::uint16_t>(0x3F00 + i % 255);
    else
      x[i] = dy[i] = static_cast<float>(i % 255) / 64 - 2;
  const std::vector<float> ones(64, 1.0f), small(64, 0.1f);
  const NormParameters parameters{ones.data(), small.data(), small.data(), small.data()};
  std::vector<float> statistics(64);
  norm_forward(shape, parameters, x.data(), y.data(), statistics.data(), isa);
  for (auto _ : state) {
    if (backward)
      norm_backward<T>(shape, parameters, x.data(), statistics.data(), dy.data(), nullptr,
                       {y.data(), 64, nullptr}, isa);
    else
      norm_forward(shape, parameters, x.data(), y.data(), statistics.data(), isa);
    benchmark::ClobberMemory();
  }
  const double passes = backward ? 5 : 3;  // forward: x, x, y; backward: x, dy, x, dy, dx
  state.SetBytesProcessed(static_cast<std::int64_t>(static_cast<double>(state.iterations()) * passes *
                                                    static_cast<double>(n * sizeof(T))));
}

void register_all() {
  for (const Isa isa : {Isa::baseline, Isa::avx2, Isa::avx512})
    for (const bool backward : {false, true}) {
      const std::string suffix = std::string(backward ? "backward/" : "forward/") + isa_name(isa);
      benchmark::RegisterBenchmark(("BM_Norm/float/" + suffix).c_str(), BM_Norm<float>, isa, backward)
          ->Unit(benchmark::kMicrosecond)
          ->UseRealTime();
      benchmark::RegisterBenchmark(("BM_Norm/bf16/" + suffix).c_str(), BM_Norm<Bf16>, isa, backward)
          ->Unit(benchmark::kMicrosecond)
          ->UseRealTime();
    }
}

}  // namespace
}  // namespace dpg::kernels

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  dpg::kernels::register_all();
  benchmark::RunSpecifiedBenchmarks();
}
