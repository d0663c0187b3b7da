#include "dpg/checkpoint/view_bounds.h"

#include <algorithm>

namespace dpg::checkpoint {
namespace {

constexpr std::int64_t kMaxExpandedElements = 1 << 24;

// offset + sum of (size - 1) * stride: the last element that a tensor with elements reaches.
bool last_element(const Layout& layout, std::int64_t& last) {
  last = layout.offset;
  for (std::size_t axis = 0; axis < layout.shape.size(); ++axis) {
    std::int64_t reach = 0;
    if (__builtin_mul_overflow(layout.shape[axis] - 1, layout.strides[axis], &reach)) return false;
    if (__builtin_add_overflow(last, reach, &last)) return false;
  }
  return true;
}

}  // namespace

std::int64_t checked_elements(const Shape& shape, std::string_view tensor, const std::string& file) {
  check(shape.size() <= kMaxDimensions, "tensor ", printable(tensor), " in ", file, " has ", shape.size(),
        " dimensions; at most ", kMaxDimensions, " are read");
  std::int64_t product = 1;  // over the sizes that are not 0, so that no order of multiplying can overflow
  bool empty = false;
  for (const std::int64_t size : shape) {
    check(size >= 0, "tensor ", printable(tensor), " in ", file, " has the negative size ", size);
    empty |= size == 0;
    check(!__builtin_mul_overflow(product, std::max<std::int64_t>(size, 1), &product), "tensor ",
          printable(tensor), " in ", file, " has a shape with more elements than any memory can hold");
  }
  return empty ? 0 : product;
}

Shape row_major_strides(const Shape& shape) {
  Shape strides(shape.size());
  std::int64_t stride = 1;
  for (std::size_t axis = shape.size(); axis-- > 0;) {
    strides[axis] = stride;
    stride *= std::max<std::int64_t>(shape[axis], 1);
  }
  return strides;
}

TensorView checked_view(std::string name, Layout layout, Bytes storage, const std::string& file) {
  check(name.size() <= kMaxNameLength, "tensor ", printable(name), " in ", file, " has a name of ",
        name.size(), " bytes; at most ", kMaxNameLength, " are read");
  const std::int64_t elements = checked_elements(layout.shape, name, file);
  check(layout.strides.size() == layout.shape.size(), "tensor ", printable(name), " in ", file, " has ",
        layout.shape.size(), " sizes but ", layout.strides.size(), " strides");
  for (const std::int64_t stride : layout.strides)
    check(stride >= 0, "tensor ", printable(name), " in ", file, " has the negative stride ", stride);
  const auto stored = static_cast<std::int64_t>(storage.size() / dtype_size(layout.dtype));
  check(layout.offset >= 0 && layout.offset <= stored, "tensor ", printable(name), " in ", file,
        " starts at element ", layout.offset, " of a storage of ", stored, " elements");
  if (elements > 0) {
    std::int64_t last = 0;
    check(last_element(layout, last) && last < stored, "tensor ", printable(name), " in ", file,
          " reaches beyond its storage of ", stored, " elements");
    check(elements <= std::max(stored, kMaxExpandedElements), "tensor ", printable(name), " in ", file,
          " repeats its storage of ", stored, " elements to ", elements,
          "; save it with .contiguous() so that all of them are in the file");
  }
  const std::byte* data = storage.data() + static_cast<std::size_t>(layout.offset) * dtype_size(layout.dtype);
  return {std::move(name), layout.dtype, std::move(layout.shape), std::move(layout.strides), data};
}

}  // namespace dpg::checkpoint
