#include "dpg/tensor/convert.h"

#include <torch/torch.h>

#include <algorithm>
#include <cstring>

#include "dpg/checkpoint/safetensors_writer.h"
#include "dpg/core/error.h"
#ifdef DPG_CUDA
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>

#include "dpg/kernels/normal_cuda.h"
#endif

namespace dpg {
namespace {

constexpr std::pair<DType, torch::ScalarType> kTypes[] = {
    {DType::f64, torch::kDouble},    {DType::f32, torch::kFloat}, {DType::f16, torch::kHalf},
    {DType::bf16, torch::kBFloat16}, {DType::i64, torch::kLong},  {DType::i32, torch::kInt},
    {DType::i16, torch::kShort},     {DType::i8, torch::kChar},   {DType::u8, torch::kByte},
    {DType::boolean, torch::kBool},
};

torch::ScalarType torch_type(DType dtype) {
  for (const auto& [ours, theirs] : kTypes)
    if (ours == dtype) return theirs;
  fail("no tensor type for ", dtype_name(dtype));
}

DType file_type(torch::ScalarType type) {
  for (const auto& [ours, theirs] : kTypes)
    if (theirs == type) return ours;
  fail("tensors of type ", torch::toString(type), " cannot be written");
}

#ifdef DPG_CUDA
// The image numbers on the GPU. A run asks for the same ones at every step, and to send them would wait for
// the card: the last ones are kept.
Tensor keys_on(torch::Device device, std::span<const std::uint32_t> images) {
  thread_local std::vector<std::uint32_t> kept;
  thread_local Tensor there;
  const auto same = [&] { return std::equal(kept.begin(), kept.end(), images.begin(), images.end()); };
  const auto on_it = [&] { return !device.has_index() || there.device() == device; };
  if (there.defined() && there.device().type() == device.type() && on_it() && same()) return there;
  const Tensor keys = torch::empty({static_cast<std::int64_t>(images.size())}, torch::kInt);
  std::memcpy(keys.data_ptr(), images.data(), images.size_bytes());
  there = keys.to(device);
  kept.assign(images.begin(), images.end());
  return there;
}
#endif

// Rows shape[0] = samples * images.size(), drawn on the GPU.
Tensor normal_samples_cuda(const Rng& rng, std::span<const std::uint32_t> images, std::uint32_t step,
                           std::uint32_t first_sample, const std::vector<std::int64_t>& shape,
                           torch::Device device) {
#ifdef DPG_CUDA
  const c10::cuda::CUDAGuard guard(device);
  const Tensor noise = torch::empty(shape, torch::TensorOptions(device));
  const std::int64_t rows = shape[0];
  if (noise.numel() == 0) return noise;
  const Tensor keys_there = keys_on(device, images);
  cuda::fill_normals({rng.seed(), static_cast<const std::uint32_t*>(keys_there.data_ptr()),
                      static_cast<std::int64_t>(images.size()), step, first_sample},
                     rows, noise.numel() / rows, noise.data_ptr<float>(),
                     c10::cuda::getCurrentCUDAStream().stream());
  return noise;
#else
  (void)rng, (void)images, (void)step, (void)first_sample, (void)shape;
  fail("this build has no GPU kernels, and noise was asked for on ", device.str(),
       "; configure with the preset cuda");
#endif
}

}  // namespace

Tensor to_tensor(const Image& image) {
  const auto tensor = torch::empty({1, image.channels, image.height, image.width});
  check(static_cast<std::int64_t>(image.data.size()) == tensor.numel(),
        "an image's data does not match its size");
  std::memcpy(tensor.data_ptr<float>(), image.data.data(), image.data.size() * sizeof(float));
  return tensor;
}

Tensor to_tensor(const std::vector<Image>& images) {
  check(!images.empty(), "a batch needs at least one image");
  std::vector<Tensor> rows;
  for (const Image& image : images) {
    check(image.channels == images[0].channels && image.height == images[0].height &&
              image.width == images[0].width,
          "the images of one batch differ in size: ", image.width, "x", image.height, "x", image.channels,
          " and ", images[0].width, "x", images[0].height, "x", images[0].channels);
    rows.push_back(to_tensor(image));
  }
  return torch::cat(rows);
}

Image to_image(const Tensor& tensor) {
  Tensor chw = tensor;
  if (chw.dim() == 4 && chw.size(0) == 1) chw = chw[0];
  check(chw.dim() == 3 && chw.size(0) >= 1 && chw.size(0) <= 4,
        "a picture has shape [C, H, W] with 1 to 4 channels, not ", tensor.sizes());
  chw = chw.detach().to(torch::kCPU, torch::kFloat).contiguous();
  Image image{
      static_cast<int>(chw.size(0)), static_cast<int>(chw.size(1)), static_cast<int>(chw.size(2)), {}};
  image.data.assign(chw.data_ptr<float>(), chw.data_ptr<float>() + chw.numel());
  return image;
}

std::vector<Image> to_images(const Tensor& batch) {
  check(batch.dim() == 4, "a batch has shape [N, C, H, W], not ", batch.sizes());
  std::vector<Image> images;
  for (std::int64_t n = 0; n < batch.size(0); ++n) images.push_back(to_image(batch[n]));
  return images;
}

Tensor to_tensor(const TensorView& view) {
  const auto tensor = torch::empty(view.shape, torch::TensorOptions().dtype(torch_type(view.dtype)));
  const std::size_t size = static_cast<std::size_t>(view.elements()) * dtype_size(view.dtype);
  if (size == 0) return tensor;
  if (view.contiguous()) {
    std::memcpy(tensor.data_ptr(), view.data, size);
  } else {
    const auto bytes = contiguous_bytes(view);
    std::memcpy(tensor.data_ptr(), bytes.data(), size);
  }
  return tensor;
}

std::map<std::string, Tensor> load_tensors(const std::filesystem::path& path) {
  const StateDict file = StateDict::open(path);
  std::map<std::string, Tensor> tensors;
  for (const TensorView& view : file.tensors()) tensors.emplace(view.name, to_tensor(view));
  return tensors;
}

void save_tensors(const std::filesystem::path& path,
                  const std::vector<std::pair<std::string, Tensor>>& tensors,
                  const std::map<std::string, std::string>& metadata) {
  std::vector<Tensor> kept;  // keeps the contiguous copies alive while they are written
  std::vector<TensorToWrite> list;
  for (const auto& [name, tensor] : tensors) {
    kept.push_back(tensor.detach().to(torch::kCPU).contiguous());
    const Tensor& t = kept.back();
    list.push_back({name,
                    file_type(t.scalar_type()),
                    t.sizes().vec(),
                    {static_cast<const std::byte*>(t.data_ptr()), t.nbytes()}});
  }
  write_safetensors(path, list, metadata);
}

Tensor normal_noise(const Rng& rng, std::span<const std::uint32_t> images, std::uint32_t step,
                    std::uint32_t sample, torch::IntArrayRef shape_of_one, torch::Device device) {
  return normal_samples(rng, images, step, sample, 1, shape_of_one, device);
}

Tensor normal_samples(const Rng& rng, std::span<const std::uint32_t> images, std::uint32_t step,
                      std::uint32_t first_sample, std::int64_t samples, torch::IntArrayRef shape_of_one,
                      torch::Device device) {
  const auto batch = static_cast<std::int64_t>(images.size());
  const std::int64_t rows = samples * batch;
  std::vector<std::int64_t> shape{rows};
  shape.insert(shape.end(), shape_of_one.begin(), shape_of_one.end());
  if (device.is_cuda()) return normal_samples_cuda(rng, images, step, first_sample, shape, device);

  const Tensor noise = torch::empty(shape);
  const std::int64_t each = rows > 0 ? noise.numel() / rows : 0;
  // One row is shared among the threads by the generator itself, many rows are dealt out here.
  at::parallel_for(0, rows, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row) {
      const NoiseKey key{images[static_cast<std::size_t>(row % batch)], step,
                         first_sample + static_cast<std::uint32_t>(row / batch)};
      rng.normal(key, {noise.data_ptr<float>() + row * each, static_cast<std::size_t>(each)});
    }
  });
  return noise.to(device);
}

void check_finite(const Tensor& tensor, const std::string& what) {
  // A sum is finite only if every term is (a finite sum of floats in double cannot overflow).
  if (std::isfinite(tensor.detach().sum(torch::kDouble).item<double>())) return;
  fail(
      what,
      " has a NaN or infinity; try --precision fp32, and check the checkpoint and the input for such values");
}

}  // namespace dpg
