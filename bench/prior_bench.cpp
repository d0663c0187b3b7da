// denoise + pull_back of the bundled prior, beside the floor: the same multiply-adds as bare convolutions.
//
//   build/release/bench/prior_bench            times on all cores (or OMP_NUM_THREADS)
//
// Counters: GFLOP/s counts the convolutions and attention products of one forward and one input-gradient
// pass; "of floor" is time over the time those would take at the rate of the bare convolution in the same
// run.
#include <benchmark/benchmark.h>
#include <torch/torch.h>

#include <algorithm>
#include <cstdlib>
#include <thread>
#include <vector>

#include "dpg/core/memory.h"
#include "dpg/prior/prior.h"

namespace dpg {
namespace {

// 2 x 26.3 GFLOP: the bundled network's convolutions and attention products at 128x128 as they are defined.
// Folded upsampling does fewer, so the rate below is nominal.
constexpr double kNetworkGflop = 52.0;

void use_all_cores() {
  if (std::getenv("OMP_NUM_THREADS") == nullptr)
    torch::set_num_threads(static_cast<int>(std::thread::hardware_concurrency()));
}

std::shared_ptr<const NetworkPrior> load(const std::string& precision) {
  LoadOptions options;
  options.precision = precision;
  return load_prior(bundled_prior_path(), options);
}

void BM_DenoisePullBack(benchmark::State& state, const std::string& precision, int batch) {
  use_all_cores();
  const auto prior = load(precision);
  torch::manual_seed(1);
  const Tensor x = torch::randn({batch, 3, 128, 128}), v = torch::randn({batch, 3, 128, 128});
  for (auto _ : state) {
    const Denoised d = prior->denoise(x, 500, Track::gradient);
    benchmark::DoNotOptimize(d.pull_back(v).data_ptr());
  }
  state.counters["GFLOP/s"] = benchmark::Counter(
      kNetworkGflop * batch * static_cast<double>(state.iterations()), benchmark::Counter::kIsRate);
}

void BM_Denoise(benchmark::State& state, const std::string& precision, int batch) {
  use_all_cores();
  const auto prior = load(precision);
  torch::manual_seed(1);
  const Tensor x = torch::randn({batch, 3, 128, 128});
  for (auto _ : state) benchmark::DoNotOptimize(prior->denoise(x, 500, Track::nothing).x0.data_ptr());
  state.counters["GFLOP/s"] = benchmark::Counter(
      kNetworkGflop / 2 * batch * static_cast<double>(state.iterations()), benchmark::Counter::kIsRate);
}

// The network's most frequent convolution, alone: the rate this machine can reach.
void BM_Convolution(benchmark::State& state, torch::ScalarType type) {
  use_all_cores();
  const torch::NoGradGuard no_grad;
  const auto channels_last = torch::MemoryFormat::ChannelsLast;
  const Tensor x = torch::randn({1, 128, 128, 128}).to(type).contiguous(channels_last);
  const Tensor w = torch::randn({64, 128, 3, 3}).to(type).contiguous(channels_last),
               b = torch::randn({64}).to(type);
  for (auto _ : state) benchmark::DoNotOptimize(torch::conv2d(x, w, b, 1, 1).data_ptr());
  const double gflop = 2.0 * 128 * 64 * 9 * 128 * 128 * 1e-9;
  state.counters["GFLOP/s"] =
      benchmark::Counter(gflop * static_cast<double>(state.iterations()), benchmark::Counter::kIsRate);
}

// On a machine with other work the fastest run says most about the code.
double fastest(const std::vector<double>& seconds) {
  return *std::min_element(seconds.begin(), seconds.end());
}

void repeated(benchmark::internal::Benchmark* b) {
  b->Unit(benchmark::kMillisecond)
      ->UseRealTime()
      ->Repetitions(9)
      ->ReportAggregatesOnly()
      ->ComputeStatistics("min", fastest);
}

BENCHMARK_CAPTURE(BM_Convolution, fp32, torch::kFloat)->Apply(repeated);
BENCHMARK_CAPTURE(BM_Convolution, bf16, torch::kBFloat16)->Apply(repeated);
BENCHMARK_CAPTURE(BM_DenoisePullBack, fp32, "fp32", 1)->Apply(repeated);
BENCHMARK_CAPTURE(BM_DenoisePullBack, bf16, "bf16", 1)->Apply(repeated);
BENCHMARK_CAPTURE(BM_DenoisePullBack, bf16_batch4, "bf16", 4)->Apply(repeated);
BENCHMARK_CAPTURE(BM_Denoise, fp32, "fp32", 1)->Apply(repeated);
BENCHMARK_CAPTURE(BM_Denoise, bf16, "bf16", 1)->Apply(repeated);

}  // namespace
}  // namespace dpg

int main(int argc, char** argv) {
  dpg::reuse_freed_memory();  // as the program does
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
}
