// Reading the elements of a TensorView. The data may be unaligned, so that each element is loaded by memcpy.
#include <algorithm>

#include "dpg/checkpoint/byte_reader.h"
#include "dpg/checkpoint/dtype.h"
#include "dpg/checkpoint/state_dict.h"

namespace dpg {
namespace {

using checkpoint::load;

// Elements at a constant distance (in elements) from each other.
struct Run {
  const std::byte* data;
  std::int64_t stride;
  std::int64_t count;
};

// Calls visit(Run) for the tensor's elements in row-major order: once when contiguous, else per innermost
// row.
template <class Visit>
void for_each_run(const TensorView& tensor, Visit&& visit) {
  const std::int64_t elements = tensor.elements();
  if (elements == 0) return;
  if (tensor.contiguous()) return visit(Run{tensor.data, 1, elements});

  const std::size_t outer = tensor.shape.size() - 1;
  const auto element_size = static_cast<std::int64_t>(dtype_size(tensor.dtype));
  Shape index(outer, 0);
  for (std::int64_t done = 0; done < elements; done += tensor.shape.back()) {
    std::int64_t offset = 0;
    for (std::size_t axis = 0; axis < outer; ++axis) offset += index[axis] * tensor.strides[axis];
    visit(Run{tensor.data + offset * element_size, tensor.strides.back(), tensor.shape.back()});
    for (std::size_t axis = outer; axis-- > 0;) {
      if (++index[axis] < tensor.shape[axis]) break;
      index[axis] = 0;
    }
  }
}

template <class Stored, class Convert>
void convert_run(const Run& run, float* out, Convert convert) {
  for (std::int64_t i = 0; i < run.count; ++i)
    out[i] = convert(load<Stored>(run.data + i * run.stride * static_cast<std::int64_t>(sizeof(Stored))));
}

void convert_run(DType dtype, const Run& run, float* out) {
  const auto cast = [](auto value) { return static_cast<float>(value); };
  switch (dtype) {
    case DType::f64:
      return convert_run<double>(run, out, cast);
    case DType::f32:
      return convert_run<float>(run, out, cast);
    case DType::f16:
      return convert_run<std::uint16_t>(run, out, half_to_float);
    case DType::bf16:
      return convert_run<std::uint16_t>(run, out, bfloat16_to_float);
    case DType::i64:
      return convert_run<std::int64_t>(run, out, cast);
    case DType::i32:
      return convert_run<std::int32_t>(run, out, cast);
    case DType::i16:
      return convert_run<std::int16_t>(run, out, cast);
    case DType::i8:
      return convert_run<std::int8_t>(run, out, cast);
    case DType::u8:
      return convert_run<std::uint8_t>(run, out, cast);
    case DType::boolean:
      return convert_run<std::uint8_t>(run, out, [](std::uint8_t v) { return v != 0 ? 1.0f : 0.0f; });
  }
}

}  // namespace

std::int64_t TensorView::elements() const {
  std::int64_t product = 1;
  for (const std::int64_t size : shape) product *= size;
  return product;
}

bool TensorView::contiguous() const {
  if (elements() == 0) return true;
  std::int64_t expected = 1;
  for (std::size_t axis = shape.size(); axis-- > 0;) {
    if (shape[axis] != 1 && strides[axis] != expected) return false;
    expected *= shape[axis];
  }
  return true;
}

void copy_as_float(const TensorView& tensor, std::span<float> out) {
  check(out.size() == static_cast<std::size_t>(tensor.elements()), "tensor ", tensor.name, " has ",
        tensor.elements(), " elements but ", out.size(), " places were given for them");
  float* next = out.data();
  for_each_run(tensor, [&](const Run& run) {
    convert_run(tensor.dtype, run, next);
    next += run.count;
  });
}

std::vector<std::byte> contiguous_bytes(const TensorView& tensor) {
  const std::size_t element_size = dtype_size(tensor.dtype);
  std::vector<std::byte> bytes(static_cast<std::size_t>(tensor.elements()) * element_size);
  std::byte* next = bytes.data();
  for_each_run(tensor, [&](const Run& run) {
    const std::int64_t step = run.stride * static_cast<std::int64_t>(element_size);
    const std::int64_t copies = run.stride == 1 ? 1 : run.count;
    const std::size_t size =
        run.stride == 1 ? static_cast<std::size_t>(run.count) * element_size : element_size;
    for (std::int64_t i = 0; i < copies; ++i, next += size) std::memcpy(next, run.data + i * step, size);
  });
  return bytes;
}

}  // namespace dpg
