#include "eval_collect.h"

#include <torch/torch.h>

#include <fstream>
#include <set>

#include "dpg/core/error.h"
#include "dpg/core/file.h"
#include "dpg/evaluate/report_page.h"
#include "gpu.h"
#include "progress.h"

namespace dpg::cli {
namespace {

namespace fs = std::filesystem;
using evaluate::Json;
using evaluate::Results;
using evaluate::WorkBatch;

// The first value of "NAME : value" in a text file; empty where there is none.
std::string line_value(const fs::path& file, const std::string& name) {
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);)
    if (line.rfind(name, 0) == 0 && line.find(':') != std::string::npos) {
      const std::size_t from = line.find_first_not_of(" \t", line.find(':') + 1);
      return from == std::string::npos ? "" : line.substr(from);
    }
  return "";
}

// Rows are what is evaluated; repetitions only have to be there. The same machine appears once.
struct Gathered {
  Results results;
  std::vector<PictureSet> sets;
  std::set<std::string> machines;
};

void add_record(const EvalRun& run, const WorkBatch& batch, std::size_t picture, Gathered& all) {
  const evaluate::RunFolder& folder = run.folder();
  const evaluate::Place place = run.place(batch, picture);
  std::optional<Json> record = folder.record(place, run.job(batch, picture));
  if (!record) {
    ++all.results.missing;
    return;
  }
  if (record->contains("cannot")) {
    if (evaluate::cannot_because(all.results, place.task, place.method).empty())
      all.results.cannot.push_back(
          {{"task", place.task}, {"method", place.method}, {"why", (*record)["cannot"]}});
    return;
  }
  // Weights that were not there when the picture was restored may be there now.
  if (run.scorer().complete(*record, folder.file(place, ".png"), folder.truth(place.picture)))
    folder.write_record(place, run.job(batch, picture), *record);
  all.machines.insert(record->value("machine", Json::object()).dump());
  if (batch.run != 0) return;
  PictureSet& set = all.sets.back();
  set.pictures.push_back(folder.file(place, ".png"));
  set.fingerprints.push_back(record->value("fingerprint", ""));
  Json row = Json::object();
  for (const char* key : {"task", "method", "image", "number", "seed"}) row[key] = (*record)[key];
  for (const std::string& metric : evaluate::picture_metrics())
    for (const std::string& wanted : run.plan().metrics)
      if (wanted == metric) row[metric] = record->contains(metric) ? (*record)[metric] : Json(nullptr);
  for (const char* key : {"residual", "noise_floor", "residual_ratio", "network_calls", "reverse_passes",
                          "operator_calls", "seconds"})
    row[key] = (*record)[key];
  all.results.rows.push_back(std::move(row));
}

Gathered gather(const EvalRun& run) {
  Gathered all;
  std::size_t task = run.plan().tasks.size(), method = 0;
  for (const WorkBatch& batch : run.work()) {
    if (batch.run == 0 && (batch.task != task || batch.method != method)) {
      task = batch.task, method = batch.method;
      const evaluate::Place place = run.place(batch, batch.pictures[0]);
      all.sets.push_back({place.task, place.method, {}, {}, run.names().size()});
    }
    for (const std::size_t picture : batch.pictures) add_record(run, batch, picture, all);
  }
  return all;
}

Json environment_json(const EvalRun& run, const Gathered& all) {
  Json environment = Json::object();
  std::size_t number = 0;
  for (const std::string& machine : all.machines) {
    const Json json = Json::parse(machine);
    for (const auto& [key, value] : json.items())
      environment[all.machines.size() == 1 ? key : str(key, " (", number + 1, ")")] = value;
    ++number;
  }
  environment["processor"] = line_value("/proc/cpuinfo", "model name");
  if (run.prior().device().is_cuda()) environment["GPU"] = gpu_name();
  if (!run.scorer().missing().empty()) environment["unavailable"] = run.scorer().missing();
  return environment;
}

}  // namespace

Results collect(const EvalRun& run, const fs::path& weights, const Json& source) {
  Gathered all = gather(run);
  Results& results = all.results;
  {
    Progress progress("comparing sets");
    std::vector<PictureSet> sets;
    for (const PictureSet& set : all.sets)
      if (evaluate::cannot_because(results, set.task, set.method).empty()) sets.push_back(set);
    results.sets = set_scores(
        run.plan().metrics, sets, run.truths(), run.folder(), weights, run.prior().device(),
        [&](std::size_t done) { progress.update(static_cast<int>(done), static_cast<int>(sets.size())); });
  }
  results.environment = environment_json(run, all);
  results.plan = source;
  results.plan["pictures"] = run.names();
  const fs::path& root = run.folder().root();
  write_text(root / "results.csv", evaluate::results_csv(results, run.plan().metrics));
  write_text(root / "summary.csv", evaluate::summary_csv(results, run.plan()));
  write_text(root / "runtime.csv", evaluate::runtime_csv(results));
  write_text(root / "results.json", evaluate::results_json(results, run.plan()).dump(1) + "\n");
  write_text(root / "report.html", evaluate::report_page(run.plan(), run.names(), run.folder(), results));
  if (results.missing == 0) run.folder().sweep();
  return std::move(all.results);
}

}  // namespace dpg::cli
