// Options that every command with a network shares, and what they mean.
#pragma once

#include <CLI/App.hpp>
#include <memory>
#include <string>

#include "dpg/prior/prior.h"

namespace dpg::cli {

struct RuntimeOptions {
  std::string model;  // empty: the bundled prior
  ArchitectureSource architecture;
  std::string device = "auto";     // auto, cpu, cuda, cuda:N
  std::string precision = "auto";  // auto, fp32, tf32, bf16
  int threads = 0;                 // 0: all cores
  int label = NetworkPrior::kNoLabel;
};

void add_architecture_options(CLI::App& command, ArchitectureSource& source);
void add_runtime_options(CLI::App& command, RuntimeOptions& options);

// "auto" is the GPU when there is one this build can use, otherwise the CPU. That is said on stderr, unless
// neither the machine nor the build has anything to do with a GPU.
torch::Device choose_device(const std::string& name);
void use_threads(int threads);
std::shared_ptr<const NetworkPrior> load_prior(const RuntimeOptions& options);

}  // namespace dpg::cli
