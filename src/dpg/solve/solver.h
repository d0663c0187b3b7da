// A method that restores: from a measurement and a prior to a sample of the posterior.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "dpg/core/rng.h"
#include "dpg/measure/noise.h"
#include "dpg/prior/prior.h"
#include "dpg/sample/sample.h"

namespace dpg {

// The residual ||y - A(x0)|| of each image after each network call, while x0 was the current estimate.
struct History {
  std::vector<int> t;
  std::vector<Tensor> residual;  // each [N]; may still be on the GPU

  std::vector<double> residual_of(std::int64_t image) const;  // one number for each step
};

struct Cost {
  int network_calls = 0;            // forward passes, for the batch
  int reverse_passes = 0;           // through the network (pull_back); a call may have several
  std::int64_t operator_calls = 0;  // applications of A for each image, its adjoint counted in
};

struct Result {
  Tensor image;  // [N, C, H, W] in [-1, 1]
  History history;
  Cost cost;
  bool stopped = false;  // the observer ended it early; `image` then is the last estimate
};

class Solver {
 public:
  virtual ~Solver() = default;

  virtual std::string name() const = 0;
  // Throws a sentence that says what is missing, and names a method that would work.
  virtual void check_problem(const Measurement& measurement) const = 0;
  // Restores every row of measurement.y. Row i is image images[i] of the run: its random numbers depend on
  // that and on rng alone. Runs on the prior's device, wherever the measurement is. Keeps no state between
  // calls.
  virtual Result solve(const Measurement& measurement, const Prior& prior, const Rng& rng,
                       std::span<const std::uint32_t> images, const Observer& observer = {}) const = 0;
};

// The measurement with its tensors on `device`.
Measurement to_device(const Measurement& measurement, torch::Device device);

// ||y - A(x)|| of each image, [N].
Tensor residual_norm(const Tensor& y, const Tensor& prediction);
// What that is expected to be at the truth, sigma * sqrt(m), for each image.
std::vector<double> noise_floors(const Measurement& measurement);

// What solvers check before they start: that y, A and the prior belong together. The height and width of a
// picture may be any that the prior's network can halve often enough.
void check_sizes(const Measurement& measurement, const Prior& prior, std::span<const std::uint32_t> images);

}  // namespace dpg
