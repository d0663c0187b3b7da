#include "dpg/checkpoint/pickle_globals.h"

namespace dpg::checkpoint {
namespace {

using enum GlobalKind;

constexpr AllowedGlobal kAllowed[] = {
    {"collections", "OrderedDict", ordered_dict},
    {"torch._utils", "_rebuild_tensor", rebuild_tensor},
    {"torch._utils", "_rebuild_tensor_v2", rebuild_tensor},
    {"torch._utils", "_rebuild_tensor_v3", rebuild_tensor_v3},
    {"torch._utils", "_rebuild_parameter", rebuild_parameter},

    {"torch", "DoubleStorage", storage, DType::f64},
    {"torch", "FloatStorage", storage, DType::f32},
    {"torch", "HalfStorage", storage, DType::f16},
    {"torch", "BFloat16Storage", storage, DType::bf16},
    {"torch", "LongStorage", storage, DType::i64},
    {"torch", "IntStorage", storage, DType::i32},
    {"torch", "ShortStorage", storage, DType::i16},
    {"torch", "CharStorage", storage, DType::i8},
    {"torch", "ByteStorage", storage, DType::u8},
    {"torch", "BoolStorage", storage, DType::boolean},
    {"torch", "UntypedStorage", storage, DType::u8},
    {"torch.storage", "UntypedStorage", storage, DType::u8},
    {"torch.storage", "_UntypedStorage", storage, DType::u8},

    {"torch", "float64", dtype, DType::f64},
    {"torch", "float32", dtype, DType::f32},
    {"torch", "float16", dtype, DType::f16},
    {"torch", "bfloat16", dtype, DType::bf16},
    {"torch", "int64", dtype, DType::i64},
    {"torch", "int32", dtype, DType::i32},
    {"torch", "int16", dtype, DType::i16},
    {"torch", "int8", dtype, DType::i8},
    {"torch", "uint8", dtype, DType::u8},
    {"torch", "bool", dtype, DType::boolean},

    {"torch", "Size", inert},
    {"torch", "device", inert},
};

}  // namespace

const AllowedGlobal* find_allowed_global(std::string_view module, std::string_view name) {
  // Old torch named the class of a GPU's storage by its device; it holds the same numbers.
  if (module == "torch.cuda" && name.ends_with("Storage")) module = "torch";
  for (const AllowedGlobal& allowed : kAllowed)
    if (allowed.name == name && allowed.module == module) return &allowed;
  return nullptr;
}

}  // namespace dpg::checkpoint
