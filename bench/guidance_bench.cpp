// What the policy gradient costs beside the network, and how much of it is signal.
//
//   build/release/bench/guidance_bench [FACE.png]
//
// First table: milliseconds of one step's Monte Carlo part with N = 500 at 128x128, and its share of the
// network's part (denoise + pull_back) in the same run. Then, for three operators taken as black boxes: the
// cosine between the guidance J^T v of sampled rewards and that of the exact policy gradient at several time
// steps, with noise drawn on several grids.
#include <torch/torch.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <limits>
#include <thread>

#include "dpg/core/memory.h"
#include "dpg/image/transform.h"
#include "dpg/measure/catalog.h"
#include "dpg/prior/prior.h"
#include "dpg/solve/coarse_noise.h"
#include "dpg/solve/policy_gradient.h"
#include "dpg/tensor/convert.h"

namespace {

using namespace dpg;

constexpr int kSamples = 500, kRuns = 3;
const std::vector<std::uint32_t> kImages = {0};
const Rng kRng(1);
const ImageShape kShape{3, 128, 128};

// Median of nine, in milliseconds.
double milliseconds(const std::function<void()>& work) {
  std::vector<double> times;
  for (int i = 0; i < 10; ++i) {
    const auto start = std::chrono::steady_clock::now();
    work();
    if (i > 0)  // the first run warms up
      times.push_back(
          std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count());
  }
  std::sort(times.begin(), times.end());
  return times[times.size() / 2];
}

struct Scene {
  std::shared_ptr<const Operator> A;
  std::shared_ptr<const NoiseModel> noise;
  Tensor mu, y, prediction;

  Scene(const std::string& op, const std::string& noise_spec, const Tensor& estimate, const Tensor& truth)
      : A(make_operator(op, {{3, 128, 128}, 1, kImages})), noise(make_noise(noise_spec)), mu(estimate) {
    y = measure(A, noise, truth, 1, kImages).y;
    prediction = A->apply(mu);
  }
  PolicyStep step() const {
    return {*A,         *noise,
            y,          mu,
            prediction, next_scale(RewardRule::code, noise->loss(), y - prediction, 3 * 128 * 128, 0, {})};
  }
};

NoiseSource source(std::int64_t grid, std::uint32_t at = 0) {
  return [grid, at](std::int64_t first, std::int64_t count) {
    return coarse_samples(kRng, kImages, at, static_cast<std::uint32_t>(1 + first), count, kShape, grid, grid,
                          torch::kCPU);
  };
}

void print_costs(const Prior& prior, const Tensor& truth) {
  const Tensor x = normal_noise(kRng, kImages, 0, 0, {3, 128, 128});
  Denoised denoised;
  const double network = milliseconds([&] {
    denoised = prior.denoise(x, 500, Track::gradient);
    denoised.pull_back(x);
  });
  std::printf("network, denoise + pull_back %36.1f ms\n", network);
  for (const auto& [op, noise] :
       std::vector<std::pair<std::string, std::string>>{{"sr:4", "gaussian:0.05"},
                                                        {"inpaint:box", "gaussian:0.05"},
                                                        {"blur:sigma=3", "gaussian:0.05"},
                                                        {"motion", "gaussian:0.05"},
                                                        {"sr:4", "poisson:1"},
                                                        {"blur:sigma=3", "poisson:1"},
                                                        {"nonlinear-blur", "gaussian:0.05"},
                                                        {"jpeg:10", "none"}}) {
    const Scene scene(op, noise, denoised.x0, truth);
    const PolicyStep step = scene.step();
    const double streamed =
        milliseconds([&] { streamed_policy_gradient(step, kSamples, as_linear(*scene.A), source(128)); });
    std::printf("%-16s %-14s streamed %8.1f ms, %5.2f of the network", op.c_str(), noise.c_str(), streamed,
                streamed / network);
    if (as_linear(*scene.A) && scene.noise->loss() == Loss::squared) {
      const double collapsed = milliseconds([&] {
        collapsed_policy_gradient(step, normal_noise(kRng, kImages, 0, 2, {kSamples}),
                                  normal_noise(kRng, kImages, 0, 1, {3, 128, 128}));
      });
      std::printf("; collapsed %6.2f ms, %6.4f", collapsed, collapsed / network);
    }
    std::printf("\n");
  }
}

double cosine(const Tensor& a, const Tensor& b) {
  return (a * b).sum().item<double>() / (a.norm().item<double>() * b.norm().item<double>());
}

void print_cosines(const Prior& prior, const std::string& op, const Tensor& truth) {
  struct Column {
    const char* name;
    std::int64_t grid;
    bool pairs;
  };
  const std::vector<Column> columns = {{"8", 8, false},   {"16", 16, false},    {"32", 32, false},
                                       {"64", 64, false}, {"full", 128, false}, {"full, pairs", 128, true}};

  std::printf("\n%s: cosine of the guidance with the exact one, %d evaluations\n   t", op.c_str(), kSamples);
  for (const Column& column : columns) std::printf(" %11s", column.name);
  std::printf("\n");
  for (const int t : {900, 700, 500, 300, 150, 50}) {
    const double abar = prior.schedule().alpha_bar()[static_cast<std::size_t>(t)];
    const Tensor noise = normal_noise(kRng, kImages, 7, 0, {3, 128, 128});
    const Denoised denoised =
        prior.denoise(std::sqrt(abar) * truth + std::sqrt(1 - abar) * noise, t, Track::gradient);
    const Scene scene(op, "gaussian:0.05", denoised.x0, truth);
    const PolicyStep step = scene.step();
    const Tensor exact =
        denoised.pull_back(exact_policy_gradient(step, std::numeric_limits<double>::infinity()));
    std::printf("%4d", t);
    for (const Column& column : columns) {
      double sum = 0;
      for (std::uint32_t run = 0; run < kRuns; ++run) {
        const NoiseSource samples = source(column.grid, run);
        const int draws = column.pairs ? kSamples / 2 : kSamples;  // a black box is asked for both signs
        sum +=
            cosine(denoised.pull_back(streamed_policy_gradient(step, draws, column.pairs, samples)), exact);
      }
      std::printf(" %11.3f", sum / kRuns);
    }
    std::printf("\n");
    std::fflush(stdout);
  }
}

}  // namespace

int main(int argc, char** argv) {
  reuse_freed_memory();  // as the program does
  if (std::getenv("OMP_NUM_THREADS") == nullptr)
    torch::set_num_threads(static_cast<int>(std::thread::hardware_concurrency()));
  const auto prior = load_prior(bundled_prior_path());
  const std::string face = argc > 1 ? argv[1] : DPG_SOURCE_DIR "/examples/pictures/face1.png";
  const Tensor truth = to_tensor(fit(to_rgb(read_image(face)), 128));
  print_costs(*prior, truth);
  for (const char* op : {"sr:4", "inpaint:box", "blur:sigma=3"}) print_cosines(*prior, op, truth);
}
