// A whole restoration: pictures in, pictures and what is known of them out.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "judge.h"
#include "restoration.h"
#include "runtime.h"

namespace dpg::cli {

struct RestoreJob {
  RestorePlan plan;
  RuntimeOptions runtime;
  ProblemOptions problem;
  std::filesystem::path truth, weights;
  bool trace = false;
};

// One picture's way through: what it was, what became of it, where that was written.
struct Restored {
  Problem problem;
  RestoredPicture picture;
  std::filesystem::path output;     // what was written: OUTPUT, or its .partial form when interrupted
  std::vector<Scores> scores;       // of each sample; empty without truth
  std::vector<Scores> mean_scores;  // of the samples' mean, one entry; empty without truth or for one sample
};

// Restores every input and writes each result as soon as it is there. outputs[i] belongs to problems[i].
// Stops early when interrupted. `done` is told of each picture. Returns what could not be measured and why,
// or nothing.
std::string run_job(const RestoreJob& job, const NetworkPrior& prior, const std::vector<Problem>& problems,
                    const std::vector<std::filesystem::path>& outputs,
                    const std::function<void(const Restored&)>& done);

// A few words for people: residual, time, scores.
std::string brief(const Restored& restored);
Json summary(const Restored& restored);

}  // namespace dpg::cli
