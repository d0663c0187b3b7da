#include "dpg/evaluate/results.h"

#include <gtest/gtest.h>

#include <cmath>

#include "dpg/core/test_folder.h"
#include "dpg/evaluate/report_page.h"
#include "dpg/report/test_markup.h"

namespace dpg::evaluate {
namespace {

using test::count;
using test::unbalanced;

Plan two_by_two() {
  return parse_plan(R"({"title": "A <plan>", "metrics": ["psnr", "lpips_squeeze", "FID", "FD-googlenet"],
    "tasks": [{"name": "sr4", "title": "SR", "operator": "sr:4", "noise": "none"},
              {"name": "jpeg", "title": "JPEG", "operator": "jpeg:10", "noise": "none"}],
    "methods": [{"name": "dpg", "title": "DPG", "method": "dpg"}, {"name": "dps", "title": "DPS", "method": "dps"}]})",
                    "t.json");
}

Json row(const std::string& task, const std::string& method, const std::string& image, double psnr) {
  return {{"task", task},
          {"method", method},
          {"image", image},
          {"number", 0},
          {"seed", 1},
          {"psnr", psnr},
          {"lpips_squeeze", nullptr},
          {"residual", 2.5},
          {"noise_floor", 2.0},
          {"residual_ratio", 1.25},
          {"network_calls", 20},
          {"reverse_passes", 20},
          {"operator_calls", 40},
          {"seconds", 3.5}};
}

Results some_results() {
  Results results;
  results.plan = {{"name", "t"}};
  results.environment = {{"device", "cpu"}, {"unavailable", {{"lpips_squeeze", "no weights"}}}};
  results.rows = {row("sr4", "dpg", "a.png", 30), row("sr4", "dpg", "b,\"c\".png", 28),
                  row("sr4", "dps", "a.png", 27), row("sr4", "dps", "b,\"c\".png", 27),
                  row("jpeg", "dpg", "a.png", 25.5)};
  results.cannot = {{{"task", "jpeg"}, {"method", "dps"}, {"why", "needs a <derivative>"}}};
  results.sets = {{{"task", "sr4"},
                   {"method", "dpg"},
                   {"pictures", 2},
                   {"FD-googlenet", 12.5},
                   {"FID", "unavailable: no file"}},
                  {{"task", "sr4"},
                   {"method", "dps"},
                   {"pictures", 2},
                   {"FD-googlenet", 22.5},
                   {"FD-googlenet standard error", 1.0},
                   {"FID", "unavailable: no file"}}};
  return results;
}

TEST(Results, MeansOverPictures) {
  const Results results = some_results();
  const auto mean = mean_of(results, "sr4", "dpg", "psnr");
  ASSERT_TRUE(mean);
  EXPECT_DOUBLE_EQ(mean->mean, 29);
  EXPECT_DOUBLE_EQ(mean->low, 28);  // two values: a resample of both alike is the extreme, and not rare
  EXPECT_DOUBLE_EQ(mean->high, 30);
  EXPECT_EQ(mean->pictures, 2u);
  EXPECT_EQ(mean->text(2), "29.00 \u00b1 1.00");
  EXPECT_EQ(mean_of(results, "jpeg", "dpg", "psnr")->text(1), "25.5");  // one picture has no spread
  EXPECT_FALSE(mean_of(results, "sr4", "dpg", "lpips_squeeze"));
  EXPECT_FALSE(mean_of(results, "jpeg", "dps", "psnr"));
  EXPECT_EQ(set_value(results, "sr4", "dps", "FD-googlenet"), 22.5);
  EXPECT_FALSE(set_value(results, "sr4", "dps", "FID"));
  EXPECT_EQ(set_missing(results, "FID"), "unavailable: no file");
  EXPECT_EQ(set_missing(results, "FD-googlenet"), "");
}

TEST(Results, CsvHoldsNoClockAndQuotesNames) {
  Results results = some_results();
  const std::string csv = results_csv(results, two_by_two().metrics);
  EXPECT_EQ(
      csv.substr(0, csv.find('\n')),
      "task,method,image,number,seed,psnr,lpips_squeeze,residual,noise_floor,residual_ratio,network_calls,"
      "reverse_passes,operator_calls,cannot");
  EXPECT_NE(csv.find("sr4,dpg,\"b,\"\"c\"\".png\",0,1,28,,2.5,2,1.25,20,20,40,\n"), std::string::npos) << csv;
  EXPECT_NE(csv.find("jpeg,dps,,,,,,,,,,,,needs a <derivative>\n"), std::string::npos) << csv;
  EXPECT_EQ(count(csv, "\n"), 7u);
  for (Json& one : results.rows) one["seconds"] = 99;  // another, slower day
  EXPECT_EQ(results_csv(results, two_by_two().metrics), csv);
  EXPECT_EQ(summary_csv(results, two_by_two()), summary_csv(some_results(), two_by_two()));
  EXPECT_NE(runtime_csv(results), runtime_csv(some_results()));
  const std::string summary = summary_csv(results, two_by_two());
  EXPECT_NE(summary.find("sr4,dpg,psnr,29,28,30,2,\n"), std::string::npos) << summary;
  EXPECT_NE(summary.find("sr4,dpg,FD-googlenet,12.5,,,2,\n"), std::string::npos) << summary;
  EXPECT_NE(summary.find("sr4,dps,FD-googlenet,22.5,20.54,24.46,2,\n"), std::string::npos) << summary;
  EXPECT_NE(summary.find("sr4,dpg,FID,,,,,unavailable\n"), std::string::npos) << summary;
  const Json json = results_json(results, two_by_two());
  EXPECT_EQ(json["format"], "dpg-results-1");
  EXPECT_EQ(json["rows"].size(), 5u);
}

TEST(Report, BestIsBoldSecondUnderlinedAsShown) {
  std::vector<TableCell> cells(5);
  std::vector<TableCell*> column;
  for (TableCell& cell : cells) column.push_back(&cell);
  emphasise(column, {30.004, 29.9, 30.001, std::nan(""), 12}, 2, 1);
  EXPECT_EQ(cells[0].emphasis, Emphasis::best);
  EXPECT_EQ(cells[1].emphasis, Emphasis::second);
  EXPECT_EQ(cells[2].emphasis, Emphasis::best);  // both read 30.00
  EXPECT_EQ(cells[3].emphasis, Emphasis::none);
  EXPECT_EQ(cells[4].emphasis, Emphasis::none);
  std::vector<TableCell> less(3);
  emphasise({&less[0], &less[1], &less[2]}, {0.3, 0.1, 0.2}, 3, -1);
  EXPECT_EQ(less[1].emphasis, Emphasis::best);
  EXPECT_EQ(less[2].emphasis, Emphasis::second);
  std::vector<TableCell> alone(2);
  emphasise({&alone[0], &alone[1]}, {1, std::nan("")}, 3, -1);
  EXPECT_EQ(alone[0].emphasis, Emphasis::none);
}

TEST(Report, HoldsTheTablesAndSaysWhatIsMissing) {
  const RunFolder folder("no-such-folder");
  const std::string html = report_page(two_by_two(), {"a", "b"}, folder, some_results());
  EXPECT_EQ(unbalanced(html), "");
  EXPECT_EQ(count(html, "<h1>A &lt;plan&gt;</h1>"), 1u);
  EXPECT_EQ(count(html, "<b>29.00 \u00b1 1.00</b>"), 2u);  // overview and the task's own table
  EXPECT_EQ(count(html, "<u>27.00 \u00b1 0.00</u>"), 2u);
  EXPECT_EQ(count(html, "<b>12.50</b>"), 2u);
  EXPECT_EQ(count(html, "<u>22.50 \u00b1 1.96</u>"), 2u);
  EXPECT_EQ(count(html, ">N/A<"), 2u);  // distance and PSNR of dps on jpeg
  EXPECT_EQ(count(html, "cannot: needs a &lt;derivative&gt;"), 1u);
  EXPECT_EQ(count(html, "unavailable: no file"), 1u);
  EXPECT_EQ(count(html, "no weights"), 1u);
  EXPECT_EQ(count(html, "LPIPS"), 0u);  // no column for what no method has
  EXPECT_EQ(count(html, "network calls"), 1u);
}

}  // namespace
}  // namespace dpg::evaluate
