// The work of a plan, cut into batches. The cut follows from the plan alone, never from what is left to do:
// so a picture is restored together with the same others however often a run is interrupted and whoever does
// it, and its bytes are the same.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "dpg/evaluate/plan.h"

namespace dpg::evaluate {

// Restored in one go.
struct WorkBatch {
  std::size_t task = 0, method = 0;   // places in the plan
  int run = 0;                        // 0: what is evaluated; others are repetitions with seed + run
  std::vector<std::size_t> pictures;  // numbers among the plan's pictures
};

// Task by task, method by method, picture by picture; then the repetitions that the plan's evolution asks
// for.
std::vector<WorkBatch> work_list(const Plan& plan, std::size_t pictures, int batch);

// "2/4": this process takes every fourth batch from the second one on.
struct Shard {
  std::size_t index = 0, count = 1;  // from 0
  bool takes(std::size_t batch) const { return batch % count == index; }
};
Shard parse_shard(const std::string& text);

}  // namespace dpg::evaluate
