// dpg model info | convert | forward: look into a checkpoint, rewrite it, run the bare network.
#include <torch/torch.h>

#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "command.h"
#include "dpg/checkpoint/safetensors_writer.h"
#include "dpg/core/error.h"
#include "dpg/tensor/convert.h"
#include "runtime.h"

namespace dpg::cli {
namespace {

std::vector<NamedShape> names_and_shapes(const StateDict& checkpoint) {
  std::vector<NamedShape> all;
  for (const TensorView& t : checkpoint.tensors()) all.push_back({t.name, t.shape});
  return all;
}

std::string shape_text(const Shape& shape) {
  std::string text = "[";
  for (std::size_t i = 0; i < shape.size(); ++i) text += (i > 0 ? ", " : "") + std::to_string(shape[i]);
  return text + "]";
}

void print_tensors(const StateDict& checkpoint) {
  for (const TensorView& t : checkpoint.tensors())
    std::printf("  %-50s %-5s %s\n", t.name.c_str(), dtype_name(t.dtype), shape_text(t.shape).c_str());
}

void info(const std::string& file, const ArchitectureSource& architecture, bool list_tensors) {
  const StateDict checkpoint = StateDict::open(file);
  std::printf("file        %s\nformat      %s\ntensors     %zu\nparameters  %.1f M (%lld)\n", file.c_str(),
              format_name(checkpoint.format()), checkpoint.tensors().size(),
              static_cast<double>(checkpoint.parameters()) / 1e6,
              static_cast<long long>(checkpoint.parameters()));
  const Detection detection = detect_unet(names_and_shapes(checkpoint));
  if (!detection.config) {
    std::printf("network     %s\n", detection.explanation.c_str());
    print_tensors(checkpoint);
    return;
  }
  std::printf("network     %s\n",
              detection.known_as.empty() ? "guided-diffusion (ADM) U-Net" : detection.known_as.c_str());
  UNetConfig config = *detection.config;
  std::string undecided;
  try {
    config = checkpoint_config(checkpoint, file, architecture);
    check_tensors(config, names_and_shapes(checkpoint), file);
  } catch (const Error& error) {
    undecided = error.what();  // shown below; what was detected is still worth a look
  }
  std::printf("%s\n", to_json(config).dump(1).c_str());
  if (!undecided.empty()) std::printf("note        %s\n", undecided.c_str());
  if (list_tensors) print_tensors(checkpoint);
}

void convert(const std::string& input, const std::string& output, const std::string& dtype) {
  check(std::filesystem::path(output).extension() == ".safetensors",
        "the output must end in .safetensors, not ", output);
  check(dtype.empty() || dtype == "f16" || dtype == "bf16" || dtype == "f32", "--dtype ", dtype,
        " is not one of f16, bf16, f32");
  const auto wanted = dtype == "f16" ? torch::kHalf : dtype == "bf16" ? torch::kBFloat16 : torch::kFloat;
  const StateDict checkpoint = StateDict::open(input);
  std::vector<std::pair<std::string, Tensor>> tensors;
  for (const TensorView& view : checkpoint.tensors()) {
    Tensor tensor = to_tensor(view);
    if (!dtype.empty() && is_floating(view.dtype)) {
      tensor = tensor.to(wanted);
      // f16 ends at 65504: a weight beyond it would silently become infinite.
      check_finite(tensor, str(input, ": tensor ", view.name, " as ", dtype));
    }
    tensors.emplace_back(view.name, tensor);
  }
  save_tensors(output, tensors, checkpoint.metadata());
  // The architecture travels with the weights.
  const auto sidecar = std::filesystem::path(input).replace_extension(".json");
  const auto copy = std::filesystem::path(output).replace_extension(".json");
  std::error_code ignored;
  if (std::filesystem::exists(sidecar) && sidecar.extension() != std::filesystem::path(input).extension() &&
      !std::filesystem::equivalent(sidecar, copy, ignored))
    std::filesystem::copy_file(sidecar, copy, std::filesystem::copy_options::overwrite_existing);
}

struct ForwardOptions {
  RuntimeOptions runtime;
  std::string input, cotangent, output;
  int t = -1;
};

// Names as in the reference tensors: x, t in; output, and with a cotangent input_gradient, out.
void forward(const ForwardOptions& o) {
  const auto prior = load_prior(o.runtime);
  const auto in = load_tensors(o.input);
  check(in.count("x") == 1, o.input, " has no tensor \"x\"");
  check(o.t >= 0 || in.count("t") == 1, o.input, " has no tensor \"t\"; give --t");
  const bool with_gradient = !o.cotangent.empty();
  const torch::AutoGradMode grad_mode(with_gradient);
  const Tensor x = in.at("x").to(prior->device(), torch::kFloat).requires_grad_(with_gradient);
  const Tensor t = o.t >= 0 ? torch::full({x.size(0)}, o.t, torch::kLong) : in.at("t");
  const Tensor labels = o.runtime.label == NetworkPrior::kNoLabel
                            ? Tensor()
                            : torch::full({x.size(0)}, o.runtime.label, torch::kLong);
  const Tensor output = prior->network().forward(x, t.to(prior->device()), labels);
  std::vector<std::pair<std::string, Tensor>> results{{"output", output}};
  if (with_gradient) {
    const auto file = load_tensors(o.cotangent);
    check(file.count("cotangent") == 1, o.cotangent, " has no tensor \"cotangent\"");
    const Tensor v = file.at("cotangent").to(output.device(), torch::kFloat);
    check(v.sizes() == output.sizes(), "the cotangent has shape ", v.sizes(), ", the output ",
          output.sizes());
    results.emplace_back("input_gradient", torch::autograd::grad({output}, {x}, {v})[0]);
  }
  save_tensors(o.output, results, {{"precision", precision_name(prior->network().precision())}});
}

void add_info(CLI::App& model) {
  struct Options {
    std::string file;
    ArchitectureSource architecture;
    bool tensors = false;
  };
  auto o = std::make_shared<Options>();
  CLI::App* command =
      model.add_subcommand("info", "format, parameters, tensors and the detected architecture");
  command->add_option("file", o->file, "checkpoint")->required();
  add_architecture_options(*command, o->architecture);
  command->add_flag("--tensors", o->tensors, "list every tensor");
  command->callback([o] { info(o->file, o->architecture, o->tensors); });
}

void add_convert(CLI::App& model) {
  struct Options {
    std::string input, output, dtype;
  };
  auto o = std::make_shared<Options>();
  CLI::App* command = model.add_subcommand("convert", "rewrite any checkpoint as safetensors");
  command->add_option("input", o->input, "checkpoint")->required();
  command->add_option("output", o->output, "OUT.safetensors")->required();
  command->add_option("--dtype", o->dtype, "f16, bf16 or f32 (default: as it is)");
  command->callback([o] { convert(o->input, o->output, o->dtype); });
}

void add_forward(CLI::App& model) {
  auto o = std::make_shared<ForwardOptions>();
  CLI::App* command = model.add_subcommand("forward", "run the bare network on tensors, to check parity");
  command->add_option("--in", o->input, "safetensors with x [N, C, H, W] and, without --t, t [N]")
      ->required();
  command->add_option("--t", o->t, "time step for all images");
  command->add_option("--cotangent", o->cotangent, "safetensors with cotangent: also gives input_gradient");
  command->add_option("--out", o->output, "safetensors to write")->required();
  add_runtime_options(*command, o->runtime);
  command->callback([o] { forward(*o); });
}

}  // namespace

void add_model_command(CLI::App& app) {
  CLI::App* model = app.add_subcommand("model", "look into checkpoints, convert them, run the bare network");
  model->require_subcommand(1);
  add_info(*model);
  add_convert(*model);
  add_forward(*model);
}

}  // namespace dpg::cli
