// What an evaluation restores: clean pictures and their measurements, kept in the run's folder.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "dpg/evaluate/plan.h"
#include "dpg/evaluate/store.h"
#include "problem.h"

namespace dpg::cli {

struct SourcePicture {
  std::filesystem::path file;
  std::string name;          // in the run's folder
  std::uint32_t number = 0;  // in the run
};

// The picture as `task` measures it. Writes the clean picture (squared to `shape`) and the measurement unless
// they are there and the same; then reads the measurement as "dpg restore" would.
Problem kept_problem(const evaluate::RunFolder& folder, const evaluate::PlannedTask& task,
                     const SourcePicture& source, const ImageShape& shape, std::uint64_t seed);

}  // namespace dpg::cli
