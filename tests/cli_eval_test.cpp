// dpg eval as a user runs it: whole, in shards, over MPI, changed, and killed again and again. Small pictures
// and five steps a method: what is tested is the bookkeeping, not the restoring.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <random>
#include <thread>

#include "dpg/core/file.h"
#include "program.h"

namespace dpg::testing {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr int kKills = 20;

Json small_plan() {
  return Json::parse(R"({
    "about": "for a test", "size": 32, "seed": 3, "shown": 1,
    "tasks": [{"name": "sr4", "operator": "sr:4", "noise": "gaussian:0.05"},
              {"name": "jpeg", "operator": "jpeg:10", "noise": "none"}],
    "methods": [{"name": "dpg", "method": "dpg", "settings": {"steps": 5, "mc": 4}},
                {"name": "dps", "method": "dps", "settings": {"steps": 5}},
                {"name": "best", "method": "dpg", "settings": {"steps": 5, "mc": 4}, "best_of": 3}],
    "evolution": {"runs": 3, "tasks": ["sr4"], "methods": ["dpg", "dps"]}
  })");
}

// Results depend on the number of threads through rounding: the same one everywhere.
std::vector<std::string> command(const Scratch& scratch, const std::string& folder,
                                 const std::vector<std::string>& more = {}) {
  std::vector<std::string> words = {"eval",        scratch.file("plan.json"),
                                    "-o",          scratch.file(folder),
                                    "--threads",   "1",
                                    "--device",    "cpu",
                                    "--precision", "fp32"};
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

void write_plan(const Scratch& scratch, const Json& plan) {
  write_bytes(scratch.file("plan.json"), plan.dump(2));
}

Outcome must(const std::vector<std::string>& words) {
  const Outcome outcome = run_dpg(words);
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  return outcome;
}

// Starts `words[0]` with nothing to say, and gives its process.
pid_t start(const std::vector<std::string>& words, const std::string& log) {
  const pid_t child = fork();
  if (child != 0) return child;
  std::vector<std::string> copy = words;
  std::vector<char*> argv;
  for (std::string& word : copy) argv.push_back(word.data());
  argv.push_back(nullptr);
  const int file = open(log.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  if (dup2(file, STDOUT_FILENO) >= 0 && dup2(file, STDERR_FILENO) >= 0) execvp(argv[0], argv.data());
  _exit(127);
}

int code_of(pid_t child) {
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

// Restored pictures below the folder, by their place in it, with their bytes; and how many records there are.
std::map<std::string, std::string> pictures_of(const fs::path& folder) {
  std::map<std::string, std::string> pictures;
  for (const auto& entry : fs::recursive_directory_iterator(folder))
    if (entry.path().extension() == ".png")
      pictures[fs::relative(entry.path(), folder).string()] = read_bytes(entry.path());
  return pictures;
}

std::size_t records_of(const fs::path& folder) {
  std::size_t count = 0;
  if (!fs::exists(folder)) return 0;
  for (const auto& entry : fs::recursive_directory_iterator(folder))
    if (entry.path().extension() == ".json" && entry.path().stem().extension().empty() &&
        read_bytes(entry.path()).find("dpg-record-1") != std::string::npos)
      ++count;
  return count;
}

void expect_same_results(const Scratch& scratch, const std::string& a, const std::string& b) {
  for (const char* file : {"/results.csv", "/summary.csv"})
    EXPECT_EQ(read_bytes(scratch.file(a + file)), read_bytes(scratch.file(b + file))) << file;
  EXPECT_EQ(pictures_of(scratch.file(a)), pictures_of(scratch.file(b)));
}

// 2 pictures: 2 tasks x 3 methods x 2 pictures, of which dps cannot do jpeg, and 2 x 2 repetitions.
constexpr std::size_t kRecords = 12 + 4;

TEST(Eval, KeepsEverythingAndReportsIt) {
  const Scratch scratch;
  write_plan(scratch, small_plan());
  const Outcome outcome = must(command(scratch, "run", {"--count", "2", "--weights", scratch.file("none")}));
  EXPECT_NE(outcome.err.find("LPIPS squeeze is unavailable"), std::string::npos) << outcome.err;
  EXPECT_NE(outcome.out.find("left)"), std::string::npos) << outcome.out;
  EXPECT_EQ(records_of(scratch.file("run")), kRecords);

  const Json results = Json::parse(read_bytes(scratch.file("run/results.json")));
  EXPECT_EQ(results.at("format"), "dpg-results-1");
  ASSERT_EQ(results.at("rows").size(), 10u);
  EXPECT_EQ(results.at("missing"), 0);
  const Json& row = results["rows"][0];
  EXPECT_EQ(row.at("task"), "sr4");
  EXPECT_EQ(row.at("image"), "face1.png");
  EXPECT_EQ(row.at("seed"), 3);
  EXPECT_EQ(row.at("network_calls"), 5);
  EXPECT_TRUE(row.at("lpips_squeeze").is_null());
  EXPECT_NEAR(row.at("residual_ratio").get<double>(),
              row.at("residual").get<double>() / row.at("noise_floor").get<double>(), 1e-12);
  ASSERT_EQ(results.at("cannot").size(), 1u);
  EXPECT_EQ(results["cannot"][0].at("method"), "dps");
  EXPECT_EQ(results.at("sets").size(), 5u);
  EXPECT_EQ(results["sets"][0].at("FID").get<std::string>().rfind("unavailable", 0), 0u);

  // Of three samples the one with the smallest residual.
  const Json best = Json::parse(read_bytes(scratch.file("run/sr4/best/face1.json")));
  const auto residuals = best.at("sample_residuals").get<std::vector<double>>();
  ASSERT_EQ(residuals.size(), 3u);
  EXPECT_EQ(best.at("residual").get<double>(), *std::min_element(residuals.begin(), residuals.end()));
  EXPECT_EQ(best.at("network_calls"), 15);
  EXPECT_EQ(read_bytes(scratch.file("run/sr4/best/face1.png")),
            read_bytes(scratch.file("run/sr4/best/samples/face1-" +
                                    std::to_string(best.at("chosen").get<int>()) + ".png")));
  EXPECT_EQ(residuals[0],
            results["rows"][0].at("residual").get<double>());  // the first is what dpg alone gives

  // Repetitions have other seeds, and so other pictures.
  EXPECT_EQ(Json::parse(read_bytes(scratch.file("run/sr4/dpg/runs/face1-2.json"))).at("seed"), 5);
  EXPECT_NE(read_bytes(scratch.file("run/sr4/dpg/runs/face1-1.png")),
            read_bytes(scratch.file("run/sr4/dpg/face1.png")));

  // Scores are those of the files; manifests make the same bytes again.
  const Outcome score = must({"score", scratch.file("run/sr4/dpg/face1.png"), "--truth",
                              scratch.file("run/truth/face1.png"), "--weights", scratch.file("none")});
  char psnr[32];
  std::snprintf(psnr, sizeof psnr, "PSNR %.2f dB", row.at("psnr").get<double>());
  EXPECT_NE(score.out.find(psnr), std::string::npos) << score.out << psnr;
  must({"rerun", scratch.file("run/sr4/dpg/face2.manifest.json"), "-o", scratch.file("again.png")});
  EXPECT_EQ(read_bytes(scratch.file("again.png")), read_bytes(scratch.file("run/sr4/dpg/face2.png")));

  const std::string html = read_bytes(scratch.file("run/report.html"));
  for (const char* words :
       {"cannot: ", "N/A", "<svg", "3 runs on one picture", "network calls", "data:image/png", "<b>", "FID"})
    EXPECT_NE(html.find(words), std::string::npos) << words;
  EXPECT_EQ(html.find("http://"), std::string::npos);
  EXPECT_EQ(html.find("https://"), std::string::npos);

  // Nothing is left to do, and doing it changes nothing.
  const std::string csv = read_bytes(scratch.file("run/results.csv"));
  const Outcome again = must(command(scratch, "run", {"--count", "2"}));
  EXPECT_NE(again.out.find("0 of 16 batches"), std::string::npos) << again.out;
  EXPECT_EQ(read_bytes(scratch.file("run/results.csv")), csv);
}

// Pictures, operators, noises, presets and settings of the plans that come with the project.
TEST(Eval, BundledPlansCanBeRun) {
  const Scratch faces;  // as many as the plan that begins furthest on wants
  for (int i = 0; i < 116; ++i)
    fs::create_symlink(DPG_SOURCE_DIR "/examples/pictures/face1.png", faces.file(std::to_string(i) + ".png"));
  for (const auto& entry : fs::directory_iterator(DPG_SOURCE_DIR "/plans")) {
    if (entry.path().extension() != ".json") continue;
    const Scratch scratch;
    const Outcome outcome = must(
        {"eval", entry.path().string(), "-o", scratch.file("run"), "--images", faces.file(""), "--dry-run"});
    EXPECT_NE(outcome.out.find("network calls"), std::string::npos) << entry.path() << outcome.out;
    EXPECT_TRUE(scratch.files().empty()) << entry.path();
  }
}

// Which pictures are taken is the caller's as much as the plan's.
TEST(Eval, PicturesCanBeTakenFromAnyOneOn) {
  const Scratch scratch;
  Json plan = small_plan();
  plan["first"] = 1;
  plan.erase("evolution");
  plan["tasks"].erase(1);
  plan["methods"] = Json::array({plan["methods"][1]});
  write_plan(scratch, plan);
  const auto pictures = [&](const std::string& folder) {
    const Json results = Json::parse(read_bytes(scratch.file(folder + "/results.json")));
    std::vector<std::string> names;
    for (const Json& row : results.at("rows")) names.push_back(row.at("image"));
    return names;
  };
  must(command(scratch, "plan", {"--count", "1"}));
  EXPECT_EQ(pictures("plan"), std::vector<std::string>{"face2.png"});
  must(command(scratch, "later", {"--first", "2", "--count", "2"}));
  EXPECT_EQ(pictures("later"), (std::vector<std::string>{"face3.png", "face4.png"}));
  must(command(scratch, "from the start", {"--first", "0", "--count", "1"}));
  EXPECT_EQ(pictures("from the start"), std::vector<std::string>{"face1.png"});
  expect_refused(run_dpg(command(scratch, "none", {"--first", "99"})), 1, {"pictures", "number 99"});
  expect_refused(run_dpg(command(scratch, "plan", {"--first", "3", "--count", "1"})), 1,
                 {"begun with another plan"});
}

// A part of a plan is computed as in the whole, and the whole goes on from there.
TEST(Eval, APartOfAPlanIsTheBeginningOfTheWhole) {
  const Scratch scratch;
  Json plan = small_plan();
  plan.erase("evolution");
  write_plan(scratch, plan);
  must(command(scratch, "whole", {"--count", "1"}));
  must(command(scratch, "run", {"--count", "1", "--tasks", "jpeg", "--methods", "best,dpg"}));
  const Json rows = Json::parse(read_bytes(scratch.file("run/results.json"))).at("rows");
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0].at("method"), "dpg");
  EXPECT_EQ(rows[1].at("method"), "best");
  for (const Json& row : rows) EXPECT_EQ(row.at("task"), "jpeg");
  const auto untouched = fs::last_write_time(scratch.file("run/jpeg/dpg/face1.json"));
  must(command(scratch, "run", {"--count", "1", "--continue-changed"}));
  EXPECT_EQ(fs::last_write_time(scratch.file("run/jpeg/dpg/face1.json")), untouched);
  expect_same_results(scratch, "run", "whole");
  expect_refused(run_dpg(command(scratch, "none", {"--methods", "dsp"})), 1, {"no method \"dsp\"", "dps"});
  expect_refused(run_dpg(command(scratch, "none", {"--tasks", "sr8"})), 1, {"task \"sr8\"", "sr4, jpeg"});
}

TEST(Eval, AChangedPlanIsNoticed) {
  const Scratch scratch;
  write_plan(scratch, small_plan());
  must(command(scratch, "run", {"--count", "1"}));
  const auto untouched = fs::last_write_time(scratch.file("run/sr4/dps/face1.json"));
  const std::string before = read_bytes(scratch.file("run/sr4/dpg/face1.png"));
  Json plan = small_plan();
  plan["methods"][0]["settings"]["steps"] = 4;
  write_plan(scratch, plan);
  expect_refused(
      run_dpg(command(scratch, "run", {"--count", "1"})), 1,
      {"begun with another plan", "methods.dpg.sr4.settings.steps was 5 and is 4", "--continue-changed"});
  must(command(scratch, "run", {"--count", "1", "--continue-changed"}));
  EXPECT_EQ(fs::last_write_time(scratch.file("run/sr4/dps/face1.json")), untouched);
  EXPECT_NE(read_bytes(scratch.file("run/sr4/dpg/face1.png")), before);
  must(command(scratch, "fresh", {"--count", "1"}));
  expect_same_results(scratch, "run", "fresh");
  expect_refused(run_dpg({"eval", scratch.file("no.json"), "-o", scratch.file("x")}), 1,
                 {"there is no plan"});
  plan["tasks"][0]["operator"] = "sr:five";
  write_plan(scratch, plan);
  expect_refused(run_dpg(command(scratch, "other")), 1, {"sr"});
}

// Two pictures at once, and one left over: three pictures in two batches.
const std::vector<std::string> kThree = {"--count", "3", "--batch", "2"};

TEST(Eval, ShardsGiveTheSameBytes) {
  const Scratch scratch;
  write_plan(scratch, small_plan());
  must(command(scratch, "whole", kThree));
  const auto shard = [&](const char* which) {
    auto words = command(scratch, "shards", kThree);
    words.insert(words.end(), {"--shard", which});
    must(words);
  };
  shard("2/2");
  EXPECT_FALSE(fs::exists(scratch.file("shards/report.html")));
  shard("1/2");
  EXPECT_EQ(records_of(scratch.file("shards")), records_of(scratch.file("whole")));
  must(command(scratch, "shards", kThree));
  expect_same_results(scratch, "whole", "shards");

  // One of a batch is lost: it comes again as it was, and the other one stays.
  fs::remove(scratch.file("shards/sr4/dpg/face2.json"));
  fs::remove(scratch.file("shards/jpeg/best/face1.png"));
  const auto untouched = fs::last_write_time(scratch.file("shards/sr4/dpg/face1.png"));
  must(command(scratch, "shards", {"--count", "3"}));  // the batch is remembered
  EXPECT_EQ(fs::last_write_time(scratch.file("shards/sr4/dpg/face1.png")), untouched);
  expect_same_results(scratch, "whole", "shards");
  expect_refused(run_dpg(command(scratch, "shards", {"--shard", "3/2"})), 1, {"--shard 3/2"});
}

// Processes that this one started.
std::vector<pid_t> children_of(pid_t parent) {
  const std::string number = std::to_string(parent);
  std::ifstream file("/proc/" + number + "/task/" + number + "/children");
  return {std::istream_iterator<pid_t>(file), {}};
}

TEST(Eval, RanksGiveTheSameBytesEvenWhenOneIsKilled) {
  const Scratch scratch;
  write_plan(scratch, small_plan());
  must(command(scratch, "whole", kThree));
  const auto ranks = [&](const char* folder) {
    std::vector<std::string> words = {"mpirun",   "--allow-run-as-root", "--oversubscribe", "-n", "4",
                                      DPG_PROGRAM};
    for (const std::string& word : command(scratch, folder, kThree)) words.push_back(word);
    return start(words, scratch.file("log"));
  };
  const int code = code_of(ranks("ranks"));
  const std::string log = read_bytes(scratch.file("log"));
  if (code == 127) GTEST_SKIP() << "there is no mpirun on this machine";
  if (log.find("built without MPI") != std::string::npos) GTEST_SKIP() << "dpg was built without MPI";
  ASSERT_EQ(code, 0) << log;
  expect_same_results(scratch, "whole", "ranks");

  // A rank that dies takes the job with it; what it had in hand is done by the next one.
  const pid_t job = ranks("killed");
  const auto patience = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (records_of(scratch.file("killed")) < 2 && std::chrono::steady_clock::now() < patience)
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  const std::vector<pid_t> members = children_of(job);
  if (members.empty()) {
    code_of(job);
    GTEST_SKIP() << "this system does not say which processes mpirun has started";
  }
  kill(members.back(), SIGKILL);
  EXPECT_NE(code_of(job), 0);
  EXPECT_LT(records_of(scratch.file("killed")), records_of(scratch.file("whole")));
  EXPECT_EQ(code_of(ranks("killed")), 0) << read_bytes(scratch.file("log"));
  expect_same_results(scratch, "whole", "killed");
}

double seconds_of(const std::function<void()>& work) {
  const auto begin = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

TEST(Eval, KilledTwentyTimesItLosesNothing) {
  const Scratch scratch;
  write_plan(scratch, small_plan());
  const auto words_for = [&](const char* folder) { return command(scratch, folder, {"--count", "3"}); };
  const double whole = seconds_of([&] { must(words_for("whole")); });
  const double idle = seconds_of([&] { must(words_for("whole")); });  // starting and reporting, no work
  const std::size_t records = records_of(scratch.file("whole"));

  std::vector<std::string> words = {DPG_PROGRAM};
  for (const std::string& word : words_for("killed")) words.push_back(word);
  std::mt19937 random(7);
  std::uniform_real_distribution<double> while_starting(0.6, 1), while_working(0, 0.2);
  std::size_t midway = 0, last = 0;
  for (int i = 0; i < kKills; ++i) {
    const double moment = idle * while_starting(random) + std::max(0.5, whole - idle) * while_working(random);
    const pid_t child = start(words, scratch.file("log"));
    std::this_thread::sleep_for(std::chrono::duration<double>(moment));
    kill(child, SIGKILL);
    code_of(child);
    const std::size_t now = records_of(scratch.file("killed"));
    EXPECT_GE(now, last);  // nothing that was finished is lost
    last = now;
    if (now > 0 && now < records) ++midway;
  }
  EXPECT_GE(midway, 3u) << "hardly a kill came in the middle of the work";
  must(words_for("killed"));
  EXPECT_EQ(records_of(scratch.file("killed")), records);
  expect_same_results(scratch, "whole", "killed");
  // What the killed ones left half-written is gone.
  for (const auto& entry : fs::recursive_directory_iterator(scratch.file("killed"))) {
    const std::string extension = entry.path().extension().string();
    const bool whole_file = extension == ".png" || extension == ".json" || extension == ".npy" ||
                            extension == ".csv" || extension == ".html";
    EXPECT_TRUE(whole_file || entry.is_directory()) << entry.path();
  }
}

}  // namespace
}  // namespace dpg::testing
