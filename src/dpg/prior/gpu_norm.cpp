#include "dpg/prior/gpu_norm.h"

#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>
#include <torch/torch.h>

#include <map>
#include <mutex>

#include "dpg/core/error.h"
#include "dpg/kernels/norm_cuda.h"

namespace dpg {
namespace {

using kernels::Bf16;
constexpr auto kChannelsLast = torch::MemoryFormat::ChannelsLast;

cuda::Size size_of(Resample how) {
  return how == Resample::none   ? cuda::Size::same
         : how == Resample::down ? cuda::Size::half
                                 : cuda::Size::twice;
}

std::int64_t resized(std::int64_t side, Resample how) {
  return how == Resample::none ? side : how == Resample::down ? side / 2 : 2 * side;
}

cuda::NormPass pass_of(const GpuNormInput& x, bool silu) {
  check(x.how != Resample::down || (x.first.size(2) % 2 == 0 && x.first.size(3) % 2 == 0),
        "only pictures with even sides can be halved, not ", x.first.sizes());
  return {{x.first.size(0), x.first.size(2) * x.first.size(3), x.channels(), kNormGroups, kNormEps, silu},
          x.first.size(3),
          size_of(x.how)};
}

const float* pointer_or_null(const Tensor& t) {
  return t.defined() ? t.data_ptr<float>() : nullptr;
}

cuda::NormParameters parameters(const NormConstants& c, const Tensor& added) {
  const auto lies_well = [](const Tensor& t) {
    return !t.defined() || (t.stride(-1) == 1 && (t.dim() == 1 || t.stride(0) % 4 == 0 || t.size(0) == 1) &&
                            reinterpret_cast<std::uintptr_t>(t.data_ptr()) % 16 == 0);
  };
  check(
      lies_well(c.scale) && lies_well(c.shift) && lies_well(added) && lies_well(c.gamma) && lies_well(c.beta),
      "the GPU's norm takes constants that lie densely, their rows aligned to 16 bytes");
  return {c.gamma.data_ptr<float>(),
          c.beta.data_ptr<float>(),
          pointer_or_null(c.scale),
          pointer_or_null(c.shift),
          c.scale.defined() ? c.scale.stride(0) : 0,
          pointer_or_null(added),
          added.defined() && added.dim() == 2 ? added.stride(0) : 0};
}

template <class T>
cuda::Joined<T> joined(const Tensor& first, const Tensor& second) {
  if (!first.defined()) return {};
  return {static_cast<T*>(first.data_ptr()), first.size(1),
          second.defined() ? static_cast<T*>(second.data_ptr()) : nullptr};
}

// Zeros that every call leaves as zeros, one set for each stream: calls on one stream follow each other.
unsigned* arrival_counters(const Tensor& x, CUstream_st* stream) {
  constexpr std::int64_t kMostImages = 65536;
  static std::mutex mutex;
  static std::map<CUstream_st*, Tensor> all;
  const std::lock_guard<std::mutex> lock(mutex);
  Tensor& counters = all[stream];
  if (!counters.defined()) counters = torch::zeros({kMostImages}, x.options().dtype(torch::kInt));
  return static_cast<unsigned*>(counters.data_ptr());
}

struct Workspace {
  Tensor sums;
  CUstream_st* stream;
  cuda::NormWorkspace pointers;

  Workspace(const cuda::NormPass& pass, const Tensor& x)
      : sums(torch::empty({cuda::norm_workspace_floats(pass.shape)}, x.options().dtype(torch::kFloat))),
        stream(c10::cuda::getCurrentCUDAStream().stream()),
        pointers{sums.data_ptr<float>(), arrival_counters(x, stream)} {}
};

Tensor rows(const Tensor& t) {
  return t.defined() ? t.contiguous(kChannelsLast) : t;
}

// Calls f with the element types the kernels use for activations and for the norm's result.
template <class F>
void with_elements(torch::ScalarType activations, torch::ScalarType result, F f) {
  if (activations == torch::kFloat && result == torch::kFloat)
    f(float{}, float{});
  else if (activations == torch::kBFloat16 && result == torch::kBFloat16)
    f(Bf16{}, Bf16{});
  else if (activations == torch::kBFloat16 && result == torch::kFloat)
    f(Bf16{}, float{});
  else
    fail("the GPU's norm takes float and bf16, not ", torch::toString(activations), " to ",
         torch::toString(result));
}

}  // namespace

Tensor gpu_norm_forward(const GpuNormInput& input, const NormConstants& constants, torch::ScalarType type,
                        Tensor& statistics) {
  const c10::cuda::CUDAGuard guard(input.first.device());
  const GpuNormInput x{rows(input.first), rows(input.second), input.added, input.how};
  const cuda::NormPass pass = pass_of(x, constants.silu);
  Tensor y = torch::empty(
      {x.first.size(0), x.channels(), resized(x.first.size(2), x.how), resized(x.first.size(3), x.how)},
      x.first.options().dtype(type), kChannelsLast);
  statistics = torch::empty({x.first.size(0), kNormGroups, 2}, x.first.options().dtype(torch::kFloat));
  const Workspace workspace(pass, x.first);
  with_elements(x.first.scalar_type(), type, [&](auto element, auto result) {
    using T = decltype(element);
    using Y = decltype(result);
    cuda::norm_forward<T, Y>(pass, parameters(constants, x.added), joined<const T>(x.first, x.second),
                             static_cast<Y*>(y.data_ptr()), statistics.data_ptr<float>(), workspace.pointers,
                             workspace.stream);
  });
  return y;
}

std::pair<Tensor, Tensor> gpu_norm_backward(const GpuNormInput& input, const NormConstants& constants,
                                            const Tensor& statistics, const Tensor& gradient,
                                            const GpuNormAdded& added) {
  const c10::cuda::CUDAGuard guard(input.first.device());
  const GpuNormInput x{rows(input.first), rows(input.second), input.added, input.how};
  const cuda::NormPass pass = pass_of(x, constants.silu);
  const Tensor dy = rows(gradient), first = rows(added.first), second = rows(added.second),
               other = rows(added.other);
  std::pair<Tensor, Tensor> dx{torch::empty_like(x.first),
                               x.second.defined() ? torch::empty_like(x.second) : Tensor()};
  const Workspace workspace(pass, x.first);
  with_elements(x.first.scalar_type(), dy.scalar_type(), [&](auto element, auto result) {
    using T = decltype(element);
    using Y = decltype(result);
    cuda::norm_backward<T, Y>(
        pass, parameters(constants, x.added), joined<const T>(x.first, x.second),
        statistics.data_ptr<float>(), static_cast<const Y*>(dy.data_ptr()),
        {joined<const T>(first, second), other.defined() ? static_cast<const T*>(other.data_ptr()) : nullptr},
        joined<T>(dx.first, dx.second), workspace.pointers, workspace.stream);
  });
  return dx;
}

void gpu_add(const Tensor& out, const Tensor& other_, Resample how, const Tensor& bias) {
  const c10::cuda::CUDAGuard guard(out.device());
  const Tensor other = rows(other_);
  check(out.is_contiguous(kChannelsLast) && out.size(0) == other.size(0) && out.size(1) == other.size(1) &&
            out.size(2) == resized(other.size(2), how) && out.size(3) == resized(other.size(3), how),
        "the GPU's sum takes tensors that fit, channels last, not ", out.sizes(), " and ", other.sizes());
  CUstream_st* stream = c10::cuda::getCurrentCUDAStream().stream();
  with_elements(out.scalar_type(), out.scalar_type(), [&](auto element, auto) {
    using T = decltype(element);
    cuda::add_with_bias<T>(out.size(0), out.size(2) * out.size(3), out.size(1),
                           static_cast<T*>(out.data_ptr()), static_cast<const T*>(other.data_ptr()),
                           other.size(3), size_of(how), pointer_or_null(bias), stream);
  });
}

}  // namespace dpg
