// The bridge between the torch-free parts (images, checkpoints, random numbers) and tensors.
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "dpg/checkpoint/state_dict.h"
#include "dpg/core/rng.h"
#include "dpg/image/image.h"

namespace dpg {

using torch::Tensor;

Tensor to_tensor(const Image& image);                // [1, C, H, W] float
Tensor to_tensor(const std::vector<Image>& images);  // [N, C, H, W]; all of one size
Image to_image(const Tensor& tensor);                // from [C, H, W] or [1, C, H, W], any device and dtype
std::vector<Image> to_images(const Tensor& batch);   // from [N, C, H, W]

// A copy of the tensor in the file, in the file's dtype.
Tensor to_tensor(const TensorView& view);
// Every tensor of a file by name.
std::map<std::string, Tensor> load_tensors(const std::filesystem::path& path);
// A safetensors file of these, in this order.
void save_tensors(const std::filesystem::path& path,
                  const std::vector<std::pair<std::string, Tensor>>& tensors,
                  const std::map<std::string, std::string>& metadata = {});

// Standard normals [images.size(), shape_of_one...]: row i is stream (images[i], step, sample), on any
// device.
Tensor normal_noise(const Rng& rng, std::span<const std::uint32_t> images, std::uint32_t step,
                    std::uint32_t sample, torch::IntArrayRef shape_of_one,
                    torch::Device device = torch::kCPU);

// Monte Carlo samples [samples * images.size(), shape_of_one...]: row k * images.size() + i is stream
// (images[i], step, first_sample + k). On a GPU they are drawn there, the same bits.
Tensor normal_samples(const Rng& rng, std::span<const std::uint32_t> images, std::uint32_t step,
                      std::uint32_t first_sample, std::int64_t samples, torch::IntArrayRef shape_of_one,
                      torch::Device device = torch::kCPU);

// Throws "`what` has a NaN or infinity; ..." unless every element is finite.
void check_finite(const Tensor& tensor, const std::string& what);

}  // namespace dpg
