// Priors: what a clean image looks like, as a denoiser of x_t = sqrt(abar_t) x0 + sqrt(1 - abar_t) eps.
#pragma once

#include <torch/types.h>

#include <functional>
#include <memory>
#include <string>

#include "dpg/prior/network_runner.h"
#include "dpg/prior/schedule.h"
#include "dpg/prior/unet.h"

namespace dpg {

// Whether pull_back will be asked for: without it nothing is kept for a reverse pass.
enum class Track { nothing, gradient };

// What a prior says about one noisy batch. All tensors are detached.
struct Denoised {
  Tensor x0;   // E[x0 | x_t], clamped to the range the prior knows ([-1, 1] for images)
  Tensor eps;  // the noise as predicted, before any clamp
  // In [0, 1], where the reverse step's log variance lies between its smallest and largest value; undefined
  // when the prior has not learned it. (The ends depend on the sampler's spacing, so the sampler
  // interpolates.)
  Tensor variance_fraction;
  std::function<Tensor(const Tensor&)> reverse;  // empty without Track::gradient

  // J^T v with J = d x0 / d x_t, per image; the clamp is inside J. May be called more than once.
  Tensor pull_back(const Tensor& v) const;
};

class Prior {
 public:
  virtual ~Prior() = default;
  // x_t: [N, C, H, W]; t: a time step of schedule(), the same for the batch. Throws when the answer is not
  // finite; on a GPU, where to look would wait for the card, the caller looks at its final result instead.
  virtual Denoised denoise(const Tensor& x_t, int t, Track track) const = 0;
  virtual const Schedule& schedule() const = 0;  // all steps; samplers respace it
  virtual int image_size() const = 0;            // what it was trained at
  virtual int channels() const { return 3; }
  virtual torch::Device device() const { return torch::kCPU; }
};

// A prior given by a U-Net.
class NetworkPrior : public Prior {
 public:
  NetworkPrior(std::shared_ptr<const UNet> network, int label = kNoLabel);
  static constexpr int kNoLabel = NetworkRunner::kNoLabel;

  Denoised denoise(const Tensor& x_t, int t, Track track) const override;
  const Schedule& schedule() const override { return schedule_; }
  int image_size() const override { return network_->config().image_size; }
  int channels() const override { return network_->config().in_channels; }
  torch::Device device() const override { return network_->device(); }
  const UNet& network() const { return *network_; }

 private:
  std::shared_ptr<const UNet> network_;
  Schedule schedule_;
  std::unique_ptr<NetworkRunner> runner_;
};

// Where a checkpoint's architecture comes from: the sidecar (or the file named here) if there is one,
// otherwise its tensors' names and shapes; then `flags` on top, "num_heads=4,use_new_attention_order=true"
// with the sidecar's names, for what shapes can't tell.
struct ArchitectureSource {
  std::string config_file;  // empty: FILE with extension .json if that exists
  std::string flags;
};
UNetConfig checkpoint_config(const StateDict& checkpoint, const std::string& file,
                             const ArchitectureSource& source = {});

struct LoadOptions {
  ArchitectureSource architecture;
  std::string precision = "auto";  // auto, fp32, tf32, bf16
  torch::Device device = torch::kCPU;
  int label = NetworkPrior::kNoLabel;
};
std::shared_ptr<const NetworkPrior> load_prior(const std::string& file, const LoadOptions& options = {});

// Where the bundled prior is: $DPG_PRIOR, beside the installed program, or in the source tree.
std::string bundled_prior_path();

// An analytic prior, x0 ~ N(mean, covariance): exact denoise and pull_back, for tests. Computes in double
// inside.
class GaussianPrior : public Prior {
 public:
  // mean: [C, H, W]; covariance: [d, d] symmetric, d = C*H*W.
  GaussianPrior(const Tensor& mean, const Tensor& covariance, Schedule schedule = Schedule::linear());

  Denoised denoise(const Tensor& x_t, int t, Track track) const override;
  const Schedule& schedule() const override { return schedule_; }
  int image_size() const override { return static_cast<int>(mean_.size(-1)); }
  int channels() const override { return static_cast<int>(mean_.size(0)); }

  const Tensor& mean() const { return mean_; }
  Tensor covariance() const;            // [d, d] double
  Tensor denoiser_matrix(int t) const;  // J, [d, d] double, symmetric

 private:
  Tensor mean_, eigenvalues_, eigenvectors_;
  Schedule schedule_;
};

}  // namespace dpg
