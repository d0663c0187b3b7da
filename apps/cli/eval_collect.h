// The end of an evaluation: from the records in its folder to tables and the report.
#pragma once

#include <filesystem>

#include "eval_run.h"

namespace dpg::cli {

// Reads the records, measures what is not measured yet, and writes results.csv, summary.csv, runtime.csv,
// results.json and report.html. `source` is the plan as it was given, for people.
evaluate::Results collect(const EvalRun& run, const std::filesystem::path& weights,
                          const evaluate::Json& source);

}  // namespace dpg::cli
