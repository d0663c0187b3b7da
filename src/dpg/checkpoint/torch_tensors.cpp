#include "dpg/checkpoint/torch_tensors.h"

#include <array>

#include "dpg/checkpoint/view_bounds.h"

namespace dpg::checkpoint {
namespace {

constexpr int kMaxDepth = 32;
constexpr std::size_t kMaxVisits = 1u << 20;  // shared values are visited once per place

// Where checkpoints keep the weights when not at the top; the averaged ones first.
constexpr std::array<std::string_view, 6> kStateDictKeys = {
    "ema", "ema_model", "state_dict", "model_state_dict", "model", "params"};

class Collector {
 public:
  Collector(const PickleDocument& document, const FindStorage& find_storage, const std::string& file)
      : document_(document), find_storage_(find_storage), file_(file) {}

  std::vector<TensorView> collect() {
    const Ref root = choose_root();
    visit(is_tensor(root) ? "0" : "", root, 0);
    return std::move(tensors_);
  }

 private:
  bool is_tensor(Ref ref) const {
    const auto* call = document_.get<Call>(ref);
    if (call == nullptr) return false;
    const GlobalKind kind = call->callable->kind;
    return kind == GlobalKind::rebuild_tensor || kind == GlobalKind::rebuild_tensor_v3 ||
           kind == GlobalKind::rebuild_parameter;
  }

  bool has_tensors(const Dict& dict) const {
    for (const auto& [key, value] : dict.items)
      if (is_tensor(value)) return true;
    return false;
  }

  Ref choose_root() const {
    const auto* top = document_.get<Dict>(document_.root);
    if (top == nullptr) return document_.root;
    for (const std::string_view wanted : kStateDictKeys) {
      for (const auto& [key, value] : top->items) {
        const auto* text = document_.get<Text>(key);
        const auto* dict = document_.get<Dict>(value);
        if (text != nullptr && text->utf8 == wanted && dict != nullptr && has_tensors(*dict)) return value;
      }
    }
    return document_.root;
  }

  void visit(const std::string& name, Ref ref, int depth) {
    check(depth <= kMaxDepth, file_, " nests its values deeper than ", kMaxDepth,
          " levels, or in a circle, at ", printable(name));
    check(++visits_ <= kMaxVisits, file_, " holds more than ", kMaxVisits, " values");
    if (is_tensor(ref)) return add_tensor(name, *document_.get<Call>(ref));
    if (const auto* dict = document_.get<Dict>(ref)) {
      for (const auto& [key, value] : dict->items) visit(join(name, key_text(key)), value, depth + 1);
    } else if (const auto* sequence = document_.get<Sequence>(ref)) {
      for (std::size_t i = 0; i < sequence->items.size(); ++i)
        visit(join(name, std::to_string(i)), sequence->items[i], depth + 1);
    }  // anything else is a setting, not a weight
  }

  std::string key_text(Ref key) const {
    if (const auto* text = document_.get<Text>(key))
      return std::string(text->utf8.substr(0, kMaxNameLength + 1));
    if (const auto* number = document_.get<std::int64_t>(key)) return std::to_string(*number);
    fail(file_, " has a dict with a key that is neither text nor a whole number");
  }

  std::string join(const std::string& prefix, const std::string& name) const {
    std::string joined = prefix.empty() ? name : prefix + "." + name;
    check(joined.size() <= kMaxNameLength, file_, " has the name ", printable(joined), " of more than ",
          kMaxNameLength, " bytes");
    return joined;
  }

  void add_tensor(const std::string& name, const Call& call) {
    check(tensors_.size() < kMaxTensors, file_, " holds more than ", kMaxTensors, " tensors");
    const Call* rebuild = &call;
    if (call.callable->kind == GlobalKind::rebuild_parameter) {
      const auto& arguments = arguments_of(call, 1, name);
      rebuild = document_.get<Call>(arguments[0]);
      check(rebuild != nullptr && rebuild->callable->kind != GlobalKind::rebuild_parameter &&
                is_tensor(arguments[0]),
            "parameter ", printable(name), " in ", file_, " is made of something that is no tensor");
    }
    tensors_.push_back(rebuild_tensor(name, *rebuild));
  }

  const std::vector<Ref>& arguments_of(const Call& call, std::size_t count, const std::string& name) const {
    const auto* arguments = document_.get<Sequence>(call.arguments);
    check(arguments != nullptr && arguments->items.size() >= count, "tensor ", printable(name), " in ", file_,
          " is described by fewer than ", count, " values");
    return arguments->items;
  }

  TensorView rebuild_tensor(const std::string& name, const Call& call) const {
    const bool third = call.callable->kind == GlobalKind::rebuild_tensor_v3;
    const std::vector<Ref>& arguments = arguments_of(call, third ? 7 : 4, name);
    const auto* storage = document_.get<Persistent>(arguments[0]);
    check(storage != nullptr, "tensor ", printable(name), " in ", file_, " has no storage");
    const StorageId id = read_storage_id(document_, storage->id, file_);

    Layout layout;
    layout.dtype = id.dtype;
    if (third) {
      const auto* dtype = document_.get<Global>(arguments[6]);
      check(dtype != nullptr && dtype->global->kind == GlobalKind::dtype, "tensor ", printable(name), " in ",
            file_, " has an element type that is none");
      layout.dtype = dtype->global->dtype;
    }
    layout.offset = integer(arguments[1], name);
    layout.shape = integers(arguments[2], name);
    layout.strides = integers(arguments[3], name);
    return checked_view(name, std::move(layout), find_storage_(id), file_);
  }

  std::int64_t integer(Ref ref, const std::string& name) const {
    const auto* value = document_.get<std::int64_t>(ref);
    check(value != nullptr, "tensor ", printable(name), " in ", file_,
          " has an offset, size or stride that is no 64-bit whole number");
    return *value;
  }

  Shape integers(Ref ref, const std::string& name) const {
    // A torch.Size is noted as the call torch.Size(tuple).
    if (const auto* size = document_.get<Call>(ref)) ref = arguments_of(*size, 1, name)[0];
    const auto* sequence = document_.get<Sequence>(ref);
    check(sequence != nullptr && sequence->items.size() <= kMaxDimensions, "tensor ", printable(name), " in ",
          file_, " has sizes or strides that are no tuple of at most ", kMaxDimensions, " numbers");
    Shape values;
    for (const Ref item : sequence->items) values.push_back(integer(item, name));
    return values;
  }

  const PickleDocument& document_;
  const FindStorage& find_storage_;
  const std::string& file_;
  std::vector<TensorView> tensors_;
  std::size_t visits_ = 0;
};

StorageId::Part read_part(const PickleDocument& document, const Sequence& view, std::int64_t elements,
                          const std::string& file) {
  const auto* offset = view.items.size() == 3 ? document.get<std::int64_t>(view.items[1]) : nullptr;
  const auto* count = view.items.size() == 3 ? document.get<std::int64_t>(view.items[2]) : nullptr;
  check(offset != nullptr && count != nullptr && *offset >= 0 && *count >= 0 && *offset <= elements &&
            *count <= elements - *offset,
        file, " has a storage view outside of its storage");
  return {*offset, *count};
}

}  // namespace

std::uint64_t StorageId::bytes() const {
  return static_cast<std::uint64_t>(elements) * dtype_size(dtype);
}

StorageId read_storage_id(const PickleDocument& document, Ref ref, const std::string& file) {
  const auto* id = document.get<Sequence>(ref);
  check(id != nullptr && !id->items.empty(), file, " refers to a storage without describing it");
  const auto* tag = document.get<Text>(id->items[0]);
  check(tag == nullptr || tag->utf8 != "module", file,
        " holds a whole Python model, not only weights; save model.state_dict() instead");
  check(tag != nullptr && tag->utf8 == "storage" && id->items.size() >= 5, file,
        " refers to a storage without describing it");
  const auto* type = document.get<Global>(id->items[1]);
  const auto* key = document.get<Text>(id->items[2]);
  const auto* elements = document.get<std::int64_t>(id->items[4]);
  check(type != nullptr && type->global->kind == GlobalKind::storage && key != nullptr && elements != nullptr,
        file, " describes a storage by something else than type, key, device and size");
  check(*elements >= 0 && *elements <= INT64_MAX / 8, file, " has a storage of the impossible size ",
        *elements);

  StorageId storage{key->utf8, type->global->dtype, *elements, std::nullopt};
  if (id->items.size() >= 6)
    if (const auto* view = document.get<Sequence>(id->items[5]))
      storage.part = read_part(document, *view, *elements, file);
  return storage;
}

std::vector<TensorView> collect_tensors(const PickleDocument& document, const FindStorage& find_storage,
                                        const std::string& file) {
  return Collector(document, find_storage, file).collect();
}

}  // namespace dpg::checkpoint
