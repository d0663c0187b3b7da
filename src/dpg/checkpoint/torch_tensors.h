// From the pickle of a torch checkpoint to its tensors: what both torch formats have in common. The rule by
// which tensors are chosen and named is in state_dict.h.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "dpg/checkpoint/pickle.h"
#include "dpg/checkpoint/state_dict.h"

namespace dpg::checkpoint {

// What the pickle says about a storage: ('storage', type, key, device, elements) and, in the legacy format,
// which part of the storage is meant.
struct StorageId {
  struct Part {
    std::int64_t offset, elements;
  };
  std::string_view key;
  DType dtype = DType::u8;
  std::int64_t elements = 0;  // not negative
  std::optional<Part> part;   // inside of the storage

  std::uint64_t bytes() const;  // fails to overflow: `elements` was checked
};

StorageId read_storage_id(const PickleDocument& document, Ref id, const std::string& file);

// Gives the bytes of a storage (of its part, where there is one).
using FindStorage = std::function<Bytes(const StorageId&)>;

std::vector<TensorView> collect_tensors(const PickleDocument& document, const FindStorage& find_storage,
                                        const std::string& file);

}  // namespace dpg::checkpoint
