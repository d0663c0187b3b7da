// Restoring a batch of pictures: what "restore", "rerun" and "demo" share.
#pragma once

#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

#include "dpg/prior/prior.h"
#include "dpg/report/trace.h"
#include "dpg/solve/settings.h"
#include "dpg/solve/solver.h"
#include "problem.h"

namespace dpg::cli {

struct RestorePlan {
  std::string method = "dpg";
  std::string preset;              // tuned settings by name, or empty
  Json settings = Json::object();  // on top of the preset's; the rest as by default
  std::uint64_t seed = 0;
  int samples = 1;  // of the posterior, for each picture
  int batch = 1;    // pictures in one network call
};

// Every setting for pictures of this shape.
Json settings_for(const RestorePlan& plan, const ImageShape& shape);

struct RestoredPicture {
  Tensor samples;                 // [K, C, H, W] on the CPU; the first is the one a single run gives
  std::vector<double> residuals;  // ||y - A(x)|| of each sample as it is returned
  double noise_floor = 0;         // what that is expected to be at the truth
  Trace trace;                    // of the first sample
  Cost cost;                      // of each sample
  double seconds = 0;             // the batch's time, divided evenly among its pictures and samples
  bool stopped = false;           // interrupted: the samples are estimates
};

// After each step: how much is done, and the batch's mean residual as a share of its noise floor. The second
// is asked for only when it is shown: on a GPU it has to be waited for.
using StepWatcher = std::function<void(int done, int total, const std::function<double()>& residual_ratio)>;

// Pictures that are alike. A picture's result depends on the plan, on its number and on itself, not on what
// else is in the batch (but for rounding).
std::vector<RestoredPicture> restore_batch(const RestorePlan& plan, const NetworkPrior& prior,
                                           std::span<const Problem> problems,
                                           const StepWatcher& watcher = {});

// Problems in runs of those that are alike, at most plan.batch in each.
std::vector<std::vector<Problem>> batches_of(const std::vector<Problem>& problems, int batch);

}  // namespace dpg::cli
