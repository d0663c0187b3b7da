#include "dpg/evaluate/plan.h"

#include <gtest/gtest.h>

#include "dpg/core/error.h"
#include "dpg/evaluate/work_list.h"

namespace dpg::evaluate {
namespace {

namespace fs = std::filesystem;

const char* const kPlan = R"json({
  "name": "t", "images": "pictures", "count": 5, "seed": 7,
  "noises": {"gaussian": "gaussian:0.05", "poisson": "poisson:1"},
  "tasks": [{"name": "sr4", "operator": "sr:4"},
            {"name": "jpeg", "operator": "exec:{plan}/run", "noise": "none"}],
  "methods": [
    {"name": "dpg-ddim", "title": "DPG (DDIM)", "method": "dpg", "settings": {"sampler": "ddim", "steps": 20},
     "presets": {"sr4": {"128": "small", "256": "large"}, "sr4-poisson": "grainy"},
     "overrides": {"jpeg": {"settings": {"steps": 5}, "best_of": 4}}},
    {"name": "ddnm", "method": "ddnm+", "preset": "p", "settings": {"eta": 1},
     "overrides": {"sr4": {"method": "ddnm", "settings": {"steps": 9}}}, "tasks": ["sr4"]}],
  "evolution": {"runs": 3, "tasks": ["sr4-poisson"], "methods": ["ddnm"], "picture": 1}
})json";

Plan parsed(const std::string& text = kPlan) {
  return parse_plan(text, "folder/t.json");
}

std::string complaint(const std::string& from, const std::string& to) {
  std::string text = kPlan;
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  text.replace(at, from.size(), to);
  try {
    parsed(text);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(Plan, TasksAreOperatorsTimesNoises) {
  const Plan plan = parsed();
  ASSERT_EQ(plan.tasks.size(), 3u);
  EXPECT_EQ(plan.tasks[0].name, "sr4-gaussian");
  EXPECT_EQ(plan.tasks[1].name, "sr4-poisson");
  EXPECT_EQ(plan.tasks[1].noise, "poisson:1");
  EXPECT_EQ(plan.tasks[1].family, "sr4");
  EXPECT_EQ(plan.tasks[2].name, "jpeg");
  EXPECT_EQ(plan.tasks[2].noise, "none");
  EXPECT_EQ(plan.tasks[2].op, "exec:" + (fs::current_path() / "folder").string() + "/run");
  EXPECT_EQ(plan.tasks[2].op_text, "exec:{plan}/run");
  EXPECT_EQ(plan.images, fs::path("folder/pictures"));
  EXPECT_EQ(plan.seed, 7u);
}

TEST(Plan, AMethodsSettingsInATask) {
  const Plan plan = parsed();
  const PlannedMethod& dpg = plan.method("dpg-ddim");
  const MethodSettings small = dpg.in(plan.task("sr4-gaussian"), 128),
                       large = dpg.in(plan.task("sr4-gaussian"), 300);
  EXPECT_EQ(small.preset, "small");  // by the family's name, and by size
  EXPECT_EQ(large.preset, "large");
  EXPECT_EQ(dpg.in(plan.task("sr4-poisson"), 128).preset, "grainy");  // the task's own name wins
  const MethodSettings jpeg = dpg.in(plan.task("jpeg"), 128);
  EXPECT_EQ(jpeg.preset, "");
  EXPECT_EQ(jpeg.settings, Json({{"sampler", "ddim"}, {"steps", 5}}));  // merged
  EXPECT_EQ(jpeg.samples, 4);
  EXPECT_TRUE(jpeg.best);
  EXPECT_EQ(small.samples, 1);
  EXPECT_FALSE(small.best);
  // Another method does not take the first one's preset and settings.
  const MethodSettings ddnm = plan.method("ddnm").in(plan.task("sr4-gaussian"), 128);
  EXPECT_EQ(ddnm.method, "ddnm");
  EXPECT_EQ(ddnm.preset, "");
  EXPECT_EQ(ddnm.settings, Json({{"steps", 9}}));
  EXPECT_TRUE(plan.method("ddnm").takes(plan.task("sr4-poisson")));
  EXPECT_FALSE(plan.method("ddnm").takes(plan.task("jpeg")));
}

TEST(Plan, APartHasOnlyWhatIsNamed) {
  const auto names = [](const std::vector<std::string>& tasks, const std::vector<std::string>& methods) {
    const Plan part = part_of(parsed(), tasks, methods);
    std::string text;
    for (const PlannedTask& task : part.tasks) text += task.name + " ";
    for (const PlannedMethod& method : part.methods) text += method.name + " ";
    return text;
  };
  EXPECT_EQ(names({}, {}), "sr4-gaussian sr4-poisson jpeg dpg-ddim ddnm ");
  EXPECT_EQ(names({"jpeg", "sr4-poisson"}, {}), "sr4-poisson jpeg dpg-ddim ddnm ");
  EXPECT_EQ(names({"sr4"}, {"ddnm"}), "sr4-gaussian sr4-poisson ddnm ");
  EXPECT_THROW(names({"sr8"}, {}), Error);
  EXPECT_THROW(names({}, {"dpg"}), Error);
  EXPECT_THROW(names({"jpeg"}, {"ddnm"}), Error);  // each is there, and they never meet
}

TEST(Plan, MistakesAreNamedWithTheirPlace) {
  const auto says = [](const std::string& text, const std::string& words) {
    EXPECT_NE(text.find(words), std::string::npos) << text;
  };
  says(complaint("\"seed\"", "\"sead\""), "\"sead\" that means nothing here");
  says(complaint("\"operator\": \"sr:4\"", "\"operator\": 4"), "tasks[0]");
  says(complaint("\"method\": \"dpg\",", ""), "methods[0]");
  says(complaint("\"sr4\": {\"128\"", "\"sr8\": {\"128\""),
       "a task \"sr8\"; the tasks are sr4-gaussian, sr4-poisson, jpeg");
  says(complaint("\"128\": \"small\"", "\"wide\": \"small\""), "a preset is a name");
  says(complaint("\"best_of\": 4", "\"best_of\": 0"), "best_of");
  says(complaint("\"name\": \"ddnm\"", "\"name\": \"dpg-ddim\""), "two entries called \"dpg-ddim\"");
  says(complaint("\"name\": \"sr4\"", "\"name\": \"../sr4\""), "becomes a folder");
  says(complaint("\"name\": \"ddnm\"", "\"name\": \"inputs\""), "dpg's own");
  says(complaint("\"count\": 5", "\"count\": -1"), "\"count\" must be a whole number from 0");
  says(complaint("\"count\": 5", "\"metrics\": [\"psnar\"]"), "no metric \"psnar\"");
  says(complaint("{\"runs\": 3, \"tasks\": [\"sr4-poisson\"]", "{\"runs\": 3, \"tasks\": [\"sr4\"]"),
       "evolution");
  says(complaint("{", "["), "not JSON");
  EXPECT_THROW(parse_plan("[]", "t.json"), Error);
}

TEST(WorkList, IsCutFromThePlanAlone) {
  const Plan plan = parsed();
  const std::vector<WorkBatch> list = work_list(plan, 5, 2);
  // Three tasks with dpg, two with ddnm; three batches each; then two repetitions of one picture.
  ASSERT_EQ(list.size(), (3u + 2u) * 3u + 2u);
  EXPECT_EQ(list[0].pictures, (std::vector<std::size_t>{0, 1}));
  EXPECT_EQ(list[2].pictures, (std::vector<std::size_t>{4}));
  EXPECT_EQ(list[3].method, 1u);
  EXPECT_EQ(list[6].task, 1u);
  const WorkBatch& last = list.back();
  EXPECT_EQ(last.run, 2);
  EXPECT_EQ(last.task, 1u);
  EXPECT_EQ(last.method, 1u);
  EXPECT_EQ(last.pictures, (std::vector<std::size_t>{1}));
  // Where the picture to repeat is not among them, nothing is repeated.
  EXPECT_EQ(work_list(plan, 1, 1).size(), 5u);
  EXPECT_THROW(work_list(plan, 5, 0), Error);
}

TEST(Shard, TakesEveryNth) {
  const Shard shard = parse_shard("2/3");
  EXPECT_FALSE(shard.takes(0));
  EXPECT_TRUE(shard.takes(1));
  EXPECT_FALSE(shard.takes(2));
  EXPECT_TRUE(shard.takes(4));
  for (const char* wrong : {"", "2", "0/3", "4/3", "a/b", "1/3x", "-1/3", "1/"})
    EXPECT_THROW(parse_shard(wrong), Error) << wrong;
}

// Those that come with the project can be read; whether their operators exist is for the program to say.
TEST(Plan, BundledOnesAreWhole) {
  std::size_t count = 0;
  for (const auto& entry : fs::directory_iterator(DPG_SOURCE_DIR "/plans")) {
    if (entry.path().extension() != ".json") continue;
    const Plan plan = read_plan(entry.path());
    EXPECT_FALSE(plan.about.empty()) << entry.path();
    EXPECT_EQ(plan.name, entry.path().stem().string());
    ++count;
  }
  EXPECT_EQ(count, 12u);
}

}  // namespace
}  // namespace dpg::evaluate
