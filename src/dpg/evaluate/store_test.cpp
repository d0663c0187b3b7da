#include "dpg/evaluate/store.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include "dpg/core/error.h"
#include "dpg/core/file.h"
#include "dpg/core/test_folder.h"

namespace dpg::evaluate {
namespace {

namespace fs = std::filesystem;

class Store : public testing::Test {
 protected:
  Store()
      : folder_(
            fs::temp_directory_path() /
            str("dpg-store-", getpid(), "-", testing::UnitTest::GetInstance()->current_test_info()->name())) {
    remove_folder(folder_.root());
  }
  ~Store() override { remove_folder(folder_.root()); }
  RunFolder folder_;
};

const Place kPlace{"sr4", "dpg", "face", 0}, kAgain{"sr4", "dpg", "face", 2};

TEST_F(Store, ARecordCountsOnlyWithItsJobAndItsPicture) {
  folder_.begin({{"seed", 1}}, {{"batch", 2}}, false);
  folder_.make_folders(kPlace);
  EXPECT_FALSE(folder_.record(kPlace, "job"));
  write_text(folder_.file(kPlace, ".png"), "pixels");
  EXPECT_FALSE(folder_.record(kPlace, "job"));  // killed before the record
  folder_.write_record(kPlace, "job", {{"psnr", 30}});
  ASSERT_TRUE(folder_.record(kPlace, "job"));
  EXPECT_EQ((*folder_.record(kPlace, "job"))["psnr"], 30);
  EXPECT_FALSE(folder_.record(kPlace, "another job"));
  write_text(folder_.file(kPlace, ".png"), "other pixels");
  EXPECT_FALSE(folder_.record(kPlace, "job"));
  fs::remove(folder_.file(kPlace, ".png"));
  EXPECT_FALSE(folder_.record(kPlace, "job"));
  folder_.write_record(kPlace, "job", {{"cannot", "needs more"}});
  EXPECT_TRUE(folder_.record(kPlace, "job"));  // there is no picture to miss
  write_text(folder_.file(kPlace, ".json"), "{\"format\": \"dpg-rec");
  EXPECT_FALSE(folder_.record(kPlace, "job"));
}

TEST_F(Store, RepetitionsAndSamplesLieApartFromWhatIsScored) {
  EXPECT_EQ(folder_.file(kPlace, ".png"), folder_.root() / "sr4" / "dpg" / "face.png");
  EXPECT_EQ(folder_.file(kAgain, ".trace.json"),
            folder_.root() / "sr4" / "dpg" / "runs" / "face-2.trace.json");
  EXPECT_EQ(folder_.sample(kPlace, 3), folder_.root() / "sr4" / "dpg" / "samples" / "face-3.png");
}

TEST_F(Store, AChangedPlanIsRefusedWithWhatChanged) {
  const Json before = {{"seed", 1}, {"methods", {{"dpg", {{"steps", 100}}}}}, {"gone", 1}};
  const Json now = {{"seed", 1}, {"methods", {{"dpg", {{"steps", 50}}}, {"dps", 1}}}};
  folder_.begin(before, {{"batch", 2}}, false);
  folder_.begin(before, {{"batch", 2}}, false);
  EXPECT_EQ(folder_.kept(), Json({{"batch", 2}}));
  try {
    folder_.begin(now, {{"batch", 2}}, false);
    FAIL() << "it was taken";
  } catch (const Error& error) {
    const std::string text = error.what();
    for (const char* words :
         {"methods.dpg.steps was 100 and is 50", "methods.dps is new", "gone is gone", "--continue-changed"})
      EXPECT_NE(text.find(words), std::string::npos) << text;
  }
  folder_.begin(now, {{"batch", 4}}, true);
  folder_.begin(now, {{"batch", 4}}, false);  // from now on this is the plan
  EXPECT_EQ(folder_.kept(), Json({{"batch", 4}}));
  EXPECT_THROW(folder_.begin(before, {{"batch", 2}}, false), Error);
  write_text(folder_.root() / "plan.json", "{}");
  EXPECT_THROW(folder_.begin(before, {}, true), Error);  // somebody else's folder
}

TEST_F(Store, DifferencesAreCountedWhenThereAreMany) {
  EXPECT_EQ(differences({{"a", 1}}, {{"a", 1}}), "");
  EXPECT_EQ(differences({{"b", 2}, {"a", 1}}, {{"a", 1}, {"b", 2}}), "");  // order is no difference
  EXPECT_EQ(differences({{"a", 1}}, {{"a", 2}, {"b", 1}, {"c", 1}, {"d", 1}, {"e", 1}}),
            "a was 1 and is 2; b is new; c is new; and 2 more");
}

TEST_F(Store, OnlyWhatWritersLeftIsSwept) {
  folder_.begin({}, {}, false);
  folder_.make_folders(kPlace);
  for (const char* name :
       {"face.png", "face.png.aB3xY9", "face.json.123456", "notes.txt.aB3xY9", "face.abcdef"})
    write_text(folder_.method("sr4", "dpg") / name, "x");
  folder_.sweep();
  const fs::path there = folder_.method("sr4", "dpg");
  EXPECT_TRUE(fs::exists(there / "face.png"));
  EXPECT_FALSE(fs::exists(there / "face.png.aB3xY9"));
  EXPECT_FALSE(fs::exists(there / "face.json.123456"));
  EXPECT_TRUE(fs::exists(there / "notes.txt.aB3xY9"));
  EXPECT_TRUE(fs::exists(there / "face.abcdef"));
}

}  // namespace
}  // namespace dpg::evaluate
