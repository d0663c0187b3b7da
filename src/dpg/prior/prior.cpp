#include "dpg/prior/prior.h"

#include <torch/torch.h>

#include <cmath>

#include "dpg/core/error.h"
#include "dpg/tensor/convert.h"

namespace dpg {
namespace {

void check_time(const Schedule& schedule, int t) {
  check(t >= 0 && t < schedule.steps(), "time step ", t, " is outside 0 to ", schedule.steps() - 1);
}

}  // namespace

Tensor Denoised::pull_back(const Tensor& v) const {
  check(static_cast<bool>(reverse), "pull_back needs denoise(..., Track::gradient)");
  check(v.sizes() == x0.sizes(), "pull_back takes a tensor like x0, ", x0.sizes(), ", not ", v.sizes());
  return reverse(v);
}

NetworkPrior::NetworkPrior(std::shared_ptr<const UNet> network, int label)
    : network_(std::move(network)),
      schedule_(Schedule::named(network_->config().noise_schedule, network_->config().diffusion_steps)),
      runner_(std::make_unique<NetworkRunner>(network_, label)) {
  const int classes = network_->config().num_classes;
  check(label == kNoLabel || (label >= 0 && label < classes), "class ", label,
        classes > 0 ? str(" is outside 0 to ", classes - 1)
                    : std::string(": this prior is not class-conditional"));
}

Denoised NetworkPrior::denoise(const Tensor& x_t, int t, Track track) const {
  check_time(schedule_, t);
  const torch::NoGradGuard no_grad;
  const double abar = schedule_.alpha_bar()[static_cast<std::size_t>(t)];
  const Tensor x = x_t.detach().to(device(), torch::kFloat);
  const NetworkCall call = runner_->run(x, t, track == Track::gradient);
  if (!x.is_cuda()) check_finite(call.output, str("the network's output at t = ", t));

  const Tensor eps = call.output.narrow(1, 0, channels());
  const Tensor unclamped = (x - std::sqrt(1 - abar) * eps) / std::sqrt(abar);
  Denoised result{unclamped.clamp(-1, 1), eps, {}, {}};
  if (network_->config().learn_sigma)
    result.variance_fraction = (call.output.narrow(1, channels(), channels()) + 1) / 2;
  if (track != Track::gradient) return result;
  // x0 = clamp((x - sqrt(1-abar) eps(x)) / sqrt(abar)): through the clamp, then along x and along the
  // network.
  result.reverse = [reverse = call.reverse, inside = unclamped.abs() <= 1, abar, t,
                    outputs = call.output.size(1)](const Tensor& v) {
    const torch::NoGradGuard constant;
    const Tensor through = v.to(inside.device(), torch::kFloat) * inside / std::sqrt(abar);
    Tensor cotangent = -std::sqrt(1 - abar) * through;
    if (outputs > v.size(1)) cotangent = torch::cat({cotangent, torch::zeros_like(cotangent)}, 1);
    const Tensor gradient = through + reverse(cotangent);
    if (!gradient.is_cuda()) check_finite(gradient, str("the network's input gradient at t = ", t));
    return gradient;
  };
  return result;
}

GaussianPrior::GaussianPrior(const Tensor& mean, const Tensor& covariance, Schedule schedule)
    : mean_(mean.to(torch::kDouble)), schedule_(std::move(schedule)) {
  const auto d = mean.numel();
  check(mean.dim() == 3 && covariance.sizes() == torch::IntArrayRef({d, d}),
        "a Gaussian prior takes a mean [C, H, W] and a covariance [d, d], not ", mean.sizes(), " and ",
        covariance.sizes());
  std::tie(eigenvalues_, eigenvectors_) = torch::linalg_eigh(covariance.to(torch::kDouble), "L");
  check(eigenvalues_.min().item<double>() > -1e-9 * eigenvalues_.abs().max().item<double>(),
        "a Gaussian prior's covariance has no negative eigenvalue");
  eigenvalues_ = eigenvalues_.clamp_min(0);
}

Tensor GaussianPrior::covariance() const {
  return eigenvectors_.matmul(eigenvalues_.unsqueeze(1) * eigenvectors_.t());
}

// With S = Q diag(s) Q^T: E[x0 | x_t] = m + J (x_t - sqrt(abar) m), J = Q diag(sqrt(abar) s / (abar s +
// 1-abar)) Q^T.
Tensor GaussianPrior::denoiser_matrix(int t) const {
  check_time(schedule_, t);
  const double abar = schedule_.alpha_bar()[static_cast<std::size_t>(t)];
  const Tensor gain = std::sqrt(abar) * eigenvalues_ / (abar * eigenvalues_ + (1 - abar));
  return eigenvectors_.matmul(gain.unsqueeze(1) * eigenvectors_.t());
}

Denoised GaussianPrior::denoise(const Tensor& x_t, int t, Track track) const {
  const Tensor J = denoiser_matrix(t);
  const double abar = schedule_.alpha_bar()[static_cast<std::size_t>(t)];
  const auto type = x_t.scalar_type();
  const Tensor x = x_t.detach().to(torch::kDouble);
  const Tensor x0 = mean_ + (x - std::sqrt(abar) * mean_).flatten(1).matmul(J.t()).view_as(x);
  const Tensor eps = (x - std::sqrt(abar) * x0) / std::sqrt(1 - abar);
  Denoised result{x0.to(type), eps.to(type), {}, {}};
  if (track == Track::gradient)
    result.reverse = [J](const Tensor& v) {
      return v.to(torch::kDouble).flatten(1).matmul(J).view_as(v).to(v.scalar_type());
    };
  return result;
}

}  // namespace dpg
