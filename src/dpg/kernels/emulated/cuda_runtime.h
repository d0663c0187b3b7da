// Stands in for CUDA's header of this name where kernels are emulated.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

#include "dpg/kernels/emulated/emulated.h"

#define __global__
#define __device__
#define __host__
#define __shared__ static
#define __launch_bounds__(...)

#define threadIdx (::dpg::emulated::place().thread)
#define blockIdx (::dpg::emulated::place().block)
#define blockDim (::dpg::emulated::place().threads)
#define gridDim (::dpg::emulated::place().blocks)

struct alignas(8) float2 {
  float x, y;
};
struct alignas(16) float4 {
  float x, y, z, w;
};
inline float4 make_float4(float x, float y, float z, float w) {
  return {x, y, z, w};
}

inline void __syncthreads() {
  dpg::emulated::wait_for_block();
}
inline void __threadfence() {}
inline float __shfl_xor_sync(unsigned, float value, int flip) {
  return dpg::emulated::exchange(value, flip);
}
inline unsigned atomicAdd(unsigned* to, unsigned value) {
  const unsigned before = *to;
  *to += value;
  return before;
}
template <class T>
void __stcg(T* to, T value) {
  *to = value;
}
template <class T>
T __ldcg(const T* from) {
  return *from;
}

inline unsigned __umulhi(unsigned a, unsigned b) {
  return static_cast<unsigned>((static_cast<std::uint64_t>(a) * b) >> 32);
}
inline float __uint_as_float(unsigned bits) {
  return std::bit_cast<float>(bits);
}
inline float __fdividef(float a, float b) {
  return a / b;
}
inline float __expf(float x) {
  return std::exp(x);
}
inline float rsqrtf(float x) {
  return 1.0f / std::sqrt(x);
}

enum cudaError_t { cudaSuccess };
inline cudaError_t cudaGetLastError() {
  return cudaSuccess;
}
inline const char* cudaGetErrorString(cudaError_t) {
  return "no error";
}
