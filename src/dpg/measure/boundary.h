// What a blur sees beyond the edge of the picture.
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <string>

namespace dpg {

enum class Boundary {
  reflect,   // mirrored about the edge pixel, which is not repeated: d c b | a b c d | c b a
  circular,  // the picture repeats
  zero,      // zeros, mid-grey on the [-1, 1] range
};

const char* name(Boundary boundary);  // "reflect", "circular", "zero"

// Throws, naming `what`, when a kernel of `kernel` samples reaches further beyond `length` pixels than the
// boundary can supply. A kernel's origin is sample kernel / 2.
void check_reach(const std::string& what, std::int64_t kernel, std::int64_t length, Boundary boundary);

// The [length, length] float64 matrix of convolution with `kernel` ([k], float64) along one axis.
torch::Tensor convolution_matrix(const torch::Tensor& kernel, std::int64_t length, Boundary boundary);

}  // namespace dpg
