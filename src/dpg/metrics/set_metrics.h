// Every distance between two sets of pictures for which there are weights, and the names of those for which
// there are none.
#pragma once

#include <torch/types.h>

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "dpg/metrics/features.h"

namespace dpg {

struct SetDistance {
  std::string name;             // "FID", "KID", "FD-googlenet", "KD-googlenet"
  std::optional<double> value;  // none: unavailable, and `note` says why: "its weights (...) are not in ..."
  std::optional<double> standard_error;
  std::string note;  // what to know about the value; may be empty
  // The value without each of some parts of the pictures, so that two sets can be compared part by part; may
  // be empty.
  std::vector<double> leaving_out;
};

class SetMetrics {
 public:
  // The features of a set so far: for each network the rows of each call of add.
  using Features = std::vector<std::vector<Tensor>>;

  explicit SetMetrics(const std::vector<std::filesystem::path>& folders = metric_weight_folders(),
                      torch::Device device = torch::kCPU);

  // Pictures [N, 3, H, W]; those of one set may differ in size from call to call.
  void add(Features& set, const Tensor& pictures) const;
  // Always all four, in the order above.
  std::vector<SetDistance> distances(const Features& a, const Features& b) const;

 private:
  struct Entry {
    std::string frechet, kernel;
    std::optional<FeatureNetwork> network;
    std::string missing;
  };
  std::vector<Entry> entries_;
};

}  // namespace dpg
