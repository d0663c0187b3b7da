#include "dpg/core/file.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <string>

#include "dpg/core/error.h"
#include "dpg/core/test_folder.h"

namespace dpg {
namespace {

namespace fs = std::filesystem;

// A folder of its own per test, removed at the end.
class FileTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = (fs::temp_directory_path() / "dpg_file_test.XXXXXX").string();
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    folder_ = name;
  }
  void TearDown() override { remove_folder(folder_); }

  fs::path file(const char* name) const { return folder_ / name; }
  std::ptrdiff_t files() const { return std::distance(fs::directory_iterator(folder_), {}); }

  fs::path folder_;
};

// The message of the error that `action` throws; empty when it throws none.
template <class Action>
std::string error_of(Action action) {
  try {
    action();
  } catch (const Error& error) {
    return error.what();
  }
  return {};
}

void expect_named(const std::string& message, const fs::path& path) {
  EXPECT_NE(message.find(path.string()), std::string::npos) << "message: " << message;
}

TEST_F(FileTest, WhatIsWrittenIsMapped) {
  const std::string text("one\0two\n", 8);
  write_text(file("a"), text);
  EXPECT_EQ(read_text(file("a")), text);
  const MappedFile mapped(file("a"));
  EXPECT_EQ(mapped.bytes().size(), text.size());
  EXPECT_EQ(mapped.path(), file("a"));
}

TEST_F(FileTest, WithoutCommitNothingIsLeftAndTheOldFileStays) {
  write_text(file("a"), "old");
  {
    AtomicFile unfinished(file("a"));
    unfinished.write("new and never finished");
    AtomicFile never_there(file("b"));
    never_there.write("x");
    EXPECT_EQ(files(), 3);  // the temporary files lie in the same folder, where a rename is atomic
    EXPECT_EQ(read_text(file("a")), "old");
  }
  EXPECT_EQ(files(), 1);
  EXPECT_EQ(read_text(file("a")), "old");
}

TEST_F(FileTest, CommitReplacesAndOpenMapsKeepTheOldContents) {
  write_text(file("a"), "old");
  const MappedFile before(file("a"));
  write_text(file("a"), "new, longer than before");
  EXPECT_EQ(read_text(file("a")), "new, longer than before");
  EXPECT_EQ(std::string(reinterpret_cast<const char*>(before.bytes().data()), before.bytes().size()), "old");
  EXPECT_EQ(files(), 1);
}

TEST_F(FileTest, OfTwoWritersTheLastCommitWinsWhole) {
  AtomicFile first(file("a")), second(file("a"));
  first.write("first");
  second.write("second, longer");
  second.commit();
  first.commit();
  EXPECT_EQ(read_text(file("a")), "first");
  EXPECT_EQ(files(), 1);
}

TEST_F(FileTest, AWrittenFileIsReadableLikeAnyOther) {
  std::ofstream(file("plain")) << "x";
  write_text(file("atomic"), "x");
  EXPECT_EQ(fs::status(file("atomic")).permissions(), fs::status(file("plain")).permissions());
}

TEST_F(FileTest, WritingAfterCommitIsRefused) {
  AtomicFile once(file("a"));
  once.commit();
  expect_named(error_of([&] { once.write("x"); }), file("a"));
  expect_named(error_of([&] { once.commit(); }), file("a"));
}

TEST_F(FileTest, ErrorsOfWritingNameThePath) {
  const fs::path nowhere = folder_ / "missing" / "a";
  expect_named(error_of([&] { write_text(nowhere, "x"); }), nowhere);
  fs::create_directory(file("folder"));
  write_text(file("folder") / "inside", "x");
  expect_named(error_of([&] { write_text(file("folder"), "x"); }), file("folder"));
  EXPECT_EQ(files(), 1);  // the temporary file of the failed rename is gone
}

TEST_F(FileTest, AnEmptyFileMapsToAnEmptySpan) {
  write_text(file("empty"), "");
  EXPECT_TRUE(MappedFile(file("empty")).bytes().empty());
  EXPECT_EQ(read_text(file("empty")), "");
}

TEST_F(FileTest, ErrorsOfMappingNameThePath) {
  expect_named(error_of([&] { MappedFile{file("missing")}; }), file("missing"));
  const std::string message = error_of([&] { MappedFile{folder_}; });
  expect_named(message, folder_);
  EXPECT_NE(message.find("folder"), std::string::npos) << message;
}

TEST_F(FileTest, AMapMoves) {
  write_text(file("a"), "aaaa");
  write_text(file("b"), "bb");
  MappedFile a(file("a")), b(file("b"));
  b = std::move(a);
  EXPECT_EQ(b.bytes().size(), 4u);
  EXPECT_EQ(b.path(), file("a"));
  const MappedFile c(std::move(b));
  EXPECT_EQ(static_cast<char>(c.bytes()[3]), 'a');
}

}  // namespace
}  // namespace dpg
