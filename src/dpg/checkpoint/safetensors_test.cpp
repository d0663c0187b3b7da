#include "dpg/checkpoint/safetensors_writer.h"
#include "dpg/checkpoint/test_support.h"

namespace dpg {
namespace {

using namespace checkpoint::sample;

// A header with tensors a and b as given, and eight bytes of data.
std::string with(const std::string& entries) {
  return safetensors("{" + entries + "}", floats({1, 2}));
}
std::string entry(const std::string& name, const std::string& dtype, const std::string& shape,
                  const std::string& offsets) {
  return "\"" + name + R"(":{"dtype":")" + dtype + R"(","shape":)" + shape + R"(,"data_offsets":)" + offsets +
         "}";
}

TEST(Safetensors, RefusesDamagedHeaders) {
  EXPECT_EQ(refusal(with(entry("a", "F32", "[2]", "[0,8]"))), "");
  EXPECT_REFUSED(with(entry("a", "F8_E4M3", "[8]", "[0,8]")), "F8_E4M3");
  EXPECT_REFUSED(with(entry("a", "F32", "[3]", "[0,8]")), "3 elements of type f32 but 8 bytes");
  EXPECT_REFUSED(with(entry("a", "F32", "[3]", "[0,12]")), "outside");
  EXPECT_REFUSED(with(entry("a", "F32", "[2]", "[8,0]")), "outside");
  EXPECT_REFUSED(with(entry("a", "F32", "[2]", "[0,18446744073709551615]")), "whole number");
  EXPECT_REFUSED(with(entry("a", "F32", "[2]", "[0,99999999999999999999]")), "whole number");
  EXPECT_REFUSED(with(entry("a", "F32", "[2]", "[0]")), "outside");
  EXPECT_REFUSED(with(entry("a", "F32", "[-2]", "[0,8]")), "whole number");
  EXPECT_REFUSED(with(entry("a", "F32", "[2.0]", "[0,8]")), "whole number");
  EXPECT_REFUSED(with(entry("a", "F32", "[4294967296,4294967296]", "[0,8]")), "more elements");
  EXPECT_REFUSED(with(entry("a", "F32", "[4611686018427387904,4]", "[0,8]")), "more elements");
  EXPECT_REFUSED(with(entry("a", "F32", "{}", "[0,8]")), "no list");
  EXPECT_REFUSED(with(entry("a", "F32", "[1]", "[0,4]")), "after its last tensor");
  EXPECT_REFUSED(with(entry("a", "F32", "[1]", "[4,8]")), "gap");
  EXPECT_REFUSED(with(entry("a", "F32", "[2]", "[0,8]") + "," + entry("b", "F32", "[1]", "[4,8]")),
                 "overlaps");
  EXPECT_REFUSED(with(entry("a", "F32", "[2]", "[0,8]") + "," + entry("a", "F32", "[2]", "[0,8]")), "twice");
  EXPECT_REFUSED(with(R"("a":{"dtype":"F32","shape":[2]})"), "exactly dtype");
  EXPECT_REFUSED(with(R"("a":{"dtype":3,"shape":[2],"data_offsets":[0,8]})"), "no text");
  EXPECT_REFUSED(with(R"("__metadata__":{"a":1})"), "metadata");
  EXPECT_REFUSED(with(R"("a":[[[[[)"), "deeper than");
  EXPECT_REFUSED(with(R"("a":)"), "cannot be read");
  EXPECT_REFUSED(with("\"\xff\":1"), "cannot be read");
  EXPECT_REFUSED(raw(std::uint64_t{100'000'001}) + "{}", "at most 100000000");
  EXPECT_REFUSED(raw(~std::uint64_t{0}) + "{}", "at most 100000000");
  EXPECT_REFUSED(raw(std::uint64_t{99}) + "{}", "needs 99 bytes");
  EXPECT_REFUSED(safetensors("{}", ""), "holds no tensors");
}

TEST(Safetensors, EmptyTensorsMayShareAPlace) {
  const std::string bytes =
      with(entry("a", "F32", "[2]", "[0,8]") + "," + entry("z", "F64", "[0,3]", "[0,0]") + "," +
           entry("y", "F64", "[4,0]", "[8,8]"));
  const StateDict state = StateDict::parse(view(bytes), "sample.file");
  EXPECT_EQ(state.find("z")->shape, (Shape{0, 3}));
  EXPECT_EQ(values(state, "a"), (std::vector<float>{1, 2}));
}

TEST(SafetensorsWriter, RoundTrip) {
  const TemporaryFolder folder;
  std::vector<std::string> data;
  std::vector<TensorToWrite> tensors;
  data.reserve(12);
  for (int i = 0; i < 10; ++i) {  // every element type, odd sizes, so that later tensors are unaligned
    const auto dtype = static_cast<DType>(i);
    std::string bytes(3 * dtype_size(dtype), '\0');
    for (std::size_t j = 0; j < bytes.size(); ++j)
      bytes[j] = static_cast<char>(dtype == DType::boolean ? j % 2 : 7 * j + 1);
    data.push_back(bytes);
    tensors.push_back({str("type ", dtype_name(dtype)), dtype, {1, 3}, view(data.back())});
  }
  data.push_back(floats({5}));
  tensors.push_back({"name with \"quotes\" and \u00e9", DType::f32, {}, view(data.back())});
  tensors.push_back({"empty", DType::f32, {0, 7}, {}});
  write_safetensors(folder / "a.safetensors", tensors, {{"who", "me"}, {"note", "line\nbreak"}});

  const StateDict state = StateDict::open(folder / "a.safetensors");
  EXPECT_EQ(state.metadata().at("note"), "line\nbreak");
  ASSERT_EQ(state.tensors().size(), tensors.size());
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const TensorView& read = state.tensors()[i];
    EXPECT_EQ(read.name, tensors[i].name);
    EXPECT_EQ(read.dtype, tensors[i].dtype);
    EXPECT_EQ(read.shape, tensors[i].shape);
    const std::vector<std::byte> bytes = contiguous_bytes(read);
    EXPECT_TRUE(std::equal(bytes.begin(), bytes.end(), tensors[i].bytes.begin(), tensors[i].bytes.end()))
        << read.name;
  }
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(state.tensors()[0].data) % 8, 0u);
}

TEST(SafetensorsWriter, RefusesWhatCouldNotBeReadBack) {
  const TemporaryFolder folder;
  const std::string two = floats({1, 2});
  const auto write = [&](std::vector<TensorToWrite> tensors) {
    write_safetensors(folder / "a.safetensors", tensors);
  };
  EXPECT_THROW(write({{"a", DType::f32, {3}, view(two)}}), Error);
  EXPECT_THROW(write({{"a", DType::f32, {2}, view(two)}, {"a", DType::f32, {2}, view(two)}}), Error);
  EXPECT_THROW(write({{"__metadata__", DType::f32, {2}, view(two)}}), Error);
  EXPECT_THROW(write({{"\xff", DType::f32, {2}, view(two)}}), Error);
  EXPECT_FALSE(std::filesystem::exists(folder / "a.safetensors"));
}

class Sharded : public testing::Test {
 protected:
  void SetUp() override {
    write_file(folder_ / "one.safetensors",
               safetensors("{" + entry("a", "F32", "[2]", "[0,8]") + "}", floats({1, 2})));
    write_file(folder_ / "two.safetensors",
               safetensors("{" + entry("b", "F32", "[1]", "[0,4]") + "}", floats({3})));
  }
  StateDict open(const std::string& weight_map) {
    write_file(folder_ / "index.json", R"({"metadata":{"total_size":12},"weight_map":{)" + weight_map + "}}");
    return StateDict::open(folder_ / "index.json");
  }
  std::string refusal_of(const std::string& weight_map) {
    try {
      open(weight_map);
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  }
  TemporaryFolder folder_;
};

TEST_F(Sharded, JoinsTheShards) {
  const StateDict state = open(R"("b":"two.safetensors","a":"one.safetensors")");
  EXPECT_EQ(state.format(), CheckpointFormat::safetensors_sharded);
  EXPECT_EQ(values(state, "a"), (std::vector<float>{1, 2}));
  EXPECT_EQ(values(state, "b"), std::vector<float>{3});
}

TEST_F(Sharded, RefusesAnIndexThatDoesNotFit) {
  for (const char* shard : {"../one.safetensors", "/one.safetensors", "", ".", "..", "x/one.safetensors",
                            "x\\\\one", "one.safetensors\\u0000"})
    EXPECT_NE(refusal_of(str(R"("a":")", shard, "\"")).find("plain file name"), std::string::npos) << shard;
  EXPECT_NE(refusal_of(R"("a":"none.safetensors")").find("none.safetensors"), std::string::npos);
  EXPECT_NE(refusal_of(R"("a":"one.safetensors","c":"one.safetensors")").find("does not hold"),
            std::string::npos);
  EXPECT_NE(refusal_of(R"("a":"two.safetensors")").find("does not place"), std::string::npos);
  EXPECT_NE(refusal_of(R"("a":3)").find("no file name"), std::string::npos);
  EXPECT_NE(refusal_of("").find("lists 0 tensors"), std::string::npos);
}

}  // namespace
}  // namespace dpg
