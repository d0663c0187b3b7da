// Convolution with any kernel, of any aspect, one per image or one for all. The kernel's origin is sample
// (height / 2, width / 2); it is normalised to sum one. Circular: spectral by the FFT. Reflect and zero:
// linear, a padded FFT; solves by conjugate gradients. "kernel:FILE,boundary=reflect"
#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include "dpg/measure/boundary.h"
#include "dpg/measure/operator.h"

namespace dpg {

// `kernels` is [B, height, width]. `spec` is what the operator answers as its textual form.
std::shared_ptr<const LinearOperator> make_kernel_blur(const ImageShape& shape, const Tensor& kernels,
                                                       Boundary boundary, std::string spec);

// The kernel as a picture (black is zero) or as numbers in an NPY file (taken as they are, may be negative).
struct FileKernelOptions {
  std::filesystem::path file = {};
  Boundary boundary = Boundary::reflect;

  void validate() const;
  std::string spec() const;
};
std::shared_ptr<const LinearOperator> make_file_kernel_blur(const ImageShape& shape,
                                                            const FileKernelOptions& options);

// [height, width], float64, sum one.
Tensor read_kernel(const std::filesystem::path& file);

}  // namespace dpg
