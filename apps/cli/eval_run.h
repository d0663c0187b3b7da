// The restorations of an evaluation: a plan, its pictures and a prior made into batches, and each batch into
// files of the run's folder.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "dpg/evaluate/plan.h"
#include "dpg/evaluate/results.h"
#include "dpg/evaluate/store.h"
#include "dpg/evaluate/work_list.h"
#include "eval_scores.h"
#include "restoration.h"
#include "runtime.h"

namespace dpg::cli {

class EvalRun {
 public:
  // Checks all that can be wrong before anything is computed: pictures, operators, noises, settings.
  EvalRun(evaluate::Plan plan, const std::filesystem::path& folder, RuntimeOptions runtime,
          const std::filesystem::path& weights);

  const evaluate::Plan& plan() const { return plan_; }
  const evaluate::RunFolder& folder() const { return folder_; }
  const NetworkPrior& prior() const { return *prior_; }
  const PictureScorer& scorer() const { return scorer_; }
  std::vector<std::string> names() const;             // of the pictures, without extension
  evaluate::Json identity() const;                    // all that the results depend on
  std::vector<std::filesystem::path> truths() const;  // files of the run's folder

  void use_batch(int batch);  // before the following
  const std::vector<evaluate::WorkBatch>& work() const { return work_; }
  bool finished(const evaluate::WorkBatch& batch) const;
  double weight(const evaluate::WorkBatch& batch) const;  // its share of the work, in network calls
  // Restores the batch and writes what is not there yet. False when interrupted: then nothing was written.
  // `said` gets one line about each picture.
  bool restore(const evaluate::WorkBatch& batch, const StepWatcher& watcher,
               const std::function<void(const std::string&)>& said) const;

  evaluate::Place place(const evaluate::WorkBatch& batch, std::size_t picture) const;
  // Which job a record must belong to: a name for everything that its picture depends on.
  std::string job(const evaluate::WorkBatch& batch, std::size_t picture) const;

 private:
  struct Picture {
    std::filesystem::path file;
    std::string name, fingerprint;
  };
  RestorePlan restore_plan(const evaluate::WorkBatch& batch) const;
  const evaluate::MethodSettings& settings(const evaluate::WorkBatch& batch) const;
  std::string cannot(const RestorePlan& plan, const std::vector<Problem>& problems) const;
  std::string keep(const evaluate::WorkBatch& batch, const RestorePlan& plan,
                   const std::vector<Problem>& problems, std::size_t row, RestoredPicture picture) const;

  evaluate::Plan plan_;
  evaluate::RunFolder folder_;
  RuntimeOptions runtime_;
  std::shared_ptr<const NetworkPrior> prior_;
  PictureScorer scorer_;
  std::vector<Picture> pictures_;
  ImageShape shape_;
  std::string model_;  // fingerprint
  // By task and method, in the plan's order.
  std::vector<std::vector<evaluate::MethodSettings>> settings_;
  std::vector<std::vector<evaluate::Json>> complete_;  // every setting
  int batch_ = 1;
  std::vector<evaluate::WorkBatch> work_;
};

// What computed: for records, results and the report.
evaluate::Json machine_json(const NetworkPrior& prior);

}  // namespace dpg::cli
