// Known values of the reference program (xxhsum -H1).
#include "dpg/core/fingerprint.h"

#include <gtest/gtest.h>

#include <string>

namespace dpg {
namespace {

std::uint64_t hash(const std::string& text) {
  return xxh64(std::as_bytes(std::span(text)));
}

TEST(Fingerprint, IsXxh64) {
  EXPECT_EQ(hash(""), 0xef46db3751d8e999u);
  EXPECT_EQ(hash("a"), 0xd24ec4f1a98c6e5bu);
  EXPECT_EQ(hash("abc"), 0x44bc2cf5ad770999u);
  EXPECT_EQ(hash("0123456789abcdef"), 0x5c5b90c34e376d0bu);
  // 71 bytes: whole stripes, then 4 bytes and single ones.
  EXPECT_EQ(hash("Nobody inspects the spammish repetition, nor this one of 71 characters!!"),
            0xc0ae88066b345ff1u);
}

TEST(Fingerprint, IsWrittenInHexadecimal) {
  const std::string text = "abc";
  EXPECT_EQ(fingerprint(std::as_bytes(std::span(text))), "xxh64:44bc2cf5ad770999");
}

}  // namespace
}  // namespace dpg
