// Noise models: what n is in y = A(x) + n (or its generalisation), and the loss that belongs to it.
//
// Values are on the [-1, 1] range: gaussian:0.05 is 0.05 there, 0.025 on [0, 1]. Models whose strength
// depends on the light (Poisson, speckle) see u = (value + 1) / 2, clamped to [0, 1].
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "dpg/core/rng.h"
#include "dpg/measure/operator.h"

namespace dpg {

// How a loss grows with the misfit of one measurement.
enum class Loss { squared, absolute };

class NoiseModel {
 public:
  virtual ~NoiseModel() = default;
  // A noisy copy of the clean measurement; row i draws from stream (images[i], kBeforeFirstStep,
  // kMeasurementNoise).
  virtual Tensor corrupt(const Tensor& clean, const Rng& rng,
                         std::span<const std::uint32_t> images) const = 0;
  // The loss DPG and DPS use, per image: [N]. Gaussian: ||y - Ax||^2; Poisson: ||y - Ax||_1 (method.md).
  virtual Tensor misfit(const Tensor& y, const Tensor& prediction) const = 0;
  virtual Loss loss() const = 0;  // which of the two misfit() is
  // Standard deviation of one measurement on the [-1, 1] range (for Poisson and speckle: the mean level given
  // y). y may have any shape; noise_level() below hands over the observed entries only.
  virtual double level(const Tensor& y) const = 0;
  // The variance of each measurement when the clean ones are `clean`; undefined: the same for all, level()^2.
  virtual Tensor variances(const Tensor& clean) const;
  virtual std::string spec() const = 0;  // "gaussian:sigma=0.05", "poisson:rate=1,clip=yes", "none", ...
};

// "gaussian:0.05", "poisson:1", "salt-pepper:0.1", "speckle:0.1", "none".
std::shared_ptr<const NoiseModel> make_noise(const std::string& spec);
// The same, and "auto": Gaussian noise with the level that estimate_noise finds in y (mean over the batch).
std::shared_ptr<const NoiseModel> make_noise(const std::string& spec, const Tensor& y);

// The Gaussian sigma of a single picture (or batch, each its own), [N]: for users who don't know it.
Tensor estimate_noise(const Tensor& image);

// y, the operator and the noise that made it: all a solver is given.
struct Measurement {
  Tensor y;
  std::shared_ptr<const Operator> A;
  std::shared_ptr<const NoiseModel> noise;
};

// y = A(x) with noise where A observes something; entries that A does not observe (a mask's holes) stay as A
// left them.
Measurement measure(std::shared_ptr<const Operator> A, std::shared_ptr<const NoiseModel> noise,
                    const Tensor& x, std::uint64_t seed, std::span<const std::uint32_t> images);

// The noise's level over the observed entries of y: of all rows together, and of each.
double noise_level(const Measurement& measurement);
std::vector<double> noise_levels(const Measurement& measurement);
// The measurement with zeros where A observes nothing, as A itself leaves them: for pictures from elsewhere,
// whose holes may hold anything.
Measurement observed_only(Measurement measurement);

}  // namespace dpg
