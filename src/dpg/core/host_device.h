// Marks small functions that also run on a GPU.
#pragma once

#if defined(__CUDACC__)
#define DPG_HOST_DEVICE __host__ __device__
#else
#define DPG_HOST_DEVICE
#endif
