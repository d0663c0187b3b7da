#include "dpg/metrics/set_metrics.h"

#include <torch/torch.h>

#include <cmath>

#include "dpg/core/error.h"
#include "dpg/core/jackknife.h"
#include "dpg/metrics/frechet.h"

namespace dpg {
namespace {

SetDistance frechet_with_error(const std::string& name, const Tensor& a, const Tensor& b) {
  const FrechetResult frechet = frechet_distance(a, b);
  SetDistance result{name, frechet.distance, {}, frechet.note, {}};
  if (a.size(0) != b.size(0) || a.size(0) < kFewestToLeaveOut) return result;
  result.leaving_out = frechet_leaving_out(a, b);
  result.standard_error = jackknife_error(result.leaving_out);
  return result;
}

}  // namespace

SetMetrics::SetMetrics(const std::vector<std::filesystem::path>& folders, torch::Device device) {
  for (const std::string& name : FeatureNetwork::names()) {
    Entry entry{FeatureNetwork::frechet_name(name), FeatureNetwork::kernel_name(name), {}, {}};
    const FoundWeights found = find_metric_weights(FeatureNetwork::wanted_weights(name), folders);
    if (found)
      entry.network = FeatureNetwork::load(name, folders).to(device);
    else
      entry.missing = found.missing.substr(found.missing.find(": ") + 2);  // the reason without the name
    entries_.push_back(std::move(entry));
  }
}

void SetMetrics::add(Features& set, const Tensor& pictures) const {
  set.resize(entries_.size());
  for (std::size_t i = 0; i < entries_.size(); ++i)
    if (entries_[i].network) set[i].push_back(entries_[i].network->features(pictures));
}

std::vector<SetDistance> SetMetrics::distances(const Features& a, const Features& b) const {
  check(a.size() == entries_.size() && b.size() == entries_.size(),
        "a set of pictures is empty; add pictures to both before asking for their distance");
  std::vector<SetDistance> distances;
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    const Entry& entry = entries_[i];
    if (!entry.network) {
      for (const std::string& name : {entry.frechet, entry.kernel})
        distances.push_back({name, {}, {}, entry.missing, {}});
      continue;
    }
    const Tensor rows_a = torch::cat(a[i]), rows_b = torch::cat(b[i]);
    distances.push_back(frechet_with_error(entry.frechet, rows_a, rows_b));
    const KernelDistance kernel = kernel_distance(rows_a, rows_b);
    const bool known = std::isfinite(kernel.standard_error);
    distances.push_back({entry.kernel,
                         kernel.value,
                         known ? std::optional(kernel.standard_error) : std::nullopt,
                         known ? "" : "too few pictures for a standard error",
                         {}});
  }
  return distances;
}

}  // namespace dpg
