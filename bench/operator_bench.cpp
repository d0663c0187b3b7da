// 500 samples at 128x128 through each linear operator, beside the direct 61x61 convolution that a blur
// replaces.
//
//   build/release/bench/operator_bench          times on all cores (or OMP_NUM_THREADS)
//
// "best ms" is the fastest iteration and "of direct" that over the fastest of several direct convolutions (on
// fewer samples, scaled): other work on the machine can only make a run slower, and a mean would let a slow
// direct convolution flatter every operator. Separable and FFT paths must stay below 0.2.
#include <benchmark/benchmark.h>
#include <torch/torch.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <functional>
#include <limits>
#include <thread>

#include "dpg/measure/bicubic.h"
#include "dpg/measure/colour.h"
#include "dpg/measure/downsample.h"
#include "dpg/measure/gaussian_blur.h"
#include "dpg/measure/hadamard.h"
#include "dpg/measure/kernel_blur.h"
#include "dpg/measure/mask.h"
#include "dpg/measure/motion_kernel.h"

namespace dpg {
namespace {

constexpr std::int64_t kSamples = 500, kSide = 128, kKernel = 61;
const ImageShape kShape{3, kSide, kSide};
const std::vector<std::uint32_t> kImages = {0};

using Clock = std::chrono::steady_clock;

double seconds_of(const std::function<void()>& work) {
  const auto start = Clock::now();
  work();
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// Seconds for kSamples through the plain convolution with a reflected border. Its cost is linear in the
// samples.
double direct_seconds() {
  static const double seconds = [] {
    constexpr std::int64_t samples = 20;
    namespace F = torch::nn::functional;
    const Tensor x = torch::rand({samples, 3, kSide, kSide}), kernel = torch::rand({3, 1, kKernel, kKernel});
    const auto convolve = [&] {
      const Tensor padded = torch::reflection_pad2d(x, {kKernel / 2, kKernel / 2, kKernel / 2, kKernel / 2});
      benchmark::DoNotOptimize(F::conv2d(padded, kernel, F::Conv2dFuncOptions().groups(3)).data_ptr());
    };
    convolve();
    double best = seconds_of(convolve);
    for (int i = 0; i < 7; ++i) best = std::min(best, seconds_of(convolve));
    return best * kSamples / samples;
  }();
  return seconds;
}

using Make = std::function<std::shared_ptr<const LinearOperator>()>;
using Use = std::function<Tensor(const LinearOperator&, const Tensor&)>;

void BM_Operator(benchmark::State& state, const Make& make, const Use& use) {
  const torch::NoGradGuard no_grad;
  const auto op = make();
  const Tensor x = torch::rand({kSamples, 3, kSide, kSide}) * 2 - 1;
  const double direct = direct_seconds();
  double best = std::numeric_limits<double>::infinity();
  for (auto _ : state) {
    const double once = seconds_of([&] { benchmark::DoNotOptimize(use(*op, x).data_ptr()); });
    state.SetIterationTime(once);
    best = std::min(best, once);
  }
  state.counters["best ms"] = 1e3 * best;
  state.counters["of direct"] = best / direct;
}

void BM_DirectConvolution(benchmark::State& state) {
  for (auto _ : state) state.SetIterationTime(direct_seconds());
}

GaussianBlurOptions gaussian(Boundary boundary) {
  return {.sigma = 3, .size = kKernel, .boundary = boundary};
}

MotionBlurOptions motion(Boundary boundary) {
  return {.size = kKernel, .boundary = boundary};
}

void register_all() {
  const auto add = [](const std::string& name, const Make& make, const Use& use) {
    benchmark::RegisterBenchmark(name.c_str(), BM_Operator, make, use)
        ->Unit(benchmark::kMillisecond)
        ->UseManualTime()
        ->Iterations(5);
  };
  const Use apply = [](const LinearOperator& a, const Tensor& x) { return a.apply(x); };
  const Use there_and_back = [](const LinearOperator& a, const Tensor& x) { return a.adjoint(a.apply(x)); };
  const Rng rng(1);
  benchmark::RegisterBenchmark("direct 61x61 convolution", BM_DirectConvolution)
      ->Unit(benchmark::kMillisecond)
      ->UseManualTime()
      ->Iterations(1);
  const std::pair<std::string, Make> operators[] = {
      {"identity", [] { return make_identity(kShape); }},
      {"inpaint:box", [=] { return make_box_mask(kShape, {}, rng, kImages); }},
      {"inpaint:random", [=] { return make_random_mask(kShape, {}, rng, kImages); }},
      {"gray", [] { return make_gray(kShape); }},
      {"sr:4", [] { return make_downsample(kShape, {4}); }},
      {"sr-bicubic:4", [] { return make_bicubic(kShape, {4}); }},
      {"cs:ratio=0.25", [=] { return make_compressed_sensing(kShape, {}, rng); }},
      {"blur reflect", [] { return make_gaussian_blur(kShape, gaussian(Boundary::reflect)); }},
      {"blur zero", [] { return make_gaussian_blur(kShape, gaussian(Boundary::zero)); }},
      {"blur circular", [] { return make_gaussian_blur(kShape, gaussian(Boundary::circular)); }},
      {"motion reflect", [=] { return make_motion_blur(kShape, motion(Boundary::reflect), rng, kImages); }},
      {"motion zero", [=] { return make_motion_blur(kShape, motion(Boundary::zero), rng, kImages); }},
      {"motion circular", [=] { return make_motion_blur(kShape, motion(Boundary::circular), rng, kImages); }},
  };
  for (const auto& [name, make] : operators) {
    add(name + " / apply", make, apply);
    add(name + " / apply + adjoint", make, there_and_back);
  }
}

}  // namespace
}  // namespace dpg

int main(int count, char** values) {
  if (std::getenv("OMP_NUM_THREADS") == nullptr)
    torch::set_num_threads(static_cast<int>(std::thread::hardware_concurrency()));
  dpg::register_all();
  benchmark::Initialize(&count, values);
  if (benchmark::ReportUnrecognizedArguments(count, values)) return 1;
  benchmark::RunSpecifiedBenchmarks();
}
