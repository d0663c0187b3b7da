// Standard normals on two threads: our generator against torch's normal_, in the same run.
#include <ATen/Parallel.h>
#include <benchmark/benchmark.h>
#include <torch/torch.h>

#include <span>

#include "dpg/core/rng.h"

namespace {

constexpr std::int64_t kCount = 8 << 20;
constexpr int kThreads = 2;

void rng_normal(benchmark::State& state) {
  at::set_num_threads(kThreads);  // sets OpenMP's, which our loops use too
  torch::Tensor out = torch::empty({kCount}, torch::kFloat32);
  const std::span<float> span(out.data_ptr<float>(), static_cast<std::size_t>(kCount));
  const dpg::Rng rng(1);
  std::uint32_t step = 0;
  for (auto _ : state) {
    rng.normal({.image = 0, .step = step++, .sample = 0}, span);
    benchmark::ClobberMemory();
  }
  state.SetItemsProcessed(state.iterations() * kCount);
}

void torch_normal(benchmark::State& state) {
  at::set_num_threads(kThreads);
  torch::manual_seed(1);
  torch::Tensor out = torch::empty({kCount}, torch::kFloat32);
  for (auto _ : state) {
    out.normal_();
    benchmark::ClobberMemory();
  }
  state.SetItemsProcessed(state.iterations() * kCount);
}

BENCHMARK(rng_normal)->Unit(benchmark::kMillisecond)->UseRealTime();
BENCHMARK(torch_normal)->Unit(benchmark::kMillisecond)->UseRealTime();

}  // namespace

BENCHMARK_MAIN();
