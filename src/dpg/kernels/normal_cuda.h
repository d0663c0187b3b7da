// Standard normals drawn on the GPU: the numbers of Rng::normal, bit for bit. No torch, no CUDA headers here.
#pragma once

#include <cstdint>

struct CUstream_st;

namespace dpg::cuda {

struct NormalStreams {
  std::uint64_t seed;
  const std::uint32_t* images;  // on the GPU, `batch` of them
  std::int64_t batch;
  std::uint32_t step, first_sample;
};

// out[row * each + j], rows x each: number j of stream (images[row % batch], step, first_sample + row /
// batch).
void fill_normals(const NormalStreams& streams, std::int64_t rows, std::int64_t each, float* out,
                  CUstream_st* stream);

}  // namespace dpg::cuda
