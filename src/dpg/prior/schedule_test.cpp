#include "dpg/prior/schedule.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <string>

#include "dpg/checkpoint/state_dict.h"
#include "dpg/core/error.h"

namespace dpg {
namespace {

const std::filesystem::path kFixture =
    std::filesystem::path(DPG_SHARED_DIR) / "fixtures" / "schedule.safetensors";

// Tables that guided-diffusion itself computed.
class ScheduleFixture : public testing::Test {
 protected:
  void SetUp() override {
    if (!std::filesystem::exists(kFixture)) GTEST_SKIP() << "there is no " << kFixture;
  }

  template <class T>
  static std::vector<T> table(const std::string& name, DType dtype) {
    const StateDict file = StateDict::open(kFixture);
    const TensorView* tensor = file.find(name);
    check(tensor != nullptr && tensor->dtype == dtype, name, " is not in the fixture");
    const std::vector<std::byte> bytes = contiguous_bytes(*tensor);
    std::vector<T> values(bytes.size() / sizeof(T));
    std::memcpy(values.data(), bytes.data(), bytes.size());
    return values;
  }

  static void expect_table(const std::vector<double>& mine, const std::string& name) {
    const std::vector<double> theirs = table<double>(name, DType::f64);
    ASSERT_EQ(mine.size(), theirs.size()) << name;
    for (std::size_t i = 0; i < mine.size(); ++i) {
      ASSERT_NEAR(mine[i], theirs[i], 1e-12) << name << " at " << i;
      ASSERT_NEAR(mine[i], theirs[i], 1e-12 * std::abs(theirs[i])) << name << " at " << i;
    }
  }
};

TEST_F(ScheduleFixture, TablesEqualGuidedDiffusions) {
  for (const std::string name : {"linear", "cosine"}) {
    const Schedule schedule = Schedule::named(name);
    expect_table(schedule.beta(), name + ".betas");
    expect_table(schedule.alpha_bar(), name + ".alphas_cumprod");
    expect_table(schedule.alpha_bar_prev(), name + ".alphas_cumprod_prev");
    expect_table(schedule.posterior_variance(), name + ".posterior_variance");
    expect_table(schedule.posterior_log_variance(), name + ".posterior_log_variance_clipped");
    expect_table(schedule.posterior_mean_x0(), name + ".posterior_mean_coef1");
    expect_table(schedule.posterior_mean_xt(), name + ".posterior_mean_coef2");
  }
}

TEST_F(ScheduleFixture, RespacingTakesGuidedDiffusionsSteps) {
  for (const std::string spec : {"ddim200", "ddim50", "100", "10,15,20"}) {
    const auto theirs = table<std::int64_t>("respace." + spec, DType::i64);
    const Schedule schedule = Schedule::linear().respace(spec);
    const std::vector<std::int64_t> mine(schedule.timesteps().begin(), schedule.timesteps().end());
    EXPECT_EQ(mine, theirs) << spec;
  }
}

// Whatever is kept, the noise level at a kept step is the original one: only the way there has fewer steps.
TEST(Schedule, RespacingKeepsTheNoiseLevels) {
  const Schedule full = Schedule::cosine();
  for (const Schedule& spaced : {full.respace("ddim200"), full.respace("37"), full.respace("5,0,3"),
                                 full.respace_power(60, 2.5), full.keep({0, 1, 500, 999})})
    for (int i = 0; i < spaced.steps(); ++i) {
      const auto original = static_cast<std::size_t>(spaced.timestep(i));
      const double expected = full.alpha_bar()[original];
      EXPECT_NEAR(spaced.alpha_bar()[static_cast<std::size_t>(i)], expected, 1e-14 + 1e-8 * expected);
    }
}

TEST(Schedule, RespacingTwiceNamesTheOriginalTimesteps) {
  const Schedule twice = Schedule::linear().respace("ddim200").respace("ddim20");
  EXPECT_EQ(twice.timesteps(), Schedule::linear().respace("ddim20").timesteps());
}

TEST(Schedule, TheWholeRangeIsTheScheduleItself) {
  const Schedule full = Schedule::linear(), same = full.respace("1000");
  ASSERT_EQ(same.timesteps(), full.timesteps());
  for (std::size_t i = 0; i < 1000; ++i) EXPECT_NEAR(same.beta()[i], full.beta()[i], 1e-14);
}

TEST(Schedule, PowerLawKeepsBothEndsAndIsDenserAtLowNoise) {
  const Schedule full = Schedule::linear();
  for (const double power : {0.5, 1.0, 2.0, 7.0})
    for (const int count : {2, 3, 50, 999, 1000}) {
      const std::vector<int> steps = full.respace_power(count, power).timesteps();
      ASSERT_EQ(steps.size(), static_cast<std::size_t>(count));
      EXPECT_EQ(steps.front(), 0);
      EXPECT_EQ(steps.back(), 999);
      EXPECT_TRUE(std::is_sorted(steps.begin(), steps.end(), std::less_equal<>()))
          << "distinct and ascending";
    }
  const std::vector<int> even = full.respace_power(100, 1).timesteps();
  EXPECT_EQ(even, full.respace("100").timesteps());
  const std::vector<int> dense = full.respace_power(101, 2).timesteps();
  EXPECT_EQ(dense[50], 250);  // half way along, a quarter of the range
  EXPECT_EQ(full.respace_power(1, 2).timesteps(), std::vector<int>{999});
}

TEST(Schedule, EveryNumberIsFinite) {
  for (const Schedule& schedule : {Schedule::cosine(), Schedule::linear(21), Schedule::cosine(1),
                                   Schedule::linear().respace("1"), Schedule::linear().keep({999})})
    for (const auto* values :
         {&schedule.beta(), &schedule.alpha_bar(), &schedule.posterior_variance(),
          &schedule.posterior_log_variance(), &schedule.posterior_mean_x0(), &schedule.posterior_mean_xt()})
      EXPECT_TRUE(std::all_of(values->begin(), values->end(), [](double v) { return std::isfinite(v); }));
}

TEST(Schedule, BadRequestsGiveASentenceThatNamesThem) {
  const Schedule full = Schedule::linear();
  for (const char* spec :
       {"", "ddim", "ddim0", "ddim3x", "ddim300", "ddim1001", "ddim-5", "abc", "10,,20", "10,", "-5", "1001",
        "500,400,300", "0", "0,0", "1e2", " 100", "99999999999999999999"}) {
    try {
      full.respace(spec);
      ADD_FAILURE() << "'" << spec << "' was accepted";
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find(spec), std::string::npos) << error.what();
    }
  }
  EXPECT_THROW(Schedule::linear(0), Error);
  EXPECT_THROW(Schedule::linear(20), Error);
  EXPECT_THROW(Schedule::cosine(-1), Error);
  EXPECT_THROW(Schedule::named("sigmoid"), Error);
  EXPECT_THROW(full.respace_power(0, 1), Error);
  EXPECT_THROW(full.respace_power(1001, 1), Error);
  EXPECT_THROW(full.respace_power(10, 0), Error);
  EXPECT_THROW(full.respace_power(10, std::nan("")), Error);
  EXPECT_THROW(full.keep({}), Error);
  EXPECT_THROW(full.keep({3, 3}), Error);
  EXPECT_THROW(full.keep({-1}), Error);
  EXPECT_THROW(full.keep({1000}), Error);
}

}  // namespace
}  // namespace dpg
