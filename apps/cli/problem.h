// What is to be restored: a measurement from a sidecar, or somebody's degraded photo.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "dpg/measure/noise.h"

namespace dpg::cli {

struct ProblemOptions {
  std::string op;              // empty: the sidecar beside the picture says
  std::string noise = "auto";  // with op: the noise of the picture
  std::uint64_t op_seed = 0;   // with op: of what the operator draws
};

// One picture to restore.
struct Problem {
  std::filesystem::path input;
  std::vector<std::filesystem::path> files;  // all that it was read from
  std::string op, noise;                     // their full textual forms
  std::uint64_t op_seed = 0;
  std::uint32_t image = 0;  // its number in the run: what its random numbers depend on
  ImageShape shape;         // of the clean picture
  Tensor y;                 // [1, measurement shape]
};

// `number` is the picture's place among those restored; a sidecar brings its own.
Problem read_problem(const std::filesystem::path& input, const ProblemOptions& options, std::uint32_t number);

// The files to restore: the one given, or of a folder its sidecars (its pictures where an operator is given).
std::vector<std::filesystem::path> inputs_in(const std::filesystem::path& in, const ProblemOptions& options);

// Whether they can be restored in one batch.
bool alike(const Problem& a, const Problem& b);

// Problems that are alike as one measurement, each `rounds` times: row k * problems + i is problem i. The
// clean pictures are widened to multiples of `multiple` at the bottom and right.
Measurement join(std::span<const Problem> problems, std::int64_t rounds, std::int64_t multiple);

}  // namespace dpg::cli
