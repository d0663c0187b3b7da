// Comparing results whose differences are known.
#include "dpg/evaluate/compare.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include "dpg/core/error.h"
#include "dpg/core/file.h"
#include "dpg/core/rng.h"
#include "dpg/core/test_folder.h"

namespace dpg::evaluate {
namespace {

namespace fs = std::filesystem;

struct Change {
  double psnr = 0, lpips = 0, ratio = 0;
  int first = 0, count = 20;
};

// Pictures that differ much among themselves, changed by the same amounts (and a little noise) in all of
// them.
Json results(const std::string& method, const Change& change = {}, const std::string& task = "sr4") {
  std::vector<float> noise(2 * 100);
  Rng(1).normal({}, noise);
  std::vector<float> jitter(100);
  Rng(2).normal({}, jitter);
  const bool changed = change.psnr != 0 || change.lpips != 0 || change.ratio != 0;
  Json rows = Json::array();
  for (int i = change.first; i < change.first + change.count; ++i) {
    const double wobble = changed ? 0.05 * jitter[i] : 0;
    rows.push_back({{"task", task},
                    {"method", method},
                    {"image", str(i, ".png")},
                    {"number", i},
                    {"seed", 1},
                    {"psnr", 28 + 3 * noise[2 * i] + change.psnr + wobble},
                    {"lpips_squeeze", 0.2 + 0.05 * noise[2 * i + 1] + change.lpips + wobble / 100},
                    {"residual_ratio", 1 + change.ratio},
                    {"seconds", 2.0}});
  }
  return {{"format", "dpg-results-1"},
          {"plan", {{"seed", 1}}},
          {"rows", rows},
          {"sets",
           {{{"task", task},
             {"method", method},
             {"FD-googlenet", 50 + change.psnr},

             {"FID", "unavailable: x"}}}}};
}

const MetricComparison& metric(const Comparison& comparison, const std::string& name) {
  for (const MetricComparison& one : comparison.methods.at(0).metrics)
    if (one.metric == name) return one;
  fail("there is no ", name);
}

TEST(Compare, SaysWhatIsBetterWorseAndWithinNoise) {
  const Comparison comparison = compare_results(results("dpg"), results("dpg", {0.3, 0.01, 0.5}));
  ASSERT_EQ(comparison.methods.size(), 1u);
  EXPECT_EQ(comparison.methods[0].pictures, 20u);
  const MetricComparison& psnr = metric(comparison, "psnr");
  EXPECT_NEAR(psnr.difference.mean, 0.3, 0.05);
  EXPECT_NEAR(psnr.mean_b - psnr.mean_a, psnr.difference.mean, 1e-9);
  EXPECT_GT(psnr.difference.low, 0.2);
  EXPECT_EQ(psnr.difference.pairs, 20);
  EXPECT_EQ(psnr.verdict, "better");
  EXPECT_EQ(metric(comparison, "lpips_squeeze").verdict, "worse");  // it rose
  EXPECT_EQ(metric(comparison, "residual_ratio").verdict, "differs");
  EXPECT_EQ(metric(comparison, "seconds").verdict, "within noise");
  EXPECT_EQ(comparison.methods[0].metrics.size(), 4u);  // a picture's number and seed are none
  const Comparison back = compare_results(results("dpg", {0.3, 0.01, 0.5}), results("dpg"));
  EXPECT_EQ(metric(back, "psnr").verdict, "worse");
  EXPECT_EQ(metric(back, "lpips_squeeze").verdict, "better");
}

TEST(Compare, AChangeBelowTheNoiseIsNotCalledBetter) {
  const Comparison comparison = compare_results(results("dpg"), results("dpg", {1e-3, 0, 0}));
  EXPECT_EQ(metric(comparison, "psnr").verdict, "within noise");
}

TEST(Compare, SetsWithAStandardErrorAreJudgedByIt) {
  // Of the difference: sqrt(0.3^2 + 0.4^2) = 0.5 at most, 0.98 at 95 %.
  for (const auto& [rise, verdict] : {std::pair{0.97, "within noise"}, {0.99, "worse"}, {-0.99, "better"}}) {
    Json a = results("dpg"), b = results("dpg");
    a["sets"][0].update({{"KID", 5.0}, {"KID standard error", 0.3}});
    b["sets"][0].update({{"KID", 5.0 + rise}, {"KID standard error", 0.4}});
    const auto sets = compare_results(a, b).methods.at(0).sets;
    ASSERT_EQ(sets.size(), 3u);  // the error itself is compared with nothing
    EXPECT_EQ(sets[2].metric, "KID");
    EXPECT_EQ(sets[2].verdict, verdict);
  }
}

TEST(Compare, SetsThatAreKnownPartByPartAreComparedSo) {
  // Both change alike with the part that is left out, far more than they differ.
  const std::vector<double> common = {50, 70, 40, 60, 55, 45, 65};
  for (const auto& [spread, verdict] : {std::pair{0.1, "worse"}, {2.0, "within noise"}}) {
    std::vector<double> without_b;
    for (std::size_t i = 0; i < common.size(); ++i)
      without_b.push_back(common[i] + 1 + (i % 2 ? spread : -spread));
    Json a = results("dpg"), b = results("dpg");
    a["sets"][0].update({{"FID", 55.0}, {"FID standard error", 10.0}, {"FID leaving out", common}});
    b["sets"][0].update({{"FID", 56.0}, {"FID standard error", 10.0}, {"FID leaving out", without_b}});
    const auto sets = compare_results(a, b).methods.at(0).sets;
    const auto fid = std::find_if(sets.begin(), sets.end(), [](const auto& s) { return s.metric == "FID"; });
    ASSERT_NE(fid, sets.end());
    EXPECT_EQ(fid->verdict, verdict) << spread;
  }
}

TEST(Compare, SetsMayHaveNoInterval) {
  const Comparison comparison = compare_results(results("dpg"), results("dpg", {-2, 0, 0}));
  const auto& sets = comparison.methods.at(0).sets;
  ASSERT_EQ(sets.size(), 2u);
  EXPECT_EQ(sets[0].metric, "FD-googlenet");
  EXPECT_EQ(sets[0].verdict, "better, without an interval");
  EXPECT_EQ(sets[1].verdict, "unavailable in both");
  const Comparison fewer = compare_results(results("dpg"), results("dpg", {-2, 0, 0, 0, 19}));
  EXPECT_EQ(fewer.methods.at(0).sets[0].verdict, "sets of different pictures: not comparable");
}

TEST(Compare, JoinsByPictureAndNamesTheRest) {
  // Pictures 0 to 19 and 18 to 22: two in common.
  const Comparison comparison = compare_results(results("dpg"), results("dpg", {1, 0, 0, 18, 5}));
  const MethodComparison& method = comparison.methods.at(0);
  EXPECT_EQ(method.pictures, 2u);
  EXPECT_EQ(method.only_in_a.size(), 18u);
  EXPECT_EQ(method.only_in_b, (std::vector<std::string>{"20.png", "21.png", "22.png"}));
  EXPECT_NEAR(metric(comparison, "psnr").difference.mean, 1, 0.2);
  const std::string text = comparison_text(comparison);
  EXPECT_NE(text.find("only in A (18): 0.png; 1.png"), std::string::npos) << text;
  EXPECT_NE(text.find("only in B (3): 20.png; 21.png; 22.png"), std::string::npos) << text;
}

TEST(Compare, OnePictureDecidesNothing) {
  const Comparison comparison = compare_results(results("dpg"), results("dpg", {1, 0, 0, 0, 1}));
  EXPECT_EQ(metric(comparison, "psnr").verdict, "one picture");
}

TEST(Compare, TwoMethodsOfOneFile) {
  Json both = results("dps");
  const Json on_sr = results("dpg", {0.3, -0.01, 0}), on_box = results("dpg", {0.3, -0.01, 0}, "box");
  for (const Json* other : {&on_sr, &on_box})
    for (const Json& row : (*other)["rows"]) both["rows"].push_back(row);
  const Comparison comparison = compare_results(both, both, MethodPair{"dps", "dpg"});
  ASSERT_EQ(comparison.methods.size(), 1u);
  EXPECT_EQ(comparison.methods[0].method_a, "dps");
  EXPECT_EQ(comparison.methods[0].method_b, "dpg");
  EXPECT_EQ(metric(comparison, "psnr").verdict, "better");
  EXPECT_EQ(metric(comparison, "lpips_squeeze").verdict, "better");
  EXPECT_EQ(comparison.only_in_b, std::vector<std::string>{"box, dpg"});
  // Each with itself: no difference at all.
  for (const MethodComparison& method : compare_results(both, both).methods)
    for (const MetricComparison& one : method.metrics) {
      EXPECT_EQ(one.difference.mean, 0);
      EXPECT_EQ(one.verdict, "within noise");
    }
}

TEST(Compare, NumbersThatAreMissingLeaveOnlyTheirPairsOut) {
  Json b = results("dpg", {0.3, 0, 0});
  b["rows"][3]["psnr"] = "inf";
  b["rows"][4]["psnr"] = nullptr;
  for (Json& row : b["rows"]) row["lpips_squeeze"] = nullptr;
  const Comparison comparison = compare_results(results("dpg"), b);
  EXPECT_EQ(metric(comparison, "psnr").difference.pairs, 18);
  EXPECT_THROW(metric(comparison, "lpips_squeeze"), Error);
  EXPECT_NE(comparison_text(comparison).find("18 of 20 pictures"), std::string::npos);
}

TEST(Compare, SeedsOfOnePictureAreAveraged) {
  Json a = results("dpg"), b = a, once_more = a;
  for (Json& row : once_more["rows"]) row["psnr"] = row["psnr"].get<double>() + 1, b["rows"].push_back(row);
  const Comparison comparison = compare_results(a, b);
  EXPECT_EQ(comparison.methods.at(0).pictures, 20u);
  EXPECT_NEAR(metric(comparison, "psnr").difference.mean, 0.5, 1e-9);
}

TEST(Compare, ResultsWithNothingInCommonAreRefused) {
  for (const Json& other : {results("dps"), results("dpg", {}, "box"), results("dpg", {0, 0, 0, 50, 3})})
    EXPECT_THROW(compare_results(results("dpg"), other), Error);
  EXPECT_THROW(compare_results(results("dpg"), results("dpg"), MethodPair{"dpg", "dps"}), Error);
  Json broken = results("dpg");
  broken["rows"][1].erase("image");
  EXPECT_THROW(compare_results(results("dpg"), broken), Error);
}

TEST(Compare, OtherPlansAreNoted) {
  Json other = results("dpg");
  EXPECT_TRUE(compare_results(results("dpg"), other).notes.empty());
  other["plan"]["seed"] = 2;
  other["plan"]["methods"] = {"dpg"};
  const auto notes = compare_results(results("dpg"), other).notes;
  ASSERT_EQ(notes.size(), 1u);
  EXPECT_NE(notes[0].find("\"seed\""), std::string::npos) << notes[0];
}

TEST(Compare, JsonHasWhatTheTableHas) {
  const Json json = comparison_json(compare_results(results("dpg"), results("dpg", {0.3, 0.01, 0.5})));
  EXPECT_EQ(json["format"], "dpg-comparison-1");
  const Json& psnr = json["methods"][0]["metrics"][0];
  EXPECT_EQ(psnr["metric"], "psnr");
  EXPECT_EQ(psnr["verdict"], "better");
  EXPECT_LT(psnr["low"].get<double>(), psnr["difference"].get<double>());
  EXPECT_LT(psnr["difference"].get<double>(), psnr["high"].get<double>());
  EXPECT_TRUE(json["methods"][0]["sets"][1]["a"].is_null());
}

TEST(ReadResults, OnlyResultsAreTaken) {
  const fs::path folder = fs::path(testing::TempDir()) / str("dpg-compare-", ::getpid());
  fs::create_directories(folder);
  for (const char* text :
       {"", "{", "[]", "{}", R"({"format": "dpg-results-1"})", R"({"format": "dpg-results-2", "rows": []})",
        R"({"format": "dpg-results-1", "rows": {}})"}) {
    write_text(folder / "r.json", text);
    EXPECT_THROW(read_results(folder / "r.json"), Error) << text;
  }
  write_text(folder / "r.json", results("dpg").dump());
  EXPECT_EQ(read_results(folder / "r.json")["rows"].size(), 20u);
  EXPECT_THROW(read_results(folder / "missing.json"), Error);
  remove_folder(folder);
}

}  // namespace
}  // namespace dpg::evaluate
