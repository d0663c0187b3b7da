#include "dpg/image/npy.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <numeric>

#include "dpg/core/error.h"
#include "dpg/image/test_files.h"

namespace dpg {
namespace {

using test::bytes_of;

std::string npy(const std::string& dictionary, const std::string& data, int version = 1) {
  std::string text = std::string("\x93NUMPY", 6) + static_cast<char>(version) + '\0';
  const std::string header = dictionary + "   \n";
  text.push_back(static_cast<char>(header.size() & 0xFF));
  text.push_back(static_cast<char>(header.size() >> 8));
  if (version > 1) text += std::string(2, '\0');
  return text + header + data;
}

std::string dictionary(const std::string& descr, const std::string& shape, bool fortran = false) {
  return str("{'descr': '", descr, "', 'fortran_order': ", fortran ? "True" : "False", ", 'shape': ", shape,
             ", }");
}

template <class T>
std::string raw(std::initializer_list<T> values, bool big_endian = false) {
  std::string out;
  for (const T value : values) {
    std::string bytes(reinterpret_cast<const char*>(&value), sizeof(T));
    out += big_endian ? std::string(bytes.rbegin(), bytes.rend()) : bytes;
  }
  return out;
}

NpyArray decode(const std::string& file) {
  return decode_npy(bytes_of(file), "array.npy");
}
Image decode_picture(const std::string& file) {
  return decode_image(bytes_of(file), "array.npy");
}

TEST(Npy, ReadsEveryTypeInBothByteOrders) {
  for (const bool big : {false, true}) {
    const std::string o = big ? ">" : "<";
    const auto values = [&](const std::string& type, const std::string& data) {
      return decode(npy(dictionary(o + type, "(2,)"), data)).data;
    };
    EXPECT_EQ(values("u2", raw<std::uint16_t>({1, 65535}, big)), (std::vector<float>{1, 65535}));
    EXPECT_EQ(values("i4", raw<std::int32_t>({-7, 70000}, big)), (std::vector<float>{-7, 70000}));
    EXPECT_EQ(values("i8", raw<std::int64_t>({-7, 1 << 20}, big)), (std::vector<float>{-7, 1 << 20}));
    EXPECT_EQ(values("f4", raw<float>({-0.1f, 3e8f}, big)), (std::vector<float>{-0.1f, 3e8f}));
    EXPECT_EQ(values("f8", raw<double>({-0.1, 3e8}, big)), (std::vector<float>{-0.1f, 3e8f}));
    EXPECT_EQ(values("f2", raw<std::uint16_t>({0xC000, 0x0001}, big)),
              (std::vector<float>{-2.0f, std::ldexp(1.0f, -24)}));
  }
  EXPECT_EQ(decode(npy(dictionary("|u1", "(2,)"), std::string("\x00\xFF", 2))).data,
            (std::vector<float>{0, 255}));
  EXPECT_EQ(decode(npy(dictionary("|b1", "(2,)"), std::string("\x00\x01", 2))).data,
            (std::vector<float>{0, 1}));
}

// The definition of IEEE binary16, for all 65536 patterns.
TEST(Npy, HalfPrecisionIsExact) {
  for (int bits = 0; bits < 65536; ++bits) {
    const auto word = static_cast<std::uint16_t>(bits);
    const float value = decode(npy(dictionary("<f2", "()"), raw<std::uint16_t>({word}))).data.at(0);
    const int exponent = bits >> 10 & 31, fraction = bits & 1023;
    if (exponent == 31) {
      ASSERT_EQ(std::isnan(value), fraction != 0);
      ASSERT_FALSE(std::isfinite(value));
      continue;
    }
    const double magnitude =
        exponent == 0 ? fraction / 1024.0 * 0x1p-14 : (1 + fraction / 1024.0) * std::pow(2.0, exponent - 15);
    ASSERT_EQ(value, static_cast<float>(bits >> 15 ? -magnitude : magnitude)) << bits;
  }
}

TEST(Npy, FortranOrderIsTransposed) {
  // numpy.asfortranarray of a[i, j, k] = 100 i + 10 j + k, shape (2, 3, 4): the first index runs fastest.
  std::string data;
  for (int k = 0; k < 4; ++k) {
    for (int j = 0; j < 3; ++j) {
      for (int i = 0; i < 2; ++i) data.push_back(static_cast<char>(100 * i + 10 * j + k));
    }
  }
  const NpyArray array = decode(npy(dictionary("|u1", "(2, 3, 4)", true), data));
  std::size_t at = 0;
  for (int i = 0; i < 2; ++i) {
    for (int j = 0; j < 3; ++j) {
      for (int k = 0; k < 4; ++k) ASSERT_EQ(array.data.at(at++), static_cast<float>(100 * i + 10 * j + k));
    }
  }
}

TEST(Npy, ReadsVersionsOneToThreeAndAnyKeyOrder) {
  const std::string data = raw<float>({1.0f, 2.0f});
  for (int version = 1; version <= 3; ++version) {
    EXPECT_EQ(decode(npy(dictionary("<f4", "(1, 2)"), data, version)).shape,
              (std::vector<std::int64_t>{1, 2}));
  }
  EXPECT_EQ(decode(npy("{\"shape\":(2,),'fortran_order':False,'descr':'<f4'}", data)).data,
            (std::vector<float>{1, 2}));
  EXPECT_THROW(decode(npy(dictionary("<f4", "(2,)"), data, 4)), Error);
}

TEST(Npy, WritesWhatItReadsForEveryRank) {
  std::vector<std::int64_t> shape;
  for (int rank = 0; rank <= 8; ++rank) {
    const auto count = std::accumulate(shape.begin(), shape.end(), std::int64_t{1}, std::multiplies<>());
    std::vector<float> data(static_cast<std::size_t>(count));
    std::iota(data.begin(), data.end(), -3.5f);
    const auto bytes = encode_npy(shape, data);
    EXPECT_EQ((bytes.size() - data.size() * 4) % 64, 0u);
    const NpyArray back = decode_npy(bytes, "back.npy");
    EXPECT_EQ(back.shape, shape);
    EXPECT_EQ(back.data, data);
    shape.push_back(rank % 3 + 1);
  }
  EXPECT_THROW(decode_npy(encode_npy(shape, std::vector<float>(2 * 2 * 3 * 3 * 2 * 3)), "nine.npy"), Error);
  EXPECT_THROW(encode_npy(std::vector<std::int64_t>{2, 2}, std::vector<float>(3)), Error);
  EXPECT_TRUE(decode_npy(encode_npy(std::vector<std::int64_t>{0, 5}, {}), "empty.npy").data.empty());
}

TEST(Npy, FileIsReadBack) {
  const auto path = std::filesystem::temp_directory_path() / str("dpg_npy_", std::random_device{}(), ".npy");
  const std::vector<std::int64_t> shape{2, 1};
  const std::vector<float> data{0.25f, -8.0f};
  write_npy(path, shape, data);
  EXPECT_EQ(read_npy(path).data, data);
  std::filesystem::remove(path);
}

TEST(Npy, RefusesEveryDamagedHeader) {
  const std::string data = raw<float>({1.0f, 2.0f});
  for (const std::string& header :
       {dictionary("<f4", "(2,"), dictionary("<f4", "(2)"), dictionary("<f4", "(-2,)"),
        dictionary("<f4", "(3,)"), dictionary("<f4", "(1,)"), dictionary("|f4", "(2,)"),
        dictionary("<c8", "(1,)"), dictionary("O", "(2,)"), dictionary("<f4", "(2.0,)"),
        dictionary("<f4", "[2]"), dictionary("<f4", "(99999999999999999999,)"),
        dictionary("<f4", "(4294967296, 4294967296, 2)"), dictionary("<f4", "(1,1,1,1,1,1,1,1,2)"),
        std::string("{'descr': '<f4', 'shape': (2,)}"), dictionary("<f4", "(2,)") + "x",
        std::string("{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': (2,)}"),
        std::string("{'descr': '<f4', 'fortran_order': 0, 'shape': (2,)}"), std::string("{"),
        std::string("")}) {
    EXPECT_THROW(decode(npy(header, data)), Error) << header;
  }
}

TEST(NpyAsImage, LayoutFollowsTheRule) {
  struct Case {
    std::string shape;
    int channels, height, width;
  };
  for (const Case& c :
       {Case{"(5, 6)", 1, 5, 6}, Case{"(3, 5, 6)", 3, 5, 6}, Case{"(5, 6, 3)", 3, 5, 6},
        Case{"(3, 5, 4)", 3, 5, 4}, Case{"(1, 2, 5, 6)", 2, 5, 6}, Case{"(1, 5, 6, 4)", 4, 5, 6}}) {
    const Image image =
        decode_picture(npy(dictionary("|u1", c.shape),
                           std::string(static_cast<std::size_t>(c.channels * c.height * c.width), 'x')));
    EXPECT_EQ(image.channels, c.channels) << c.shape;
    EXPECT_EQ(image.height, c.height) << c.shape;
    EXPECT_EQ(image.width, c.width) << c.shape;
  }
  const Image last =
      decode_picture(npy(dictionary("|u1", "(5, 1, 2)"), std::string("\0\1\2\3\4\5\6\7\10\11", 10)));
  for (int y = 0; y < 5; ++y) {
    for (int c = 0; c < 2; ++c) EXPECT_EQ(last.at(c, y, 0), static_cast<float>(2 * y + c) / 127.5f - 1.0f);
  }
  for (const std::string shape : {"(5,)", "(5, 6, 7)", "(2, 3, 5, 6)", "()", "(0, 4)"}) {
    EXPECT_THROW(decode_picture(npy(dictionary("|u1", shape), "")), Error) << shape;
    EXPECT_THROW(decode_picture(npy(dictionary("|u1", shape), std::string(210, 'x'))), Error) << shape;
  }
}

TEST(NpyAsImage, ValuesAreScaledByTheirType) {
  const auto values = [](const std::string& type, const std::string& data) {
    return decode_picture(npy(dictionary(type, "(1, 2)"), data)).data;
  };
  const std::vector<float> extremes{-1, 1};
  EXPECT_EQ(values("|b1", std::string("\0\1", 2)), extremes);
  EXPECT_EQ(values("|u1", std::string("\0\xFF", 2)), extremes);
  EXPECT_EQ(values("<u2", std::string("\0\0\xFF\xFF", 4)), extremes);
  EXPECT_EQ(values("<i8", raw<std::int64_t>({0, 255})), extremes);
  EXPECT_EQ(values("<f8", raw<double>({-0.25, 7})), (std::vector<float>{-0.25f, 7}));
  EXPECT_THROW(values("<i4", raw<std::int32_t>({0, 256})), Error);
  EXPECT_THROW(values("<f4", raw<float>({0, NAN})), Error);
}

}  // namespace
}  // namespace dpg
