#include <cuda_runtime.h>

#include "dpg/core/error.h"
#include "dpg/core/normal_math.h"
#include "dpg/core/philox.h"
#include "dpg/kernels/normal_cuda.h"

namespace dpg::cuda {
namespace {

constexpr int kThreads = 256;

// One thread makes the four numbers of one counter value; y runs over rows.
__global__ void normal_rows(NormalStreams s, std::int64_t rows, std::int64_t each, float* out) {
  const std::int64_t block = blockIdx.x * static_cast<std::int64_t>(kThreads) + threadIdx.x;
  const std::int64_t first = 4 * block;
  if (first >= each) return;
  const PhiloxKey key{static_cast<std::uint32_t>(s.seed), static_cast<std::uint32_t>(s.seed >> 32)};
  for (std::int64_t row = blockIdx.y; row < rows; row += gridDim.y) {
    const PhiloxWords words =
        philox4x32_10({static_cast<std::uint32_t>(block), s.images[row % s.batch], s.step,
                       s.first_sample + static_cast<std::uint32_t>(row / s.batch)},
                      key);
    const NormalPair a = words_to_normals(words.w0, words.w1);
    const NormalPair b = words_to_normals(words.w2, words.w3);
    const float four[4] = {a.first, a.second, b.first, b.second};
    float* to = out + row * each + first;
    const int count = each - first < 4 ? static_cast<int>(each - first) : 4;
    for (int j = 0; j < count; ++j) to[j] = four[j];
  }
}

}  // namespace

void fill_normals(const NormalStreams& streams, std::int64_t rows, std::int64_t each, float* out,
                  CUstream_st* stream) {
  if (rows == 0 || each == 0) return;
  const std::int64_t blocks = (each + 3) / 4;
  const dim3 grid(static_cast<unsigned>((blocks + kThreads - 1) / kThreads),
                  static_cast<unsigned>(rows < 65535 ? rows : 65535));
  normal_rows<<<grid, kThreads, 0, stream>>>(streams, rows, each, out);
  const cudaError_t status = cudaGetLastError();
  check(status == cudaSuccess, "random numbers on the GPU: ", cudaGetErrorString(status));
}

}  // namespace dpg::cuda
