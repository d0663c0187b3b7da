#include "dpg/checkpoint/zip_directory.h"

#include "dpg/checkpoint/test_support.h"

namespace dpg::checkpoint {
namespace {

using sample::raw;
using sample::view;
using sample::ZipPart;

ZipPart part(const std::string& name, const std::string& data) {
  ZipPart made;
  made.name = name;
  made.data = data;
  return made;
}

std::vector<ZipPart> two_parts() {
  return {part("a", "first"), part("b", "second")};
}

std::string refusal(const std::string& bytes) {
  try {
    ZipDirectory(view(bytes), "sample.zip");
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

#define EXPECT_ZIP_REFUSED(bytes, part)                                                             \
  do {                                                                                              \
    const std::string refused_with_ = refusal(bytes);                                               \
    EXPECT_NE(refused_with_.find(part), std::string::npos) << "message: '" << refused_with_ << "'"; \
  } while (false)

// Overwrites `width` bytes at `from_end` bytes before the end.
std::string patched(std::string bytes, std::size_t from_end, const std::string& value) {
  return bytes.replace(bytes.size() - from_end, value.size(), value);
}

TEST(ZipDirectory, FindsEntriesWithAndWithoutZip64) {
  for (const bool zip64 : {false, true}) {
    const std::string file = "sample.zip", bytes = sample::zip(two_parts(), zip64);
    const ZipDirectory zip(view(bytes), file);
    ASSERT_EQ(zip.entries().size(), 2u);
    EXPECT_EQ(as_text(*zip.find("a")), "first");
    EXPECT_EQ(as_text(*zip.find("b")), "second");
    EXPECT_FALSE(zip.find("c"));
  }
}

TEST(ZipDirectory, ReadsSizesFromTheZip64ExtraField) {
  std::string bytes = sample::zip({part("a", "first")}, false);
  // Local header 30 + 1 + 5 bytes; then the directory: sizes at 20 and 24, length of the extra field at 30.
  const std::size_t directory = 36;
  const std::string extra =
      raw(std::uint16_t{1}) + raw(std::uint16_t{16}) + raw(std::uint64_t{5}) + raw(std::uint64_t{5});
  bytes.replace(directory + 20, 8, std::string(8, '\xff'));
  bytes.replace(directory + 30, 2, raw(static_cast<std::uint16_t>(extra.size())));
  bytes.insert(directory + 47, extra);
  bytes = patched(bytes, 10, raw(static_cast<std::uint32_t>(47 + extra.size())));
  const std::string file = "sample.zip";
  EXPECT_EQ(as_text(*ZipDirectory(view(bytes), file).find("a")), "first");
  bytes.replace(directory + 47 + 4, 8, raw(~std::uint64_t{0}));
  EXPECT_ZIP_REFUSED(bytes, "contradict");
}

TEST(ZipDirectory, RefusesWhatItCannotUseInPlace) {
  auto parts = two_parts();
  parts[1].method = 8;
  EXPECT_ZIP_REFUSED(sample::zip(parts), "compressed entry b");
  parts = two_parts();
  parts[1].flags = 1;
  EXPECT_ZIP_REFUSED(sample::zip(parts), "encrypted entry b");
}

TEST(ZipDirectory, RefusesLies) {
  const auto with = [](auto change) {
    auto parts = two_parts();
    change(parts[1]);
    return sample::zip(parts);
  };
  EXPECT_ZIP_REFUSED(with([](ZipPart& p) { p.name = "a"; }), "twice");
  EXPECT_ZIP_REFUSED(with([](ZipPart& p) { p.local_offset = 0; }), "contradicts");
  EXPECT_ZIP_REFUSED(with([](ZipPart& p) { p.local_offset = 1u << 30; }), "outside of the file");
  EXPECT_ZIP_REFUSED(with([](ZipPart& p) { p.local_name = "c"; }), "contradicts");
  EXPECT_ZIP_REFUSED(with([](ZipPart& p) { p.packed_size = 5; }), "contradict");
  EXPECT_ZIP_REFUSED(with([](ZipPart& p) { p.size = p.packed_size = 5; }), "contradicts");
  EXPECT_ZIP_REFUSED(with([](ZipPart& p) { p.size = p.packed_size = 0xfffffff0; }), "needs 4294967280 bytes");
}

TEST(ZipDirectory, RefusesOverlappingEntries) {
  // The second file's header and data lie inside of the first file's data.
  const std::string inner = sample::zip({part("b", "second")}, false).substr(0, 30 + 1 + 6);
  auto parts = two_parts();
  parts[0].data = inner;
  parts[1].local_offset = 30 + 1;
  EXPECT_ZIP_REFUSED(sample::zip(parts), "overlap");
}

TEST(ZipDirectory, RefusesLyingEndRecords) {
  const std::string plain = sample::zip(two_parts(), false), wide = sample::zip(two_parts(), true);
  // From the end: 22 bytes end record, 20 locator, 56 zip64 record.
  EXPECT_ZIP_REFUSED(patched(plain, 14, raw(std::uint16_t{9}) + raw(std::uint16_t{9})),
                     "more than its directory");
  EXPECT_ZIP_REFUSED(patched(plain, 6, raw(0xfffffff0u)), "outside of the file");
  EXPECT_ZIP_REFUSED(patched(plain, 10, raw(0xfffffff0u)), "outside of the file");
  EXPECT_ZIP_REFUSED(patched(plain, 18, raw(std::uint16_t{1})), "several parts");
  EXPECT_ZIP_REFUSED(patched(wide, 42 - 8, raw(~std::uint64_t{0})), "outside of the file");
  EXPECT_ZIP_REFUSED(patched(wide, 42 - 8, raw(std::uint64_t{0})), "no zip64 end record");
  EXPECT_ZIP_REFUSED(patched(wide, 98 - 24, raw(std::uint64_t{3})), "contradict each other");
  EXPECT_ZIP_REFUSED(patched(wide, 98 - 48, raw(std::uint64_t{1} << 60)), "contradict each other");
  // The short record defers to the zip64 one, which lies.
  const std::string deferring = patched(wide, 14, std::string(12, '\xff'));
  EXPECT_EQ(refusal(deferring), "");
  const std::string count = raw(std::uint64_t{1} << 40);
  EXPECT_ZIP_REFUSED(patched(deferring, 98 - 24, count + count), "more than its directory");
  EXPECT_ZIP_REFUSED(patched(deferring, 98 - 48, raw(~std::uint64_t{0} - 4)), "outside of the file");
  EXPECT_ZIP_REFUSED(patched(deferring, 98 - 40, raw(~std::uint64_t{0} - 4)), "outside of the file");
  EXPECT_ZIP_REFUSED("PK", "without its end");
}

}  // namespace
}  // namespace dpg::checkpoint
