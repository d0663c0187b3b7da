// dpg restore IN -o OUT: a sample of the posterior for a degraded picture, or for each in a folder.
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <set>

#include "command.h"
#include "dpg/core/error.h"
#include "dpg/solve/catalog.h"
#include "interrupt.h"
#include "manifest.h"
#include "restore_job.h"

namespace dpg::cli {
namespace {

namespace fs = std::filesystem;

struct Options {
  RestoreJob job;
  fs::path in, out;
  std::string format = "png";
  bool json = false;
  // Settings with an option of their own; empty: not given.
  std::string steps, sampler, spacing, variance, eta, mc, strength, estimator, queries;
  std::vector<std::string> set;  // NAME=VALUE

  std::vector<std::pair<const char*, const std::string*>> named() const {
    return {{"steps", &steps},    {"sampler", &sampler}, {"spacing", &spacing},   {"variance", &variance},
            {"eta", &eta},        {"mc", &mc},           {"strength", &strength}, {"estimator", &estimator},
            {"queries", &queries}};
  }
};

std::vector<fs::path> outputs_for(const Options& o, const std::vector<fs::path>& inputs) {
  if (!fs::is_directory(o.in)) {
    check(o.out.has_extension(), "the restored picture cannot be called ", o.out.string(),
          "; name it like x.png");
    return {o.out};
  }
  fs::create_directories(o.out);
  std::vector<fs::path> outputs;
  for (const fs::path& input : inputs) outputs.push_back(o.out / (input.stem().string() + "." + o.format));
  return outputs;
}

double mean(const std::vector<Json>& list, const char* key) {
  double sum = 0;
  for (const Json& one : list) sum += one.at(key).get<double>();
  return sum / static_cast<double>(list.size());
}

// Of one picture: its own summary. Of several: the means, and each.
Json whole_summary(const Options& o, const std::vector<Json>& pictures, const ImageShape& shape) {
  Json json = {{"method", o.job.plan.method}, {"settings", settings_for(o.job.plan, shape)}};
  if (pictures.size() == 1) {
    json.update(pictures[0]);
    return json;
  }
  json["pictures"] = pictures.size();
  for (const char* key : {"residual", "noise_floor", "seconds", "network_calls", "operator_calls"})
    json[key] = mean(pictures, key);
  for (const char* key : {"psnr", "ssim", "lpips_squeeze"})
    if (pictures[0].contains(key) && pictures[0][key].is_number()) json[key] = mean(pictures, key);
  json["images"] = pictures;
  return json;
}

void restore(Options o) {
  if (!o.job.plan.preset.empty()) o.job.plan.method = load_preset(o.job.plan.preset).method;
  for (const auto& [name, value] : o.named())
    if (!value->empty()) set_from_text(o.job.plan.settings, std::string(name) + "=" + *value);
  for (const std::string& assignment : o.set) set_from_text(o.job.plan.settings, assignment);
  make_solver(o.job.plan.method, o.job.plan.settings);  // wrong settings are told before anything is loaded
  check(o.job.problem.op.empty() || !o.job.problem.noise.empty(), "--noise must not be empty");

  const std::vector<fs::path> inputs = inputs_in(o.in, o.job.problem);
  const std::vector<fs::path> outputs = outputs_for(o, inputs);
  std::vector<Problem> problems;
  for (const fs::path& input : inputs)
    problems.push_back(read_problem(input, o.job.problem, static_cast<std::uint32_t>(problems.size())));
  // What the method cannot do is told before the network is loaded, which takes longer.
  for (const Problem& problem : problems) {
    const Measurement m = join({&problem, 1}, 1, 1);
    make_solver(o.job.plan.method, settings_for(o.job.plan, problem.shape))->check_problem(m);
  }
  const auto prior = load_prior(o.job.runtime);
  if (o.job.plan.batch == 0) o.job.plan.batch = prior->device().is_cuda() ? 16 : 1;

  const Interrupt interrupt;
  std::vector<Json> summaries;
  const std::string missing = run_job(o.job, *prior, problems, outputs, [&](const Restored& restored) {
    summaries.push_back(summary(restored));
    if (!o.json) std::printf("%s\n", brief(restored).c_str());
    std::fflush(stdout);
  });
  if (o.json) std::printf("%s\n", whole_summary(o, summaries, problems[0].shape).dump(2).c_str());
  if (!missing.empty() && !o.json) std::fprintf(stderr, "dpg: %s\n", missing.c_str());
  if (Interrupt::asked()) std::exit(kInterrupted);
}

}  // namespace

void add_restore_command(CLI::App& app) {
  auto o = std::make_shared<Options>();
  o->job.plan.batch = 0;
  CLI::App* c = app.add_subcommand("restore", "restore a degraded picture, or each in a folder");
  c->add_option("IN", o->in, "a degraded picture or its sidecar .json, or a folder of them")->required();
  c->add_option("-o,--out", o->out, "the restored picture (a folder when IN is one)")->required();
  c->add_option("--op", o->job.problem.op,
                "what happened to the picture (see \"dpg operators\"); default: the sidecar says");
  c->add_option("--noise", o->job.problem.noise, "with --op: auto, gaussian:S, poisson:R, ..., none")
      ->capture_default_str();
  c->add_option("--op-seed", o->job.problem.op_seed, "with --op: seed of random masks and trajectories")
      ->capture_default_str();
  c->add_option("--method", o->job.plan.method, "see \"dpg methods\"")->capture_default_str();
  c->add_option("--preset", o->job.plan.preset, "tuned settings by name (see \"dpg presets\"), or a file");
  c->add_option("--steps", o->steps, "network calls");
  c->add_option("--sampler", o->sampler, "ddpm or ddim");
  c->add_option("--spacing", o->spacing, "even, or power:P, denser at low noise");
  c->add_option("--variance", o->variance, "ddpm: auto, learned, small or large");
  c->add_option("--eta", o->eta, "ddim: 0 deterministic to 1");
  c->add_option("--mc", o->mc, "Monte Carlo samples of a step");
  c->add_option("--strength", o->strength, "guidance strength B, or auto");
  c->add_option("--estimator", o->estimator, "mc, exact or auto");
  c->add_option("--queries", o->queries, "evaluations of the operator in the whole run");
  c->add_option("--set", o->set, "any other setting of the method, NAME=VALUE");
  c->add_option("--samples", o->job.plan.samples, "posterior samples; also writes their mean and deviation")
      ->capture_default_str();
  c->add_option("--seed", o->job.plan.seed, "seed")->capture_default_str();
  c->add_option("--batch", o->job.plan.batch, "pictures restored at once (default: 1, on a GPU 16)");
  c->add_option("--truth", o->job.truth, "the true picture, or a folder: PSNR, SSIM and LPIPS");
  c->add_option("--weights", o->job.weights, "folder with the weights of LPIPS");
  c->add_flag("--trace", o->job.trace,
              "also write the residual of each step, as .trace.json and .trace.html");
  c->add_option("--format", o->format, "extension of the pictures in a folder")->capture_default_str();
  c->add_flag("--json", o->json, "a summary for programs on the standard output");
  add_runtime_options(*c, o->job.runtime);
  c->callback([o] { restore(*o); });
}

}  // namespace dpg::cli
