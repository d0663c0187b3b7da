// Files made to mislead: each must be refused with a sentence, and none may run anything, hang or read out of
// bounds (the asan preset runs these tests too).
#include <limits>

#include "dpg/checkpoint/test_support.h"

namespace dpg {
namespace {

using namespace checkpoint::sample;

constexpr std::int64_t kHuge = std::numeric_limits<std::int64_t>::max();

Tensor four() {
  return {.key = "0", .storage_elements = 4, .shape = {2, 2}, .strides = {2, 1}};
}

// The object in both torch formats, on one storage of four floats.
std::vector<std::string> both(const std::string& object) {
  const Storages storages = {{"0", floats({1, 2, 3, 4})}};
  return {torch_zip(pickle(object), storages), torch_legacy(pickle(object), storages)};
}

// The same for an object without tensors.
std::vector<std::string> both_bare(const std::string& object) {
  return {torch_zip(pickle(object), {}), torch_legacy(pickle(object), {})};
}

// Parses a copy that ends where its memory ends, and reads every element of what was accepted.
bool accepts(std::string_view bytes) {
  const std::vector<char> exact(bytes.begin(), bytes.end());
  try {
    const StateDict state = StateDict::parse(std::as_bytes(std::span(exact)), "sample.file");
    for (const TensorView& tensor : state.tensors())
      if (tensor.elements() < 1 << 16) values(tensor);
    return true;
  } catch (const Error&) {
    return false;
  }
}

TEST(HostileFile, UnknownNamesAreNamedAndNothingRuns) {
  const TemporaryFolder folder;
  const std::string command = "touch " + (folder / "ran").string();
  for (const auto& [module, name] : {std::pair{"os", "system"},
                                     {"posix", "system"},
                                     {"builtins", "eval"},
                                     {"torch.hub", "load"},
                                     {"torch", "load"},
                                     {"torch.cuda", "synchronize"}}) {
    const std::string attack = call(global(module, name), tuple({text(command)}));
    const std::string stacked = call(text(module) + text(name) + "\x93", tuple({text(command)}));
    for (const std::string& object : {attack, stacked, dict({{"x", tensor(four())}, {"y", attack}})})
      for (const std::string& bytes : both(object)) EXPECT_REFUSED(bytes, std::string(module) + "." + name);
  }
  EXPECT_FALSE(std::filesystem::exists(folder / "ran"));
  // Nor can a name break out of the message.
  EXPECT_REFUSED(torch_zip(pickle(global("a\x1b[2J", "b")), {}), "a\\x1b[2J.b");
}

TEST(HostileFile, AllowedNamesAreNotCalledEither) {
  const std::string device = call(global("torch", "device"), tuple({text("cuda"), number(0)}));
  for (const std::string& bytes : both(dict({{"x", tensor(four())}, {"device", device}})))
    EXPECT_TRUE(accepts(bytes));
  EXPECT_REFUSED(torch_zip(pickle(call(text("os"), ")")), {}), "no function");
}

TEST(HostileFile, OffsetsShapesAndStridesOutsideOfTheStorage) {
  struct Case {
    std::int64_t offset;
    std::vector<std::int64_t> shape, strides;
    const char* message;
  };
  const Case cases[] = {
      {-1, {2, 2}, {2, 1}, "starts at element"},
      {5, {0}, {1}, "starts at element"},
      {kHuge, {2, 2}, {2, 1}, "starts at element"},
      {1, {2, 2}, {2, 1}, "beyond its storage"},
      {4, {}, {}, "beyond its storage"},
      {0, {2, 2}, {3, 1}, "beyond its storage"},
      {0, {5}, {1}, "beyond its storage"},
      {0, {3}, {kHuge}, "beyond its storage"},
      {0, {kHuge, 1}, {kHuge, 1}, "beyond its storage"},
      {3, {2, 2}, {kHuge, kHuge}, "beyond its storage"},
      {0, {2, 2}, {-1, 1}, "negative stride"},
      {0, {-2, 2}, {2, 1}, "negative size"},
      {0, {-2, -2}, {2, 1}, "negative size"},
      {0, {1ll << 32, 1ll << 32}, {0, 0}, "more elements"},
      {0, {0, 1ll << 32, 1ll << 32}, {0, 0, 0}, "more elements"},
      {0, {1ll << 62, 4}, {0, 0}, "more elements"},
      {0, {1ll << 40}, {0}, "repeats its storage"},
      {0, {2, 2}, {2}, "2 sizes but 1 strides"},
      {0, std::vector<std::int64_t>(65, 1), std::vector<std::int64_t>(65, 1), "at most 64"},
  };
  for (const Case& bad : cases) {
    Tensor lying = four();
    lying.offset = bad.offset;
    lying.shape = bad.shape;
    lying.strides = bad.strides;
    for (const std::string& bytes : both(dict({{"x", tensor(lying)}}))) EXPECT_REFUSED(bytes, bad.message);
  }
}

TEST(HostileFile, StorageSizes) {
  for (const std::int64_t elements : {std::int64_t{5}, std::int64_t{1} << 40, kHuge, std::int64_t{-1}}) {
    Tensor lying = four();
    lying.storage_elements = elements;
    for (const std::string& bytes : both(dict({{"x", tensor(lying)}}))) EXPECT_REFUSED(bytes, "storage");
  }
  Tensor elsewhere = four();
  elsewhere.key = "../../etc/passwd";
  for (const std::string& bytes : both(dict({{"x", tensor(elsewhere)}}))) EXPECT_REFUSED(bytes, "storage");
  // Two tensors that disagree about one storage.
  Tensor doubles = four();
  doubles.storage_class = "DoubleStorage";
  EXPECT_REFUSED(both(dict({{"x", tensor(four())}, {"y", tensor(doubles)}}))[1], "contradict");
}

TEST(HostileFile, ValuesThatAreNoTensors) {
  const std::string rebuild = global("torch._utils", "_rebuild_tensor_v2");
  const std::string wrapped = global("torch._utils", "_rebuild_parameter");
  for (const std::string& object :
       {call(rebuild, ")"), call(rebuild, tuple({"N", "N", "N", "N"})),
        call(rebuild, tuple({number(1) + "Q", "N", "N", "N"})), call(wrapped, tuple({number(1)})),
        call(wrapped, tuple({call(wrapped, tuple({tensor(four())}))}))})
    for (const std::string& bytes : both(dict({{"x", object}}))) EXPECT_NE(refusal(bytes), "");
  const std::string model = tuple({text("module"), "N", "N"}) + "Q";
  EXPECT_REFUSED(both(dict({{"x", model}}))[1], "whole Python model");
}

TEST(HostileFile, CirclesAndDepth) {
  const std::string itself =
      "]q\x01h\x01"
      "a";  // a list that contains itself
  for (const std::string& bytes : both_bare(itself)) EXPECT_REFUSED(bytes, "circle");
  const std::string dict_of_itself = "}q\x01" + text("a") + "h\x01s";
  for (const std::string& bytes : both_bare(dict_of_itself)) EXPECT_REFUSED(bytes, "circle");
  // A circle that no tensor is taken from does no harm.
  for (const std::string& bytes :
       both(dict({{"state_dict", dict({{"x", tensor(four())}})}, {"loop", itself}})))
    EXPECT_TRUE(accepts(bytes));

  std::string deep = "N";
  for (int i = 0; i < 500'000; ++i) deep += '\x85';  // tuple of tuple of ...
  for (const std::string& bytes : both_bare(deep)) EXPECT_REFUSED(bytes, "deeper");
  for (const std::string& bytes : both_bare(std::string(500'000, '('))) EXPECT_REFUSED(bytes, "deeper");
}

TEST(HostileFile, FewBytesCannotAskForMuchWork) {
  // Each level holds the one below twice: 2^30 leaves.
  std::string bomb = "}";
  for (int level = 0; level < 30; ++level) bomb += "2\x86";
  for (const std::string& bytes : both_bare(bomb)) EXPECT_REFUSED(bytes, "more than");
  // One long list made into a dict again and again.
  std::string copies = "](";
  for (int i = 0; i < 20'000; ++i) copies += "))\x86";
  copies += "eq\x01";
  for (int i = 0; i < 20'000; ++i) copies += global("collections", "OrderedDict") + "h\x01\x85R0";
  for (const std::string& bytes : both_bare(copies)) EXPECT_REFUSED(bytes, "more than");
  for (const std::string& bytes : both_bare(std::string(3'000'000, 'N'))) EXPECT_REFUSED(bytes, "more than");
  EXPECT_REFUSED(torch_zip(pickle("Nr\xff\xff\xff\xff"), {}), "numbers its values");
}

TEST(HostileFile, DamagedPickles) {
  const auto refused = [](const std::string& body, const char* message) {
    EXPECT_REFUSED(torch_zip(pickle(body), {}), message);
  };
  refused("", "takes a value");
  refused("(0", "takes a value");
  refused("t", "never opened");
  refused("h\x05", "does not exist");
  refused(")Na", "to a tuple");
  refused("NNa", "no list");
  refused("}(Nu", "without a value");
  refused("NNb", "has none");
  refused("NN\x93", "no text");
  refused("I1\n", "opcode 0x49");
  refused("}" + tuple({}) + "Ns", "neither text nor a whole number");
  refused("X" + raw(0xffffffffu), "needs 4294967295 bytes");
  refused("\x8d" + raw(~std::uint64_t{0}), "needs 18446744073709551615 bytes");
  EXPECT_REFUSED(torch_zip("\x80\x09N.", {}), "protocol 9");
  EXPECT_REFUSED(torch_zip("N.", {}), "no pickle of protocol 2");
  refused(dict({{"a", tensor(four())}, {"a", tensor(four())}}), "storage");
  EXPECT_REFUSED(both(dict({{"a", tensor(four())}, {"a", tensor(four())}}))[0], "two tensors named a");
  EXPECT_REFUSED(both(dict({{std::string(2000, 'n'), tensor(four())}}))[0], "more than 1024 bytes");
}

TEST(HostileFile, OtherThingsInAZipAreRefused) {
  const std::string object = pickle(dict({{"x", tensor(four())}}));
  const ZipPart checkpoint{.name = "a/data.pkl", .data = object};
  EXPECT_REFUSED(zip({checkpoint, {.name = "a/byteorder", .data = "big"}}), "big-endian");
  EXPECT_REFUSED(zip({checkpoint, {.name = "a/constants.pkl", .data = ""}}), "TorchScript");
  EXPECT_REFUSED(zip({checkpoint, {.name = "b/data.pkl", .data = object}}), "several checkpoints");
  EXPECT_REFUSED(zip({{.name = "a/b/data.pkl", .data = object}}), "no data.pkl");
  EXPECT_REFUSED(zip({}), "no data.pkl");
}

TEST(HostileFile, BigEndianLegacyIsRefused) {
  const std::string object = pickle(dict({{"x", tensor(four())}}));
  EXPECT_REFUSED(torch_legacy(object, {{"0", floats({1, 2, 3, 4})}}, 4, false), "big-endian");
}

TEST(HostileFile, LegacyTailIsChecked) {
  const std::string object = pickle(dict({{"x", tensor(four())}}));
  const std::string data = floats({1, 2, 3, 4});
  EXPECT_REFUSED(torch_legacy(object, {{"0", data}, {"0", data}}), "twice");
  EXPECT_REFUSED(torch_legacy(object, {{"0", data}, {"1", data}}), "no tensor describes");
  EXPECT_REFUSED(torch_legacy(object, {}), "lacks the storage");
  EXPECT_REFUSED(torch_legacy(object, {{"0", data}}) + "x", "after its last storage");
}

TEST(HostileFile, EveryPrefixIsRefused) {
  for (const std::string& bytes : {good_torch_zip(), good_torch_legacy(), good_safetensors()}) {
    ASSERT_TRUE(accepts(bytes));
    for (std::size_t size = 0; size < bytes.size(); ++size)
      ASSERT_FALSE(accepts(std::string_view(bytes).substr(0, size))) << size << " of " << bytes.size();
  }
}

// Whatever one wrong byte does, it ends in a sentence or in tensors that can be read.
TEST(HostileFile, EveryDamagedByteIsHandled) {
  for (const std::string& good : {good_torch_zip(), good_torch_legacy(), good_safetensors()}) {
    std::string bytes = good;
    int refused = 0;
    for (std::size_t at = 0; at < bytes.size(); ++at) {
      for (const int change : {0x01, 0x20, 0x80, 0xff}) {
        bytes[at] = static_cast<char>(good[at] ^ change);
        refused += accepts(bytes) ? 0 : 1;
      }
      bytes[at] = good[at];
    }
    EXPECT_GT(refused, static_cast<int>(bytes.size()));
  }
}

}  // namespace
}  // namespace dpg
