#include "dpg/checkpoint/state_dict.h"

#include "dpg/checkpoint/safetensors_writer.h"
#include "dpg/checkpoint/test_support.h"

namespace dpg {
namespace {

using namespace checkpoint::sample;

const Tensor kPair{.key = "0", .storage_elements = 2, .shape = {2}, .strides = {1}};
const Storages kPairStorage = {{"0", floats({1, 2})}};

StateDict parse(const std::string& bytes) {
  return StateDict::parse(view(bytes), "sample.file");
}

std::vector<std::string> names(const StateDict& state) {
  std::vector<std::string> all;
  for (const TensorView& tensor : state.tensors()) all.push_back(tensor.name);
  return all;
}

std::vector<std::string> names_of(const std::string& object) {
  const std::string bytes = torch_zip(pickle(object), kPairStorage);
  return names(parse(bytes));
}

TEST(StateDict, TheThreeFormatsOfOneModelAreBitEqual) {
  if (!std::filesystem::exists(shared("fixtures")))
    GTEST_SKIP() << "needs the shared folder: " << DPG_SHARED_DIR;
  const StateDict zip = StateDict::open(shared("fixtures/adm-tiny.pt"));
  const StateDict legacy = StateDict::open(shared("fixtures/adm-tiny.legacy.pt"));
  const StateDict safe = StateDict::open(shared("fixtures/adm-tiny.safetensors"));
  EXPECT_EQ(zip.format(), CheckpointFormat::torch_zip);
  EXPECT_EQ(legacy.format(), CheckpointFormat::torch_legacy);
  EXPECT_EQ(safe.format(), CheckpointFormat::safetensors);
  EXPECT_EQ(safe.metadata().at("image_size"), "32");
  ASSERT_EQ(zip.tensors().size(), 216u);
  EXPECT_EQ(zip.parameters(), 1422278);
  for (const StateDict* other : {&legacy, &safe}) {
    ASSERT_EQ(names(*other), names(zip));
    for (const TensorView& tensor : zip.tensors()) {
      const TensorView* same = other->find(tensor.name);
      ASSERT_EQ(same->dtype, tensor.dtype) << tensor.name;
      ASSERT_EQ(same->shape, tensor.shape) << tensor.name;
      ASSERT_EQ(contiguous_bytes(*same), contiguous_bytes(tensor)) << tensor.name;
    }
  }
}

TEST(StateDict, ReadsLegacyFilesSavedFromAGpu) {
  if (!std::filesystem::exists(shared("weights/lpips_heads")))
    GTEST_SKIP() << "needs the shared folder: " << DPG_SHARED_DIR;
  const StateDict heads = StateDict::open(shared("weights/lpips_heads/alex.pth"));
  EXPECT_EQ(heads.parameters(), 64 + 192 + 384 + 256 + 256);
  EXPECT_EQ(heads.find("lin2.model.1.weight")->shape, (Shape{1, 384, 1, 1}));
  for (const TensorView& tensor : heads.tensors())  // LPIPS weights were trained not to be negative
    for (const float value : values(tensor)) ASSERT_TRUE(value >= 0 && value < 100) << tensor.name;
}

TEST(StateDict, CraftedFormatsAgree) {
  for (const std::string& bytes : {good_torch_zip(), good_torch_legacy(), good_safetensors()}) {
    const StateDict state = parse(bytes);
    EXPECT_EQ(names(state), (std::vector<std::string>{"weight", "tied", "step"}));
    EXPECT_EQ(values(state, "weight"), (std::vector<float>{1, 2, 3, 4, 5, 6}));
    EXPECT_EQ(values(state, "tied"), (std::vector<float>{1, 4, 2, 5, 3, 6}));
    EXPECT_EQ(values(state, "step"), std::vector<float>{7});
    EXPECT_EQ(state.parameters(), 13);
    EXPECT_EQ(state.find("nothing"), nullptr);
    const std::vector<std::byte> tied = contiguous_bytes(*state.find("tied"));
    EXPECT_EQ(std::memcmp(tied.data(), floats({1, 4, 2, 5, 3, 6}).data(), tied.size()), 0);
  }
}

TEST(StateDict, EveryElementTypeIsRead) {
  struct Case {
    const char* storage;
    DType dtype;
    std::string bytes;
  };
  const Case cases[] = {{"DoubleStorage", DType::f64, raw(-2.0)},
                        {"FloatStorage", DType::f32, raw(-2.0f)},
                        {"HalfStorage", DType::f16, raw(std::uint16_t{0xc000})},
                        {"BFloat16Storage", DType::bf16, raw(std::uint16_t{0xc000})},
                        {"LongStorage", DType::i64, raw(std::int64_t{-2})},
                        {"IntStorage", DType::i32, raw(std::int32_t{-2})},
                        {"ShortStorage", DType::i16, raw(std::int16_t{-2})},
                        {"CharStorage", DType::i8, raw(std::int8_t{-2})},
                        {"ByteStorage", DType::u8, raw(std::uint8_t{254})},
                        {"BoolStorage", DType::boolean, raw(std::uint8_t{1})}};
  for (const Case& one : cases) {
    Tensor scalar;
    scalar.storage_class = one.storage;
    scalar.storage_elements = 1;
    const std::string object = pickle(dict({{"x", tensor(scalar)}}));
    const float expected = one.dtype == DType::u8 ? 254.0f : one.dtype == DType::boolean ? 1.0f : -2.0f;
    for (const std::string& bytes : {torch_zip(object, {{"0", one.bytes}}),
                                     torch_legacy(object, {{"0", one.bytes}}, dtype_size(one.dtype))}) {
      const StateDict state = parse(bytes);
      EXPECT_EQ(state.find("x")->dtype, one.dtype);
      EXPECT_EQ(values(state, "x"), std::vector<float>{expected}) << one.storage;
    }
  }
}

TEST(StateDict, EmptyAndExpandedTensors) {
  Tensor empty{.key = "0", .storage_elements = 2, .offset = 2, .shape = {3, 0, 5}, .strides = {5, 5, 1}};
  Tensor expanded{.key = "0", .storage_elements = 2, .offset = 1, .shape = {2, 3}, .strides = {0, 0}};
  const std::string bytes =
      torch_zip(pickle(dict({{"empty", tensor(empty)}, {"expanded", tensor(expanded)}})), kPairStorage);
  const StateDict state = parse(bytes);
  EXPECT_EQ(state.find("empty")->elements(), 0);
  EXPECT_TRUE(values(state, "empty").empty());
  EXPECT_TRUE(contiguous_bytes(*state.find("empty")).empty());
  EXPECT_FALSE(state.find("expanded")->contiguous());
  EXPECT_EQ(values(state, "expanded"), std::vector<float>(6, 2.0f));
}

TEST(StateDict, LegacyStorageViews) {
  Tensor part{.key = "root",
              .storage_elements = 4,
              .shape = {2},
              .strides = {1},
              .legacy_view = tuple({text("part"), number(1), number(2)})};
  const std::string bytes =
      torch_legacy(pickle(dict({{"x", tensor(part)}})), {{"root", floats({1, 2, 3, 4})}});
  EXPECT_EQ(values(parse(bytes), "x"), (std::vector<float>{2, 3}));
  part.legacy_view = tuple({text("part"), number(3), number(2)});
  EXPECT_REFUSED(torch_legacy(pickle(dict({{"x", tensor(part)}})), {{"root", floats({1, 2, 3, 4})}}),
                 "view outside");
}

TEST(StateDict, PicksTheStateDictInside) {
  const std::string inner = dict({{"w", tensor(kPair)}});
  using Names = std::vector<std::string>;
  EXPECT_EQ(names_of(dict({{"epoch", number(3)}, {"state_dict", inner}, {"optimizer", inner}})), Names{"w"});
  EXPECT_EQ(names_of(dict({{"model", dict({{"a", tensor(kPair)}})}, {"ema", dict({{"b", tensor(kPair)}})}})),
            Names{"b"});
  EXPECT_EQ(names_of(dict({{"ema", dict({{"decay", number(1)}})}, {"params", inner}})), Names{"w"});
  EXPECT_EQ(names_of(dict({{"rng_state", tensor(kPair)}, {"model", inner}})), Names{"w"});
  EXPECT_EQ(names_of(dict({{"model", tensor(kPair)}, {"net", inner}})), (Names{"model", "net.w"}));
  EXPECT_EQ(names_of(dict({{"encoder", inner}, {"decoder", dict({{"deep", inner}})}})),
            (Names{"encoder.w", "decoder.deep.w"}));
  EXPECT_EQ(names_of(dict({{"module.a", tensor(kPair)}, {"module.b", tensor(kPair)}})), (Names{"a", "b"}));
  EXPECT_EQ(names_of(dict({{"module.a", tensor(kPair)}, {"b", tensor(kPair)}})), (Names{"module.a", "b"}));
  EXPECT_EQ(names_of(tensor(kPair)), Names{"0"});
  EXPECT_EQ(names_of(list({tensor(kPair), parameter(kPair)})), (Names{"0", "1"}));
  EXPECT_EQ(names_of("}(" + number(7) + tensor(kPair) + "u"), Names{"7"});
}

TEST(StateDict, OrderedDictsOfBothPythonsAndTheirState) {
  const std::string ordered = global("collections", "OrderedDict");
  const std::string pairs = list({list({text("a"), tensor(kPair)}), list({text("b"), tensor(kPair)})});
  const std::string state = dict({{"_metadata", dict({{"version", number(1)}})}}) + "b";
  EXPECT_EQ(names_of(call(ordered, tuple({pairs})) + state), (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(names_of(call(ordered, ")") + "(" + text("a") + tensor(kPair) + "u" + state),
            std::vector<std::string>{"a"});
}

TEST(StateDict, ViewsSurviveCopiesAndMoves) {
  const TemporaryFolder folder;
  write_file(folder / "a.pt", good_torch_zip());
  std::vector<StateDict> kept;
  for (int i = 0; i < 3; ++i) kept.push_back(StateDict::open(folder / "a.pt"));
  const StateDict copy = kept[2];
  kept.clear();
  EXPECT_EQ(values(copy, "weight"), (std::vector<float>{1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(copy.source(), (folder / "a.pt").string());
}

TEST(StateDict, SaysWhatIsNoCheckpoint) {
  EXPECT_REFUSED("", "empty");
  EXPECT_REFUSED("hello, world", "is no checkpoint");
  EXPECT_REFUSED("version https://git-lfs.github.com/spec/v1\n", "git lfs pull");
  EXPECT_REFUSED(R"({"weight_map": {}})", "can only be opened as a file");
  EXPECT_REFUSED(torch_zip(pickle(dict({{"epoch", number(1)}})), {}), "holds no tensors");
  EXPECT_REFUSED(pickle(number(1)), "no torch checkpoint");
  EXPECT_THROW(StateDict::open("does-not-exist.pt"), Error);
}

TEST(StateDict, CopyAsFloatChecksItsSpace) {
  const std::string bytes = good_torch_zip();
  std::vector<float> small(5);
  EXPECT_THROW(copy_as_float(*parse(bytes).find("weight"), small), Error);
}

}  // namespace
}  // namespace dpg
