// Writes the first inputs of the three checkpoint targets: make_checkpoint_corpus FOLDER [SHARED]
// FOLDER gets one folder per target. SHARED is the folder with reference files; small checkpoints in it are
// added.
#include <cstdio>
#include <exception>
#include <filesystem>

#include "dpg/checkpoint/sample_files.h"
#include "dpg/checkpoint/state_dict.h"
#include "dpg/core/file.h"

namespace {

using namespace dpg::checkpoint::sample;

constexpr const char* kZip = "fuzz_checkpoint_zip";
constexpr const char* kLegacy = "fuzz_checkpoint_legacy";
constexpr const char* kSafetensors = "fuzz_checkpoint_safetensors";

class Corpus {
 public:
  explicit Corpus(std::filesystem::path folder) : folder_(std::move(folder)) {
    for (const char* target : {kZip, kLegacy, kSafetensors})
      std::filesystem::create_directories(folder_ / target);
  }

  void add(const char* target, const std::string& name, const std::string& bytes) {
    dpg::write_text(folder_ / target / name, bytes);
    ++count_;
  }

  // A whole file, which must be readable: a seed that is refused at once would teach the fuzzer nothing.
  void add_good(const char* target, const std::string& name, const std::string& bytes) {
    dpg::StateDict::parse(view(bytes), name);
    add(target, name, bytes);
  }

  int count() const { return count_; }

 private:
  std::filesystem::path folder_;
  int count_ = 0;
};

const Tensor kWeight{.key = "0", .storage_elements = 6, .shape = {2, 3}, .strides = {3, 1}};
const Tensor kScalar{.key = "1", .storage_elements = 1};
const Storages kStorages = {{"0", floats({1, 2, 3, 4, 5, 6})}, {"1", floats({7})}};

// Objects that lead to different places of the pickle reader and of the choice of tensors.
std::vector<std::pair<std::string, std::string>> objects() {
  const std::string weights = dict({{"w", tensor(kWeight)}, {"s", parameter(kScalar)}});
  const std::string ordered = call(global("collections", "OrderedDict"), ")");
  const std::string pairs = list({list({text("w"), tensor(kWeight)}), list({text("s"), tensor(kScalar)})});
  Tensor expanded = kWeight, empty = kWeight, part = kWeight;
  expanded.strides = {0, 1};
  empty.shape = {0, 3};
  part.legacy_view = tuple({text("v"), number(0), number(6)});
  return {
      {"plain", weights},
      {"container",
       dict({{"epoch", number(3)}, {"lr", "G" + std::string(8, '?')}, {"ema", weights}, {"model", weights}})},
      {"nested", dict({{"a", dict({{"b", weights}})}})},
      {"list", list({tensor(kWeight), tensor(kScalar)})},
      {"ordered", ordered + "(" + text("w") + tensor(kWeight) + text("s") + tensor(kScalar) + "u}b"},
      {"python2", call(global("collections", "OrderedDict"), tuple({pairs}))},
      {"shapes",
       dict({{"e", tensor(expanded)}, {"0", tensor(empty)}, {"p", tensor(part)}, {"s", tensor(kScalar)}})},
      {"shared", "}q\x01(" + text("w") + tensor(kWeight) + "q\x02" + text("again") + "h\x02" + text("s") +
                     tensor(kScalar) + "u"},
      {"settings", dict({{"w", tensor(kWeight)},
                         {"s", tensor(kScalar)},
                         {"size", call(global("torch", "Size"), tuple({tuple({number(1)})}))},
                         {"dtype", global("torch", "float16")},
                         {"device", text("torch") + text("device") + "\x93" + tuple({text("cpu")}) + "R"},
                         {"misc", tuple({"N", "\x88", "\x89", "J" + raw(-1), "K\x01", "C\x01z", "\x8f"})}})}};
}

void add_torch(Corpus& corpus) {
  for (const auto& [name, object] : objects()) {
    const std::string data = pickle(object);
    corpus.add_good(kZip, name + ".pt", torch_zip(data, kStorages));
    corpus.add_good(kZip, name + "-zip32.pt", torch_zip(data, kStorages, false));
    corpus.add(kZip, name + ".pkl", data);
    corpus.add_good(kLegacy, name + ".pt", torch_legacy(data, kStorages));
  }
  for (const char* storage :
       {"DoubleStorage", "HalfStorage", "BFloat16Storage", "LongStorage", "BoolStorage"}) {
    Tensor scalar;
    scalar.storage_class = storage;
    scalar.storage_elements = 1;
    const std::string data = pickle(dict({{"x", tensor(scalar)}}));
    corpus.add_good(kZip, std::string(storage) + ".pt", torch_zip(data, {{"0", std::string(8, '?')}}));
    corpus.add(kLegacy, std::string(storage) + ".pt", torch_legacy(data, {{"0", std::string(8, '?')}}, 8));
  }
}

void add_safetensors(Corpus& corpus) {
  corpus.add_good(kSafetensors, "good.safetensors", good_safetensors());
  corpus.add(kSafetensors, "header.json", R"({"a":{"dtype":"F32","shape":[2,2],"data_offsets":[0,16]}})");
  for (const char* dtype : {"F64", "F32", "F16", "BF16", "I64", "I32", "I16", "I8", "U8", "BOOL"}) {
    const std::size_t size = std::string_view(dtype).ends_with("64")   ? 8
                             : std::string_view(dtype).ends_with("32") ? 4
                             : std::string_view(dtype).ends_with("16") ? 2
                                                                       : 1;
    const std::string header =
        dpg::str(R"({"x":{"dtype":")", dtype, R"(","shape":[2,1],"data_offsets":[0,)", 2 * size,
                 R"(]},"e":{"dtype":"U8","shape":[0],"data_offsets":[0,0]}})");
    corpus.add_good(kSafetensors, std::string(dtype) + ".safetensors",
                    safetensors(header, std::string(2 * size, '\1')));
  }
}

void add_shared(Corpus& corpus, const std::filesystem::path& shared) {
  for (const char* net : {"alex", "squeeze", "vgg"}) {
    const std::filesystem::path path = shared / "weights/lpips_heads" / (std::string(net) + ".pth");
    if (std::filesystem::exists(path)) corpus.add_good(kLegacy, path.filename(), dpg::read_text(path));
  }
}

}  // namespace

int main(int argc, char** argv) try {
  if (argc != 2 && argc != 3) {
    std::fprintf(stderr, "usage: %s FOLDER [SHARED]\n", argv[0]);
    return 2;
  }
  Corpus corpus(argv[1]);
  add_torch(corpus);
  add_safetensors(corpus);
  if (argc == 3) add_shared(corpus, argv[2]);
  std::printf("%d seeds written to %s\n", corpus.count(), argv[1]);
  return 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
