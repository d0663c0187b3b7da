#include "runtime.h"

#include <sched.h>
#include <torch/cuda.h>
#include <torch/torch.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <utility>

#include "dpg/core/error.h"

namespace dpg::cli {
namespace {

// Cores this process may run on: fewer than the machine's in a container or under taskset.
int available_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) != 0) return 1;
  return CPU_COUNT(&set);
}

// Said once: where there is a card, or a build for one, somebody expects it to be used.
void say_why_not_gpu() {
  static bool said = false;
  if (std::exchange(said, true)) return;
#ifdef DPG_CUDA
  std::fprintf(stderr,
               "dpg: no usable GPU (none in the machine, or a driver too old): computing on the CPU\n");
#else
  if (std::filesystem::exists("/dev/nvidiactl"))
    std::fprintf(stderr, "dpg: this build cannot use the GPU (see the preset cuda): computing on the CPU\n");
#endif
}

}  // namespace

void add_architecture_options(CLI::App& command, ArchitectureSource& source) {
  command.add_option("--config", source.config_file,
                     "architecture JSON (default: beside the checkpoint, or detected)");
  command.add_option("--arch", source.flags,
                     "what shapes can't tell, e.g. num_heads=4,use_new_attention_order=true");
}

void add_runtime_options(CLI::App& command, RuntimeOptions& options) {
  command.add_option("--model", options.model,
                     "checkpoint: .pt, .pth, .safetensors (default: the bundled prior)");
  add_architecture_options(command, options.architecture);
  command.add_option("--device", options.device, "auto, cpu, cuda or cuda:N")->capture_default_str();
  command.add_option("--precision", options.precision, "auto, fp32, tf32 (GPU) or bf16")
      ->capture_default_str();
  command.add_option("--threads", options.threads, "CPU threads (default: all cores)");
  command.add_option("--class", options.label, "class for a class-conditional prior");
}

torch::Device choose_device(const std::string& name) {
  const bool cuda = torch::cuda::is_available();
  if (name == "auto" && !cuda) say_why_not_gpu();
  if (name == "auto") return cuda ? torch::kCUDA : torch::kCPU;
  if (name == "cpu") return torch::kCPU;
  check(name.rfind("cuda", 0) == 0, "device \"", name, "\" is not one of auto, cpu, cuda, cuda:N");
  check(cuda, "--device ", name,
        ": no usable GPU (none in the machine, a driver too old, or a build without CUDA); ",
        "use --device cpu");
  try {
    const torch::Device device(name);
    const int count = static_cast<int>(torch::cuda::device_count());
    check(device.index() < count, "--device ", name, ": GPUs are numbered 0 to ", count - 1);
    return device;
  } catch (const c10::Error&) {
    fail("device \"", name, "\" is not one of auto, cpu, cuda, cuda:N");
  }
}

void use_threads(int threads) {
  check(threads >= 0, "threads = ", threads, " must not be negative");
  // The tensor library may come up with one thread; a user's OMP_NUM_THREADS still counts.
  if (threads == 0 && std::getenv("OMP_NUM_THREADS") != nullptr) return;
  torch::set_num_threads(threads > 0 ? threads : available_cores());
}

std::shared_ptr<const NetworkPrior> load_prior(const RuntimeOptions& options) {
  use_threads(options.threads);
  LoadOptions load;
  load.architecture = options.architecture;
  load.precision = options.precision;
  load.device = choose_device(options.device);
  load.label = options.label;
  return dpg::load_prior(options.model.empty() ? bundled_prior_path() : options.model, load);
}

}  // namespace dpg::cli
