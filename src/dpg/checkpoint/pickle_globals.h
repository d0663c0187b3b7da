// The Python names that a checkpoint may mention. They are only ever recognised: nothing is imported or
// called.
#pragma once

#include <string_view>

#include "dpg/checkpoint/state_dict.h"

namespace dpg::checkpoint {

enum class GlobalKind {
  ordered_dict,
  rebuild_tensor,     // (storage, offset, size, stride); _v2 adds gradients and hooks
  rebuild_tensor_v3,  // _v2 and, as the seventh argument, the element type of an untyped storage
  rebuild_parameter,  // (tensor, requires_grad, hooks)
  storage,
  dtype,
  inert,  // may stand in a file, holds nothing that is read
};

struct AllowedGlobal {
  std::string_view module, name;
  GlobalKind kind;
  DType dtype = DType::u8;  // of storage and dtype
};

// The allowed name, or nullptr.
const AllowedGlobal* find_allowed_global(std::string_view module, std::string_view name);

}  // namespace dpg::checkpoint
