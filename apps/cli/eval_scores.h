// Scores of an evaluation: of single pictures, and of whole sets of them. All are taken from the files that a
// run keeps (8-bit PNG), so that they can be taken again, by anyone, at any later time.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "dpg/evaluate/store.h"
#include "dpg/metrics/lpips.h"

namespace dpg::cli {

class PictureScorer {
 public:
  // `metrics`: those wanted; a learned one without weights is unavailable.
  PictureScorer(const std::vector<std::string>& metrics, const std::filesystem::path& weights,
                torch::Device device);

  // Fills in each wanted and available metric that the record does not have; says whether there was any.
  bool complete(evaluate::Json& record, const std::filesystem::path& picture,
                const std::filesystem::path& truth) const;
  // metric -> why it is unavailable
  const std::map<std::string, std::string>& missing() const { return missing_; }

 private:
  std::vector<std::string> metrics_;  // wanted and available
  std::map<std::string, Lpips> networks_;
  std::map<std::string, std::string> missing_;
};

// One set of restored pictures of which the truth is known.
struct PictureSet {
  std::string task, method;
  std::vector<std::filesystem::path> pictures;
  std::vector<std::string> fingerprints;  // of the pictures
  std::size_t wanted = 0;                 // how many it will have when it is complete
};

// {"task", "method", "pictures", metrics...} for each set. What was computed before is kept in the run's
// folder and taken from there while the pictures are the same. `progress` is told how many sets are done.
std::vector<evaluate::Json> set_scores(const std::vector<std::string>& metrics,
                                       const std::vector<PictureSet>& sets,
                                       const std::vector<std::filesystem::path>& truth,
                                       const evaluate::RunFolder& folder,
                                       const std::filesystem::path& weights, torch::Device device,
                                       const std::function<void(std::size_t)>& progress);

}  // namespace dpg::cli
