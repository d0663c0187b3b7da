#include "bench_kernels.h"

#include "dpg/core/error.h"

#ifdef DPG_CUDA
#include <ATen/cuda/CUDAGraph.h>
#include <c10/cuda/CUDAGuard.h>
#include <torch/torch.h>

#include <chrono>
#include <cstdio>
#include <functional>

#include "dpg/kernels/split_cuda.h"
#include "dpg/prior/gpu_norm.h"
#include "dpg/tensor/convert.h"

namespace dpg::cli {
namespace {

constexpr int kRepeats = 50;
constexpr auto kChannelsLast = torch::MemoryFormat::ChannelsLast;

// Microseconds of one call, recorded often enough in a graph that launching does not count.
double microseconds(const std::function<void()>& call) {
  at::cuda::CUDAGraph graph;
  {
    const c10::cuda::CUDAStreamGuard stream(c10::cuda::getStreamFromPool());
    call();
    torch::cuda::synchronize();
    graph.capture_begin();
    for (int i = 0; i < kRepeats; ++i) call();
    graph.capture_end();
  }
  graph.replay();
  torch::cuda::synchronize();
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < 5; ++i) graph.replay();
  torch::cuda::synchronize();
  return 1e6 * std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() /
         (5 * kRepeats);
}

// What a kernel has to do for each value of its shape: tensors of that shape in bf16, read or written, each
// counted once; and operations, each addition, product, comparison, conversion, exponential or root as one,
// in floats or integers, indices not counted.
struct Work {
  const char* kernel;
  double tensors, operations;
};
// A large picture's norm reads its input twice; the second time is not counted.
constexpr Work kNormForward{"norm forward", 2, 4 + 6};    // moments; line and SiLU
constexpr Work kNormReverse{"norm reverse", 4, 13 + 15};  // SiLU's slope twice; two sums; three terms
constexpr Work kSum{"sum with bias", 3, 2};
// For each value a float is read (two bf16) and a third of eight bf16 channels written.
constexpr Work kSplit{"split into bf16 pairs", 2 + 8.0 / 3, 3};
// A quarter of ten Philox rounds of ten operations, half of a logarithm, root, sine and cosine.
constexpr Work kNormals{"Philox normals (float)", 2, 25 + 31};

}  // namespace

Json bench_kernels(const CardLimits& limits, bool quiet) {
  const torch::NoGradGuard no_grad;
  Json rows = Json::array();
  if (!quiet)
    std::printf("%-44s%10s%10s%10s%10s%12s%12s\n", "kernel, bf16, channels last", "us", "MB", "Mop", "TB/s",
                "of copying", "of fp32");
  const auto add = [&](const Work& work, std::int64_t side, std::int64_t channels, std::int64_t batch,
                       double us) {
    const double values = static_cast<double>(batch * side * side * channels);
    const double bytes = 2.0 * work.tensors * values, operations = work.operations * values;
    const double rate = bytes / us * 1e-6;
    const double of_copying = rate / limits.copy_terabytes;
    const double of_fp32 = operations / us * 1e-6 / limits.fp32_tflops;
    rows.push_back({{"kernel", work.kernel},
                    {"side", side},
                    {"channels", channels},
                    {"batch", batch},
                    {"us", us},
                    {"bytes", bytes},
                    {"operations", operations},
                    {"of_copy_rate", of_copying},
                    {"of_fp32_rate", of_fp32}});
    if (quiet) return;
    const std::string name = str(work.kernel, ", ", batch, "x", side, "x", side, "x", channels);
    std::printf("%-44s%10.1f%10.1f%10.1f%10.2f%12.2f%12.2f\n", name.c_str(), us, bytes * 1e-6,
                operations * 1e-6, rate, of_copying, of_fp32);
    std::fflush(stdout);
  };
  const auto options = torch::TensorOptions(torch::kCUDA);
  const std::int64_t shapes[][3] = {{1, 256, 128}, {1, 128, 128}, {1, 64, 256}, {1, 32, 256},
                                    {1, 8, 512},   {8, 256, 128}, {8, 64, 256}, {8, 8, 512}};
  for (const auto& [batch, side, channels] : shapes) {
    const auto image = [&, b = batch, s = side, c = channels] {
      return torch::randn({b, c, s, s}, options).to(torch::kBFloat16).contiguous(kChannelsLast);
    };
    const NormConstants constants{torch::randn({channels}, options), torch::randn({channels}, options),
                                  torch::randn({batch, channels}, options),
                                  torch::randn({batch, channels}, options), true};
    const Tensor x = image(), dy = image(), out = image();
    Tensor statistics;
    add(kNormForward, side, channels, batch, microseconds([&] {
          gpu_norm_forward({x, {}, {}}, constants, torch::kBFloat16, statistics);
        }));
    add(kNormReverse, side, channels, batch, microseconds([&] {
          gpu_norm_backward({x, {}, {}}, constants, statistics, dy, {out, {}, {}});
        }));
    add(kSum, side, channels, batch, microseconds([&] { gpu_add(out, x, Resample::none, constants.gamma); }));
  }
  const Tensor picture = torch::randn({8, 3, 256, 256}, options);
  const Tensor wide = torch::empty({8, 8, 256, 256}, options.dtype(torch::kBFloat16), kChannelsLast);
  add(kSplit, 256, 3, 8, microseconds([&] {
        cuda::split_channels(8, 3, 256 * 256, picture.data_ptr<float>(), 8,
                             static_cast<kernels::Bf16*>(wide.data_ptr()),
                             c10::cuda::getCurrentCUDAStream().stream());
      }));
  const std::uint32_t images[] = {0, 1, 2, 3, 4, 5, 6, 7};
  add(kNormals, 256, 3, 8, microseconds([&] {
        normal_noise(Rng(1), images, 0, 0, {3, 256, 256}, torch::kCUDA);
      }));
  return rows;
}

}  // namespace dpg::cli
#else
namespace dpg::cli {
Json bench_kernels(const CardLimits&, bool) {
  fail("this build has no GPU kernels; configure with the preset cuda");
}
}  // namespace dpg::cli
#endif
