// How long a step takes on this machine's GPU, beside what the arithmetic alone would take.
#include <torch/cuda.h>
#include <torch/torch.h>

#include <unistd.h>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <numeric>

#include "bench_kernels.h"
#include "command.h"
#include "dpg/core/error.h"
#include "dpg/image/image.h"
#include "dpg/measure/catalog.h"
#include "dpg/prior/network_cost.h"
#include "dpg/solve/catalog.h"
#include "dpg/solve/settings.h"
#include "dpg/tensor/convert.h"
#include "gpu.h"
#include "runtime.h"

namespace dpg::cli {
namespace {

namespace fs = std::filesystem;

constexpr int kSide = 256;
constexpr int kWarmUp = 6;  // steps before the clock starts: libraries set up, the network is recorded

struct BenchOptions {
  bool gpu = false, json = false, whole = false, kernels = false, parts = false;
  std::string networks = "ffhq,imagenet", precision = "bf16";
  std::vector<int> batches = {1, 8};
  int steps = 30;
};

struct Task {
  const char *name, *method, *op, *settings;
};
// The columns of docs/performance.md.
const Task kTasks[] = {
    {"DPS, SR x4", "dps", "sr:4", R"({"steps": 1000})"},
    {"DPG, SR x4, N 500", "dpg", "sr:4", R"({"steps": 1000, "estimator": "mc", "mc": 500, "strength": 60})"},
    {"DPG, Gaussian 61x61, N 500", "dpg", "blur:sigma=3,size=61",
     R"({"steps": 1000, "estimator": "mc", "mc": 500, "strength": 60})"},
    {"DPG, inpainting, N 5000", "dpg", "inpaint:box,height=128,width=128,position=centre",
     R"({"steps": 1000, "estimator": "mc", "mc": 5000, "strength": 60})"},
};

UNetConfig architecture(const std::string& name) {
  Json fields = {{"image_size", kSide},     {"num_head_channels", 64},      {"learn_sigma", true},
                 {"resblock_updown", true}, {"use_scale_shift_norm", true}, {"num_channels", 128},
                 {"num_res_blocks", 1},     {"attention_resolutions", "16"}};
  if (name == "imagenet")
    fields.update({{"num_channels", 256}, {"num_res_blocks", 2}, {"attention_resolutions", "32,16,8"}});
  else
    check(name == "ffhq", "network \"", name, "\" is not one of ffhq, imagenet");
  return unet_config_from_json(fields);
}

class Clock {
 public:
  Clock() { restart(); }
  void restart() {
    torch::cuda::synchronize();
    start_ = std::chrono::steady_clock::now();
  }
  double seconds() const {
    torch::cuda::synchronize();
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  }

 private:
  std::chrono::steady_clock::time_point start_;
};

// Of a large product of random numbers.
double product_tflops(torch::ScalarType type) {
  const auto options = torch::TensorOptions(torch::kCUDA).dtype(type);
  const Tensor a = torch::randn({8192, 8192}, options), b = torch::randn({8192, 8192}, options);
  Tensor c = torch::matmul(a, b);
  const int repeats = type == torch::kFloat ? 3 : 10;
  Clock clock;
  for (int i = 0; i < repeats; ++i) torch::matmul_out(c, a, b);
  return 2 * std::pow(8192.0, 3) / (clock.seconds() / repeats) * 1e-12;
}

// Of a large copy, a second: read and written.
double copy_terabytes() {
  const Tensor from = torch::randn({1 << 30}, torch::TensorOptions(torch::kCUDA).dtype(torch::kBFloat16));
  Tensor to = torch::empty_like(from);
  to.copy_(from);
  Clock clock;
  for (int i = 0; i < 10; ++i) to.copy_(from);
  return 2 * 2 * std::pow(2.0, 30) / (clock.seconds() / 10) * 1e-12;
}

CardLimits measure_limits() {
  at::globalContext().setAllowTF32CuBLAS(false);  // fp32 is to mean fp32
  return {product_tflops(torch::kBFloat16), product_tflops(torch::kFloat), copy_terabytes()};
}

Measurement make_measurement(const Task& task, int batch) {
  const ImageShape shape{3, kSide, kSide};
  std::vector<std::uint32_t> images(static_cast<std::size_t>(batch));
  std::iota(images.begin(), images.end(), 0u);
  const std::shared_ptr<const Operator> A = make_operator(task.op, {shape, 1, images});
  const std::shared_ptr<const NoiseModel> noise = make_noise("gaussian:0.05");
  const Tensor truth = torch::rand({batch, 3, kSide, kSide}) * 2 - 1;
  const Tensor y = A->apply(truth);
  return {y + 0.05 * torch::randn_like(y), A, noise};
}

// Milliseconds of one step for the whole batch.
double step_time(const Task& task, const Prior& prior, int batch, int steps) {
  const std::unique_ptr<Solver> solver = make_solver(task.method, Json::parse(task.settings));
  const Measurement m = make_measurement(task, batch);
  std::vector<std::uint32_t> images(static_cast<std::size_t>(batch));
  std::iota(images.begin(), images.end(), 0u);
  Clock clock;
  double seconds = 0;
  solver->solve(m, prior, Rng(1), images, [&](const StepRecord& record) {
    if (record.done == kWarmUp) clock.restart();
    if (record.done < kWarmUp + steps) return Next::go_on;
    seconds = clock.seconds();
    return Next::stop;
  });
  return 1e3 * seconds / steps;
}

double network_time(const Prior& prior, int batch, int steps) {
  const Tensor x = torch::randn({batch, 3, kSide, kSide}, torch::kCUDA), v = torch::randn_like(x);
  for (int i = 0; i < kWarmUp; ++i) prior.denoise(x, 500, Track::gradient).pull_back(v);
  Clock clock;
  for (int i = 0; i < steps; ++i) prior.denoise(x, 500, Track::gradient).pull_back(v);
  return 1e3 * clock.seconds() / steps;
}

void print_row(const char* name, double ms, int batch, double floor_ms, double gibibytes) {
  std::printf("  %-28s%10.2f%12.2f%10.2f%12.1f\n", name, ms, ms / batch, ms / floor_ms, gibibytes);
  std::fflush(stdout);
}

Json bench_network(const std::string& name, const BenchOptions& o, const CardLimits& limits) {
  const UNetConfig config = architecture(name);
  const double flop = 2 * network_flop(config, kSide, kSide);
  Json rows = Json::array();
  for (const int batch : o.batches) {
    const auto prior = std::make_shared<const NetworkPrior>(
        std::make_shared<const UNet>(config, random_weights(config, 1, torch::kCUDA),
                                     choose_precision(o.precision, torch::kCUDA), torch::kCUDA));
    const double floor_ms = 1e-9 * flop * batch / limits.bf16_tflops;
    if (!o.json)
      std::printf(
          "%s, %dx%d, batch %d, %s: %.2f TFLOP a picture and step, floor %.2f ms a step\n"
          "  %-28s%10s%12s%10s%12s\n",
          name.c_str(), kSide, kSide, batch, o.precision.c_str(), 1e-12 * flop, floor_ms, "", "ms/step",
          "ms/picture", "of floor", "GiB at peak");
    const auto add = [&](const char* what, auto&& measure) {
      reset_gpu_peak();
      const double ms = measure(), memory = gpu_peak_gibibytes();
      rows.push_back({{"network", name},
                      {"batch", batch},
                      {"what", what},
                      {"ms_per_step", ms},
                      {"floor_ms", floor_ms},
                      {"peak_gib", memory}});
      if (!o.json) print_row(what, ms, batch, floor_ms, memory);
    };
    add("network alone", [&] { return network_time(*prior, batch, o.steps); });
    for (const Task& task : kTasks) add(task.name, [&] { return step_time(task, *prior, batch, o.steps); });
  }
  return rows;
}

// A file that goes away with this.
struct TemporaryFile {
  fs::path path = fs::temp_directory_path() / str("dpg-bench-", getpid(), ".safetensors");
  ~TemporaryFile() {
    std::error_code ignored;
    fs::remove(path, ignored);
  }
};

// Whole restorations with the FFHQ network, from the measurement to the saved picture; and its loading.
Json bench_whole(const BenchOptions& o) {
  const UNetConfig config = architecture("ffhq");
  const TemporaryFile model, picture{fs::temp_directory_path() / str("dpg-bench-", getpid(), ".png")};
  {
    const WeightSource weights = random_weights(config, 1, torch::kCUDA);
    std::vector<std::pair<std::string, Tensor>> tensors;
    for (const NamedShape& t : expected_tensors(config))
      tensors.emplace_back(t.name, weights(t.name).to(torch::kHalf));
    save_tensors(model.path, tensors);
  }
  LoadOptions load;
  load.precision = o.precision;
  load.device = torch::kCUDA;
  load.architecture.flags =
      "image_size=256,num_head_channels=64,use_new_attention_order=false,noise_schedule=linear,diffusion_"
      "steps=1000";
  Clock clock;
  auto prior = load_prior(model.path.string(), load);
  const double load_seconds = clock.seconds();
  Json result = {{"load_seconds", load_seconds}};
  if (!o.json) std::printf("FFHQ network, from the file cache to the GPU: %.2f s\n", load_seconds);
  const Tensor x = torch::randn({1, 3, kSide, kSide}, torch::kCUDA);
  for (const char* call : {"first call", "second call (records)", "third call"}) {
    clock.restart();
    prior->denoise(x, 500, Track::gradient).pull_back(x);
    result[call] = clock.seconds();
    if (!o.json) std::printf("  %s: %.3f s\n", call, clock.seconds());
  }
  const struct {
    const char *name, *settings;
  } runs[] = {
      {"DDIM 100", R"({"sampler": "ddim", "steps": 100, "estimator": "mc", "mc": 500, "strength": 60})"},
      {"DDPM 1000", R"({"sampler": "ddpm", "steps": 1000, "estimator": "mc", "mc": 500, "strength": 60})"}};
  for (const auto& run : runs) {
    prior = load_prior(model.path.string(), load);  // nothing recorded yet
    const Measurement m = make_measurement(kTasks[1], 1);
    const std::uint32_t image[] = {0};
    clock.restart();
    const Result restored = make_solver("dpg", Json::parse(run.settings))->solve(m, *prior, Rng(1), image);
    write_image(picture.path, to_image(restored.image));
    const double seconds = clock.seconds();
    result[run.name] = seconds;
    if (!o.json)
      std::printf("DPG, SR x4, %s steps, measurement to saved picture: %.2f s\n", run.name, seconds);
  }
  return result;
}

void bench(const BenchOptions& o) {
  check(o.gpu, "dpg bench measures the GPU: give --gpu (for the CPU, build/release/bench has programs)");
  check(o.steps >= 1, "--steps ", o.steps, " must be at least 1");
  choose_device("cuda");
  launch_steps_in_parts(o.parts);

  const CardLimits limits = measure_limits();
  Json all = {{"card", gpu_name()},
              {"bf16_tflops", limits.bf16_tflops},
              {"fp32_tflops", limits.fp32_tflops},
              {"copy_tb_per_second", limits.copy_terabytes},
              {"precision", o.precision},
              {"rows", Json::array()}};
  if (!o.json)
    std::printf("%s: products %.0f TFLOP/s in bf16, %.0f in fp32, copies %.2f TB/s, all measured now\n",
                gpu_name().c_str(), limits.bf16_tflops, limits.fp32_tflops, limits.copy_terabytes);
  std::string rest = o.networks;
  while (!rest.empty()) {
    const std::size_t comma = rest.find(',');
    for (Json& row : bench_network(rest.substr(0, comma), o, limits)) all["rows"].push_back(row);
    rest = comma == std::string::npos ? "" : rest.substr(comma + 1);
  }
  if (o.whole) all["whole"] = bench_whole(o);
  if (o.kernels) all["kernels"] = bench_kernels(limits, o.json);
  if (o.json) std::printf("%s\n", all.dump(2).c_str());
}

}  // namespace

void add_bench_command(CLI::App& app) {
  auto o = std::make_shared<BenchOptions>();
  CLI::App* command = app.add_subcommand("bench", "time a step on this machine's GPU against its floor");
  command->add_flag("--gpu", o->gpu, "two 256x256 networks with random weights, four problems");
  command->add_option("--networks", o->networks, "ffhq, imagenet, or both")->capture_default_str();
  command->add_option("--batch", o->batches, "pictures at a time; more than one may be given")
      ->delimiter(',')
      ->capture_default_str();
  command->add_option("--precision", o->precision, "fp32, tf32 or bf16")->capture_default_str();
  command->add_option("--steps", o->steps, "steps to time")->capture_default_str();
  command->add_flag("--whole", o->whole,
                    "also whole restorations, from the measurement to the saved picture");
  command->add_flag("--kernels", o->kernels, "also the GPU's own kernels, each by itself");
  command->add_flag("--parts", o->parts, "launch a step in parts, instead of as one CUDA graph");
  command->add_flag("--json", o->json, "for programs");
  command->callback([o] { bench(*o); });
}

}  // namespace dpg::cli
