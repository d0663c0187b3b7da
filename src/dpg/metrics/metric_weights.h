// Where the weights of learned metrics lie. None come with the project; tools/export_metric_weights.py makes
// them from the user's own PyTorch installation. A metric without its weights is unavailable, and says so:
// nothing ever stands in for it.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace dpg {

// The files a metric needs. A '*' in a file's name stands for any text (torchvision puts a checksum there).
struct WantedWeights {
  std::string metric;                           // its name for messages
  std::string whole;                            // either this one file, with everything in it,
  std::vector<std::vector<std::string>> parts;  // or one file of each part, under any of its names
};

struct FoundWeights {
  std::vector<std::filesystem::path> files;  // the whole file, or one for each part; empty: not found
  std::string missing;                       // then a sentence: what was looked for, and where

  explicit operator bool() const { return !files.empty(); }
};

// The folders to look in, in this order: `chosen` (what --weights says; may be empty), $DPG_WEIGHTS, and
// $XDG_DATA_HOME/dpg/weights (or ~/.local/share/dpg/weights). They need not exist.
std::vector<std::filesystem::path> metric_weight_folders(const std::filesystem::path& chosen = {});

// Folders that come first win. Parts may lie in different folders.
FoundWeights find_metric_weights(const WantedWeights& wanted,
                                 const std::vector<std::filesystem::path>& folders);

}  // namespace dpg
