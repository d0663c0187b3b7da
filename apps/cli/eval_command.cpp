// dpg eval PLAN -o DIR: pictures x operators x noises x methods, as tables and a report (docs/evaluation.md).
#include <torch/cuda.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <optional>

#include "command.h"
#include "dpg/core/error.h"
#include "dpg/core/file.h"
#include "eval_collect.h"
#include "interrupt.h"
#include "progress.h"
#include "work_queue.h"

namespace dpg::cli {
namespace {

namespace fs = std::filesystem;
using evaluate::Json;

struct Options {
  fs::path plan, out, images, weights;
  RuntimeOptions runtime;
  std::optional<int> first;
  int count = 0, batch = 0, steps = 0;
  std::string shard;
  std::vector<std::string> tasks, methods;
  bool changed = false, dry = false;
};

// What the options say instead of the plan belongs to the plan from then on.
evaluate::Plan planned(const Options& o) {
  evaluate::Plan plan = evaluate::part_of(evaluate::read_plan(o.plan), o.tasks, o.methods);
  if (!o.images.empty()) plan.images = o.images;
  if (o.first) plan.first = *o.first;
  if (o.count > 0) plan.count = o.count;
  if (o.batch > 0) plan.batch = o.batch;
  if (o.steps > 0)
    for (evaluate::PlannedMethod& method : plan.methods) {
      method.base["settings"]["steps"] = o.steps;
      for (auto& [task, members] : method.overrides.items()) members["settings"]["steps"] = o.steps;
    }
  return plan;
}

// The pictures at once: what was asked for, else what the run was begun with, else what suits the device.
int batch_of(const EvalRun& run) {
  if (run.plan().batch > 0) return run.plan().batch;
  const Json kept = run.folder().kept();
  if (kept.is_object() && kept.value("batch", 0) > 0) return kept["batch"].get<int>();
  return run.prior().device().is_cuda() ? 16 : 1;
}

class Reporter {
 public:
  explicit Reporter(const EvalRun& run) : run_(run), bar_("restoring") {}

  // Only the first rank knows the pieces, in the order in which they are dealt out.
  void begin(const std::vector<std::size_t>& pieces) {
    for (const std::size_t piece : pieces) {
      known_.emplace(piece, Known{known_.size() + 1, total_});
      total_ += run_.weight(run_.work()[piece]);
    }
  }

  StepWatcher watcher(std::size_t piece) {
    return [this, piece](int done, int total, const std::function<double()>&) {
      if (bar_.due() && known_.count(piece) > 0)
        bar_.update(share(piece, static_cast<double>(done) / total), place(piece));
    };
  }

  void said(std::size_t piece, const std::string& line) const {
    std::string text = line;
    if (known_.count(piece) > 0) {
      const double done = share(piece, 1);
      const double passed = std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
      text += str(" (", place(piece), ", ", clock_text(passed / done * (1 - done)), " left)");
    }
    if (isatty(STDERR_FILENO) == 1) std::fputs("\r\033[K", stderr);  // the bar is drawn anew below the line
    std::printf("%s\n", text.c_str());
    std::fflush(stdout);
  }

 private:
  struct Known {
    std::size_t number;
    double before;  // weight of the pieces dealt out before
  };
  std::string place(std::size_t piece) const {
    return str("batch ", known_.at(piece).number, " of ", known_.size());
  }
  // Of the whole work, when this part of the piece is done.
  double share(std::size_t piece, double part) const {
    return (known_.at(piece).before + part * run_.weight(run_.work()[piece])) / total_;
  }

  const EvalRun& run_;
  Progress bar_;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  std::map<std::size_t, Known> known_;
  double total_ = 0;
};

void say_unavailable(const EvalRun& run) {
  for (const auto& [metric, why] : run.scorer().missing()) std::fprintf(stderr, "dpg: %s\n", why.c_str());
}

void say_results(const evaluate::Results& results, const fs::path& root) {
  if (results.missing > 0)
    std::printf("%zu restorations are still to be done; the same command goes on with them\n",
                results.missing);
  std::printf("%s and %s, from %zu pictures\n", (root / "report.html").string().c_str(),
              (root / "results.csv").string().c_str(), results.rows.size());
}

void say_work(const EvalRun& run) {
  double calls = 0;
  std::size_t restorations = 0;
  for (const evaluate::WorkBatch& batch : run.work())
    calls += run.weight(batch), restorations += batch.pictures.size();
  std::printf(
      "%zu pictures, %zu tasks, %zu methods: %zu restorations in %zu batches, some %.0f network calls\n",
      run.names().size(), run.plan().tasks.size(), run.plan().methods.size(), restorations, run.work().size(),
      calls);
}

void work_through(const EvalRun& run, WorkQueue& queue, const evaluate::Shard& shard) {
  Reporter reporter(run);
  if (queue.rank() == 0) {
    std::vector<std::size_t> pieces;
    for (std::size_t i = 0; i < run.work().size(); ++i)
      if (shard.takes(i) && !run.finished(run.work()[i])) pieces.push_back(i);
    if (pieces.size() < run.work().size())
      std::printf("%zu of %zu batches are to be done\n", pieces.size(), run.work().size());
    reporter.begin(pieces);
    queue.deal(std::move(pieces));
  }
  while (const auto piece = queue.next()) {
    const bool done = run.restore(run.work()[*piece], reporter.watcher(*piece),
                                  [&](const std::string& line) { reporter.said(*piece, line); });
    if (!done) queue.stop();
  }
  queue.wait();
}

void evaluate_plan(const Options& o, WorkQueue& queue) {
  const evaluate::Shard shard = o.shard.empty() ? evaluate::Shard{} : evaluate::parse_shard(o.shard);
  check(o.shard.empty() || queue.ranks() == 1, "--shard and MPI divide the same work; use one of them");
  RuntimeOptions runtime = o.runtime;
  if (queue.ranks() > 1 && runtime.device == "auto" && torch::cuda::is_available())
    runtime.device = str("cuda:", local_rank() % static_cast<int>(torch::cuda::device_count()));
  EvalRun run(planned(o), o.out, runtime, o.weights);
  if (o.dry) {
    run.use_batch(batch_of(run));
    return say_work(run);
  }
  if (queue.rank() == 0) {
    const int batch = batch_of(run);
    run.folder().begin(run.identity(), {{"batch", batch}}, o.changed);
    run.use_batch(queue.agree(batch));
    say_unavailable(run);
  } else {
    run.use_batch(queue.agree(0));
  }
  const Interrupt interrupt;
  work_through(run, queue, shard);
  if (Interrupt::asked()) {
    std::fprintf(stderr, "dpg: interrupted; the same command goes on where it stopped\n");
    queue.give_up();
    std::exit(kInterrupted);
  }
  if (queue.rank() != 0) return;
  if (!o.shard.empty()) {
    std::printf("shard %s is done; without --shard the same command writes the report\n", o.shard.c_str());
    return;
  }
  Json source = Json::parse(read_text(o.plan), nullptr, true, true);
  source["count"] = run.names().size();
  if (!o.tasks.empty()) source["only_tasks"] = o.tasks;
  if (!o.methods.empty()) source["only_methods"] = o.methods;
  say_results(collect(run, o.weights, source), run.folder().root());
}

void eval(const Options& o) {
  const auto queue = WorkQueue::join();
  try {
    evaluate_plan(o, *queue);
  } catch (const std::exception& error) {
    if (queue->ranks() == 1) throw;
    // The other ranks wait for this one: say why, then end them all.
    std::fprintf(stderr, "dpg: %s\n", error.what());
    queue->give_up();
    throw;
  }
}

}  // namespace

void add_eval_command(CLI::App& app) {
  auto o = std::make_shared<Options>();
  CLI::App* c = app.add_subcommand("eval", "methods against each other on pictures whose truth is known");
  c->add_option("PLAN", o->plan, "what to evaluate: a JSON file (see docs/evaluation.md)")->required();
  c->add_option("-o,--out", o->out, "folder of the run; one that was interrupted goes on")->required();
  c->add_option("--images", o->images, "folder of clean pictures (default: the plan's, or the bundled ones)");
  c->add_option("--first", o->first, "the first one's place in the folder, from 0 on")
      ->check(CLI::Range(0, 1 << 23));
  c->add_option("--count", o->count, "at most so many of them")->check(CLI::Range(1, 1 << 23));
  c->add_option("--tasks", o->tasks, "only these of the plan, as in box,sr4")->delimiter(',');
  c->add_option("--methods", o->methods, "only these of the plan, as in dpg,dps")->delimiter(',');
  c->add_option("--steps", o->steps, "of every method, instead of the plan's: for a quick look")
      ->check(CLI::Range(1, 100000));
  c->add_option("--batch", o->batch, "pictures restored at once (default: 1, on a GPU 16)")
      ->check(CLI::Range(1, 4096));
  c->add_option("--weights", o->weights, "folder with the weights of learned metrics");
  c->add_option("--shard", o->shard, "K/N: only every N-th batch from the K-th on, without a report");
  c->add_flag("--continue-changed", o->changed,
              "go on in a folder that was begun with another plan; what is unaffected is kept");
  c->add_flag("--dry-run", o->dry, "check the plan and say how much work it is; nothing is written");
  add_runtime_options(*c, o->runtime);
  c->callback([o] { eval(*o); });
}

}  // namespace dpg::cli
