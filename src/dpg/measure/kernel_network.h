// The learned non-linear blur of the paper (Tran et al., "Explore image deblurring via encoded blur kernel
// space", CVPR 2021, as DPS uses it): a network that blurs a sharp picture the way a latent kernel code says.
// Its weights are the user's: the authors' checkpoint GOPRO_wVAE.pth. "nonlinear-blur:weights=GOPRO_wVAE.pth"
//
//   y = clamp(2 B(u, k) - 1, -1, 1),  u = (x + 1) / 2,  k ~ spread * N(0, I), one code for each image
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>

#include "dpg/checkpoint/state_dict.h"
#include "dpg/core/rng.h"
#include "dpg/measure/operator.h"

namespace dpg {

// B: pictures [N, C, H, W] in [0, 1] and codes [N, code channels, H / 128, W / 128] to blurred pictures. The
// sizes of its layers are read from the weights; the extractor of codes, which is not needed to blur, is not
// read.
class KernelNetwork {
 public:
  explicit KernelNetwork(const StateDict& weights);

  Tensor blur(const Tensor& pictures, const Tensor& codes) const;
  std::int64_t image_channels() const { return image_channels_; }
  std::int64_t code_channels() const { return code_channels_; }
  KernelNetwork to(torch::Device device) const;

 private:
  struct Layers;
  std::shared_ptr<const Layers> layers_;
  std::int64_t image_channels_ = 0, code_channels_ = 0;
};

// Height and width must be multiples of this: two halvings before the code, five inside.
inline constexpr std::int64_t kKernelNetworkMultiple = 128;

struct KernelNetworkOptions {
  std::filesystem::path weights;
  double spread = 1.2;  // standard deviation of the random code; 1.2 is what DPS uses

  void validate() const;
  std::string spec() const;
};
std::shared_ptr<const DifferentiableOperator> make_kernel_network_blur(const ImageShape& shape,
                                                                       const KernelNetworkOptions& options,
                                                                       const Rng& rng,
                                                                       std::span<const std::uint32_t> images);

}  // namespace dpg
