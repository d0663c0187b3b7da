#include "dpg/measure/noise.h"

#include <torch/torch.h>

#include <cmath>
#include <functional>
#include <vector>

#include "dpg/core/error.h"
#include "dpg/measure/poisson.h"
#include "dpg/measure/spec.h"
#include "dpg/tensor/convert.h"

namespace dpg {
namespace {

void check_rows(const Tensor& clean, std::span<const std::uint32_t> images) {
  check(clean.dim() >= 1 && clean.size(0) > 0 && clean.size(0) == static_cast<std::int64_t>(images.size()),
        "noise for ", images.size(), " images was asked on a batch of ", clean.dim() >= 1 ? clean.size(0) : 0,
        "; give one image index for each row");
}

// One float tensor on the CPU shaped like `like`, row i filled by fill(stream of images[i], row).
Tensor draw_rows(const Tensor& like, std::span<const std::uint32_t> images,
                 const std::function<void(NoiseKey, std::int64_t row, std::span<float>)>& fill) {
  check_rows(like, images);
  Tensor rows = torch::empty(like.sizes(), torch::kFloat32);
  const std::int64_t size = rows.numel() / rows.size(0);
  for (std::int64_t row = 0; row < rows.size(0); ++row)
    fill({images[static_cast<std::size_t>(row)], kBeforeFirstStep, kMeasurementNoise}, row,
         {rows.data_ptr<float>() + row * size, static_cast<std::size_t>(size)});
  return rows;
}

Tensor standard_normal(const Tensor& like, const Rng& rng, std::span<const std::uint32_t> images) {
  check_rows(like, images);
  return normal_noise(rng, images, kBeforeFirstStep, kMeasurementNoise, like.sizes().slice(1), like.device());
}

Tensor squared_distance(const Tensor& y, const Tensor& prediction) {
  return (y - prediction).flatten(1).square().sum(1);
}

Tensor absolute_distance(const Tensor& y, const Tensor& prediction) {
  return (y - prediction).flatten(1).abs().sum(1);
}

Tensor light(const Tensor& value) {
  return (value.clamp(-1, 1) + 1) / 2;
}  // [-1, 1] -> [0, 1]

double mean_of(const Tensor& values) {
  return values.numel() ? values.to(torch::kFloat64).mean().item<double>() : 0.0;
}

class NoNoise : public NoiseModel {
 public:
  Tensor corrupt(const Tensor& clean, const Rng&, std::span<const std::uint32_t>) const override {
    return clean.clone();
  }
  Tensor misfit(const Tensor& y, const Tensor& prediction) const override {
    return squared_distance(y, prediction);
  }
  Loss loss() const override { return Loss::squared; }
  double level(const Tensor&) const override { return 0; }
  std::string spec() const override { return "none"; }
};

// y = c + sigma n
class GaussianNoise : public NoiseModel {
 public:
  explicit GaussianNoise(double sigma) : sigma_(sigma) {}
  Tensor corrupt(const Tensor& clean, const Rng& rng, std::span<const std::uint32_t> images) const override {
    return clean + sigma_ * standard_normal(clean, rng, images);
  }
  Tensor misfit(const Tensor& y, const Tensor& prediction) const override {
    return squared_distance(y, prediction);
  }
  Loss loss() const override { return Loss::squared; }
  double level(const Tensor&) const override { return sigma_; }
  std::string spec() const override { return "gaussian:sigma=" + number_text(sigma_); }

 private:
  double sigma_;
};

// Photons are counted: u -> Poisson(255 rate u) / (255 rate); rate 1 counts up to 255 where the picture is
// white. Counts above white are cut off, as a camera and the paper's code do, unless clip=no.
class PoissonNoise : public NoiseModel {
 public:
  PoissonNoise(double rate, bool clip) : scale_(255 * rate), rate_(rate), clip_(clip) {}

  Tensor corrupt(const Tensor& clean, const Rng& rng, std::span<const std::uint32_t> images) const override {
    const Tensor mean = (light(clean).to(torch::kCPU, torch::kFloat64) * scale_).contiguous();
    const Tensor noisy = draw_rows(clean, images, [&](NoiseKey key, std::int64_t row, std::span<float> out) {
      const std::size_t size = out.size();
      std::vector<double> counts(size);
      poisson(rng, key, {mean.data_ptr<double>() + row * static_cast<std::int64_t>(size), size}, counts);
      for (std::size_t i = 0; i < size; ++i) out[i] = static_cast<float>(counts[i] / scale_ * 2 - 1);
    });
    return (clip_ ? noisy.clamp(-1, 1) : noisy).to(clean.device());
  }
  Tensor misfit(const Tensor& y, const Tensor& prediction) const override {
    return absolute_distance(y, prediction);
  }
  Loss loss() const override { return Loss::absolute; }
  double level(const Tensor& y) const override { return 2 * std::sqrt(mean_of(light(y)) / scale_); }
  // Of one count at least: what is taken for black is not known to be.
  Tensor variances(const Tensor& clean) const override {
    return 4 / scale_ * light(clean).clamp_min(1 / scale_);
  }
  std::string spec() const override {
    return str("poisson:rate=", number_text(rate_), ",clip=", clip_ ? "yes" : "no");
  }

 private:
  double scale_, rate_;
  bool clip_;
};

// Each entry is lost with probability `amount`: it then reads -1 or 1, equally often.
class SaltPepperNoise : public NoiseModel {
 public:
  explicit SaltPepperNoise(double amount) : amount_(amount) {}

  Tensor corrupt(const Tensor& clean, const Rng& rng, std::span<const std::uint32_t> images) const override {
    const Tensor u = draw_rows(clean, images, [&](NoiseKey key, std::int64_t, std::span<float> out) {
                       rng.uniform(key, out);
                     }).to(clean.device());
    const Tensor noisy = torch::where(u < amount_ / 2, torch::full_like(clean, -1), clean);
    return torch::where(u > 1 - amount_ / 2, torch::ones_like(clean), noisy);
  }
  Tensor misfit(const Tensor& y, const Tensor& prediction) const override {
    return absolute_distance(y, prediction);
  }
  Loss loss() const override { return Loss::absolute; }
  double level(const Tensor& y) const override {
    // E[y^2] = (1 - a) E[c^2] + a, and the error's mean square is a (1 + E[c^2]).
    const double square = mean_of(y.square());
    const double clean_square = amount_ < 1 ? std::max(0.0, (square - amount_) / (1 - amount_)) : 1.0;
    return std::sqrt(amount_ * (1 + clean_square));
  }
  std::string spec() const override { return "salt-pepper:amount=" + number_text(amount_); }

 private:
  double amount_;
};

// Coherent light (radar, ultrasound, laser): u -> u (1 + sigma n).
class SpeckleNoise : public NoiseModel {
 public:
  explicit SpeckleNoise(double sigma) : sigma_(sigma) {}
  Tensor corrupt(const Tensor& clean, const Rng& rng, std::span<const std::uint32_t> images) const override {
    return clean + 2 * sigma_ * light(clean) * standard_normal(clean, rng, images);
  }
  Tensor misfit(const Tensor& y, const Tensor& prediction) const override {
    return squared_distance(y, prediction);
  }
  Loss loss() const override { return Loss::squared; }
  double level(const Tensor& y) const override {
    // E[(u (1 + sigma n))^2] = E[u^2] (1 + sigma^2)
    const double square = mean_of(((y + 1) / 2).square()) / (1 + sigma_ * sigma_);
    return 2 * sigma_ * std::sqrt(square);
  }
  // Never nothing: what is taken for black is not known to be.
  Tensor variances(const Tensor& clean) const override {
    return (2 * sigma_ * light(clean).clamp_min(1. / 255)).square();
  }
  std::string spec() const override { return "speckle:sigma=" + number_text(sigma_); }

 private:
  double sigma_;
};

// observed_mask() as booleans for each row of y, which may hold several rounds of the operator's batch.
Tensor observed_entries(const Operator& a, const Tensor& y) {
  const Tensor mask = a.observed_mask().to(y.device()) > 0.5;
  if (mask.dim() < y.dim() || mask.size(0) == 1) return mask.expand_as(y);
  std::vector<std::int64_t> rounds(static_cast<std::size_t>(y.dim()), 1);
  rounds[0] = y.size(0) / mask.size(0);
  return mask.repeat(rounds).expand_as(y);
}

}  // namespace

Tensor NoiseModel::variances(const Tensor&) const {
  return {};
}

std::shared_ptr<const NoiseModel> make_noise(const std::string& text) {
  static const std::vector<std::string> names = {"gaussian", "poisson", "salt-pepper", "speckle", "none"};
  const Spec spec = parse_spec(text);
  constexpr double kSmallest = 1e-6;  // quieter than float measurements: that is "none"
  if (spec.name == "none") {
    OptionReader(spec, {});
    return std::make_shared<NoNoise>();
  }
  if (spec.name == "gaussian")
    return std::make_shared<GaussianNoise>(
        OptionReader(spec, {"sigma"}).number("sigma", 0.05, kSmallest, 10));
  if (spec.name == "poisson") {
    const OptionReader options(spec, {"rate", "clip"});
    return std::make_shared<PoissonNoise>(options.number("rate", 1, kSmallest, 1e6),
                                          options.flag("clip", true));
  }
  if (spec.name == "salt-pepper")
    return std::make_shared<SaltPepperNoise>(
        OptionReader(spec, {"amount"}).number("amount", 0.1, kSmallest, 1));
  if (spec.name == "speckle")
    return std::make_shared<SpeckleNoise>(OptionReader(spec, {"sigma"}).number("sigma", 0.1, kSmallest, 10));
  fail("there is no noise called \"", spec.name, "\"; did you mean \"", nearest(spec.name, names),
       "\"? The noises are ", join(names, ", "));
}

std::shared_ptr<const NoiseModel> make_noise(const std::string& spec, const Tensor& y) {
  if (spec != "auto") return make_noise(spec);
  check(y.dim() == 4,
        "the noise level can be estimated from a picture only, and this measurement is none; give it, "
        "as in --noise gaussian:0.05");
  const double sigma = mean_of(estimate_noise(y));
  return sigma > 1e-4 ? make_noise("gaussian:" + number_text(sigma)) : make_noise("none");
}

Measurement measure(std::shared_ptr<const Operator> A, std::shared_ptr<const NoiseModel> noise,
                    const Tensor& x, std::uint64_t seed, std::span<const std::uint32_t> images) {
  const Tensor clean = A->apply(x);
  Tensor y = noise->corrupt(clean, Rng(seed), images);
  y = torch::where(observed_entries(*A, clean), y, clean);
  return {y, std::move(A), std::move(noise)};
}

double noise_level(const Measurement& measurement) {
  return measurement.noise->level(
      measurement.y.masked_select(observed_entries(*measurement.A, measurement.y)));
}

std::vector<double> noise_levels(const Measurement& measurement) {
  const Tensor observed = observed_entries(*measurement.A, measurement.y);
  std::vector<double> levels;
  for (std::int64_t row = 0; row < measurement.y.size(0); ++row)
    levels.push_back(measurement.noise->level(measurement.y[row].masked_select(observed[row])));
  return levels;
}

Measurement observed_only(Measurement measurement) {
  const Tensor observed = observed_entries(*measurement.A, measurement.y);
  measurement.y = torch::where(observed, measurement.y, torch::zeros_like(measurement.y));
  return measurement;
}

}  // namespace dpg
