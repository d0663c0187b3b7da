// The manifest beside each output: all that is needed to make the same bytes again.
#pragma once

#include <filesystem>
#include <vector>

#include "restore_job.h"

namespace dpg::cli {

// x.png -> x.manifest.json
std::filesystem::path manifest_path(const std::filesystem::path& output);

// batch: the pictures that were restored together, of which `row` became `restored`.
void write_manifest(const RestoreJob& job, const NetworkPrior& prior, const std::vector<Problem>& batch,
                    std::size_t row, const Restored& restored);

struct Manifest {
  RestoreJob job;
  std::vector<Problem> batch;
  std::size_t row = 0;
  std::filesystem::path output;
  std::string output_fingerprint;
};
// Reads the measurements again. Throws when a file is not what it was.
Manifest read_manifest(const std::filesystem::path& file);

}  // namespace dpg::cli
