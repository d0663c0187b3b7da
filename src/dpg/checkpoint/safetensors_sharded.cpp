// A checkpoint in several safetensors files: a JSON index whose weight_map tells for each tensor which file
// has it.
#include <set>
#include <unordered_map>

#include "dpg/checkpoint/json_text.h"
#include "dpg/checkpoint/readers.h"
#include "dpg/checkpoint/view_bounds.h"

namespace dpg::checkpoint {
namespace {

using Json = nlohmann::json;

constexpr int kIndexDepth = 4;  // the metadata may nest a little
constexpr std::size_t kMaxShards = 4096;

// An index must not reach outside of its own folder.
void check_shard_name(const std::string& shard, const std::string& file) {
  const bool plain = !shard.empty() && shard != "." && shard != ".." && shard.size() <= 255 &&
                     shard.find_first_of(std::string_view("/\\\0", 3)) == shard.npos;
  check(plain, file, " names the shard ", printable(shard),
        "; a shard must be a plain file name in the same folder");
}

std::unordered_map<std::string, std::string> read_weight_map(const Json& index, const std::string& file) {
  const auto weight_map = index.is_object() ? index.find("weight_map") : index.end();
  check(index.is_object() && weight_map != index.end() && weight_map->is_object(), file,
        " is JSON but no index of a sharded checkpoint: it has no weight_map");
  check(!weight_map->empty() && weight_map->size() <= kMaxTensors, file, " lists ", weight_map->size(),
        " tensors; 1 to ", kMaxTensors, " are read");
  std::unordered_map<std::string, std::string> shard_of;
  for (const auto& [tensor, shard] : weight_map->items()) {
    check(shard.is_string(), file, " gives no file name for tensor ", printable(tensor));
    check_shard_name(shard.get_ref<const std::string&>(), file);
    shard_of.emplace(tensor, shard.get<std::string>());
  }
  return shard_of;
}

}  // namespace

Tensors read_safetensors_sharded(Bytes index_text, const std::filesystem::path& path,
                                 std::vector<MappedFile>& maps) {
  const std::string file = path.string();
  const Json index = parse_json(as_text(index_text), kIndexDepth, file);
  const auto shard_of = read_weight_map(index, file);
  std::set<std::string> shards;
  for (const auto& [tensor, shard] : shard_of) shards.insert(shard);
  check(shards.size() <= kMaxShards, file, " names ", shards.size(), " shards; at most ", kMaxShards,
        " are read");

  Tensors tensors;
  for (const std::string& shard : shards) {
    maps.emplace_back(path.parent_path() / shard);
    const std::string shard_file = maps.back().path().string();
    Tensors part = read_safetensors(maps.back().bytes(), shard_file);
    for (TensorView& view : part.views) {
      const auto listed = shard_of.find(view.name);
      check(listed != shard_of.end() && listed->second == shard, shard_file, " holds the tensor ",
            printable(view.name), ", which its index ", file, " does not place there");
      tensors.views.push_back(std::move(view));
    }
    tensors.metadata.merge(part.metadata);
  }
  // Each tensor found is listed, once per shard: fewer than listed means that some are missing.
  if (tensors.views.size() != shard_of.size()) {
    std::set<std::string_view> found;
    for (const TensorView& view : tensors.views) found.insert(view.name);
    for (const auto& [tensor, shard] : shard_of)
      check(found.contains(tensor), file, " places the tensor ", printable(tensor), " in ", printable(shard),
            ", which does not hold it; fetch that file again");
  }
  return tensors;
}

}  // namespace dpg::checkpoint
