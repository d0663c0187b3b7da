// safetensors: a 64-bit header length, a JSON header, then the data of all tensors without gaps.
#include <algorithm>
#include <array>

#include "dpg/checkpoint/json_text.h"
#include "dpg/checkpoint/readers.h"
#include "dpg/checkpoint/view_bounds.h"

namespace dpg::checkpoint {
namespace {

using Json = nlohmann::json;

constexpr int kHeaderDepth = 3;  // header object, tensor object, shape array

DType dtype_from_name(const std::string& dtype, const std::string& tensor, const std::string& file) {
  static constexpr std::array<std::pair<std::string_view, DType>, 10> kNames = {{{"F64", DType::f64},
                                                                                 {"F32", DType::f32},
                                                                                 {"F16", DType::f16},
                                                                                 {"BF16", DType::bf16},
                                                                                 {"I64", DType::i64},
                                                                                 {"I32", DType::i32},
                                                                                 {"I16", DType::i16},
                                                                                 {"I8", DType::i8},
                                                                                 {"U8", DType::u8},
                                                                                 {"BOOL", DType::boolean}}};
  for (const auto& [name, value] : kNames)
    if (name == dtype) return value;
  fail("tensor ", printable(tensor), " in ", file, " has the element type ", printable(dtype),
       ", which is not read; convert it to F32, F16 or BF16");
}

const Json& field(const Json& entry, const char* key, const std::string& tensor, const std::string& file) {
  const auto found = entry.find(key);
  check(found != entry.end(), "tensor ", printable(tensor), " in ", file, " has no ", key);
  return *found;
}

std::vector<std::int64_t> integers(const Json& list, const char* what, const std::string& tensor,
                                   const std::string& file) {
  check(list.is_array(), "tensor ", printable(tensor), " in ", file, " has a ", what, " that is no list");
  std::vector<std::int64_t> values;
  values.reserve(list.size());
  for (const Json& item : list) {
    check(item.is_number_unsigned() && item.get<std::uint64_t>() <= INT64_MAX, "tensor ", printable(tensor),
          " in ", file, " has a ", what, " with something else than a whole number");
    values.push_back(item.get<std::int64_t>());
  }
  return values;
}

TensorView read_entry(const std::string& name, const Json& entry, Bytes data, const std::string& file) {
  check(entry.is_object() && entry.size() == 3, "tensor ", printable(name), " in ", file,
        " must be described by exactly dtype, shape and data_offsets");
  const Json& dtype = field(entry, "dtype", name, file);
  check(dtype.is_string(), "tensor ", printable(name), " in ", file, " has a dtype that is no text");
  const auto offsets = integers(field(entry, "data_offsets", name, file), "data_offsets", name, file);
  check(offsets.size() == 2 && offsets[0] <= offsets[1] &&
            static_cast<std::uint64_t>(offsets[1]) <= data.size(),
        "tensor ", printable(name), " in ", file, " has data_offsets outside of the file's ", data.size(),
        " bytes of data");
  const Bytes storage =
      data.subspan(static_cast<std::size_t>(offsets[0]), static_cast<std::size_t>(offsets[1] - offsets[0]));
  Layout layout;
  layout.dtype = dtype_from_name(dtype.get_ref<const std::string&>(), name, file);
  layout.shape = integers(field(entry, "shape", name, file), "shape", name, file);
  const auto elements = static_cast<std::uint64_t>(checked_elements(layout.shape, name, file));
  check(
      storage.size() % dtype_size(layout.dtype) == 0 && storage.size() / dtype_size(layout.dtype) == elements,
      "tensor ", printable(name), " in ", file, " has ", elements, " elements of type ",
      dtype_name(layout.dtype), " but ", storage.size(), " bytes of data");
  layout.strides = row_major_strides(layout.shape);
  return checked_view(name, std::move(layout), storage, file);
}

// Sorts by place and checks that the tensors cover the data, each byte once.
void check_coverage(std::vector<TensorView>& views, Bytes data, const std::string& file) {
  const auto size = [](const TensorView& view) {
    return static_cast<std::size_t>(view.elements()) * dtype_size(view.dtype);
  };
  std::stable_sort(views.begin(), views.end(), [&](const TensorView& a, const TensorView& b) {
    return a.data != b.data ? a.data < b.data : size(a) < size(b);  // empty tensors before what follows them
  });
  const std::byte* end = data.data();
  for (const TensorView& view : views) {
    check(view.data == end, "tensor ", printable(view.name), " in ", file,
          view.data < end ? " overlaps" : " leaves a gap after",
          " the tensor before it; the file is damaged, fetch it again");
    end += size(view);
  }
  check(end == data.data() + data.size(), file, " has ", data.data() + data.size() - end,
        " bytes after its last tensor; the file is damaged, fetch it again");
}

}  // namespace

Tensors read_safetensors(Bytes bytes, const std::string& file) {
  ByteReader reader(bytes, file);
  const auto header_size = reader.read<std::uint64_t>("the header's length");
  check(header_size <= kMaxJsonText, file, " announces a header of ", header_size, " bytes; at most ",
        kMaxJsonText, " are read");
  const std::string_view header_text = as_text(reader.take(header_size, "the header"));
  const Bytes data = reader.take(reader.remaining(), "the data");
  const Json header = parse_json(header_text, kHeaderDepth, file);
  check(header.is_object(), file, " has a header that is no JSON object");
  check(header.size() <= kMaxTensors, file, " lists ", header.size(), " tensors; at most ", kMaxTensors,
        " are read");

  Tensors tensors;
  for (const auto& [name, entry] : header.items()) {
    if (name == "__metadata__") {
      check(entry.is_object(), file, " has a __metadata__ that is no JSON object");
      for (const auto& [key, value] : entry.items()) {
        check(value.is_string(), file, " has the metadata ", printable(key), " that is no text");
        tensors.metadata.emplace(key, value.get<std::string>());
      }
    } else {
      tensors.views.push_back(read_entry(name, entry, data, file));
    }
  }
  check_coverage(tensors.views, data, file);
  return tensors;
}

}  // namespace dpg::checkpoint
