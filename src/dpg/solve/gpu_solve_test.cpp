// Whole restorations on the GPU. Built with the GPU kernels only.
#include <c10/cuda/CUDAFunctions.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <nlohmann/json.hpp>

#include "dpg/measure/catalog.h"
#include "dpg/prior/step_recording.h"
#include "dpg/solve/catalog.h"

namespace dpg {
namespace {

class GpuSolve : public testing::Test {
 protected:
  void SetUp() override {
    if (!torch::cuda::is_available()) GTEST_SKIP() << "no GPU here";
  }
};

std::shared_ptr<const NetworkPrior> bundled(torch::Device device, const std::string& precision) {
  LoadOptions options;
  options.device = device;
  options.precision = precision;
  return load_prior(bundled_prior_path(), options);
}

Measurement measurement(const std::string& op, const std::vector<std::uint32_t>& images) {
  torch::manual_seed(3);
  const auto n = static_cast<std::int64_t>(images.size());
  const Tensor truth = torch::nn::functional::interpolate(torch::rand({n, 3, 8, 8}) * 2 - 1,
                                                          torch::nn::functional::InterpolateFuncOptions()
                                                              .size(std::vector<std::int64_t>{64, 64})
                                                              .mode(torch::kBilinear)
                                                              .align_corners(false));
  return measure(make_operator(op, {{3, 64, 64}, 4, images}), make_noise("gaussian:0.05"), truth, 4, images);
}

const char* const kOperators[] = {
    "sr:4", "blur:sigma=1.5,size=15", "blur:sigma=1.5,size=15,boundary=circular",
    "inpaint:box,height=32,width=32,position=centre", "motion:size=15,intensity=0.5"};

// From the third step on nothing of a step waits for the card: the host runs ahead of it.
TEST_F(GpuSolve, StepsDoNotWaitForTheCard) {
  const auto prior = bundled(torch::kCUDA, "bf16");
  const std::vector<std::uint32_t> images{0, 1};
  for (const char* settings :
       {R"({"steps": 12, "estimator": "mc", "mc": 500, "strength": 20})", R"({"steps": 12})"})
    for (const char* op : kOperators) {
      const auto solver = make_solver("dpg", nlohmann::ordered_json::parse(settings));
      using c10::cuda::SyncDebugMode;
      const auto watch = [](SyncDebugMode mode) { c10::cuda::warning_state().set_sync_debug_mode(mode); };
      EXPECT_NO_THROW(solver->solve(measurement(op, images), *prior, Rng(1), images,
                                    [&](const StepRecord& r) {
                                      if (r.done == 4) watch(SyncDebugMode::L_ERROR);
                                      if (r.done == 8) watch(SyncDebugMode::L_DISABLED);
                                      return Next::go_on;
                                    }))
          << op << ", " << settings;
      watch(SyncDebugMode::L_DISABLED);
    }
}

// The GPU draws the CPU's numbers and computes the same formulas: few steps end close together.
TEST_F(GpuSolve, EveryMethodGivesWhatTheCpuGives) {
  const auto cpu = bundled(torch::kCPU, "fp32"), gpu = bundled(torch::kCUDA, "fp32");
  const std::vector<std::uint32_t> images{0, 1};
  for (const MethodInfo& method : method_catalog()) {
    nlohmann::ordered_json settings = {{"steps", 3}};
    if (method.name == "daps") settings.update({{"ode_steps", 2}, {"langevin_steps", 3}});
    if (method.name == "enkg") settings.update({{"particles", 4}, {"ode_steps", 2}});
    const auto solver = make_solver(method.name, settings);
    for (const char* op : {"sr:4", "blur:sigma=1.5,size=15,boundary=circular"}) {
      const Measurement m = measurement(op, images);
      const Tensor here = solver->solve(m, *cpu, Rng(1), images).image;
      const Tensor there = solver->solve(m, *gpu, Rng(1), images).image.cpu();
      EXPECT_LT(((here - there).norm() / here.norm()).item<double>(), 2e-3) << method.name << ", " << op;
    }
  }
}

// A step as one launch does what its parts do, for every linear operator and every way to be guided. Problems
// follow each other without a pause: a graph that is left over from the last one must not be taken for the
// next.
TEST_F(GpuSolve, StepsAsOneLaunchGiveTheSameBits) {
  const auto prior = bundled(torch::kCUDA, "bf16");
  const std::vector<std::uint32_t> images{0, 1};
  std::vector<std::string> operators(std::begin(kOperators), std::end(kOperators));
  for (const char* op : {"identity", "gray", "uncrop", "sr-bicubic:4", "inpaint:random", "cs:ratio=0.25",
                         "blur:sigma=1.5,size=15 | sr:2"})
    operators.push_back(op);
  const std::pair<const char*, const char*> ways[] = {
      {"dpg", R"({"steps": 7})"},
      {"dpg", R"({"steps": 7, "sampler": "ddim", "eta": 0.5, "passes": 1, "momentum": 0.5})"},
      {"dpg", R"({"steps": 7, "estimator": "mc", "mc": 50, "strength": 20})"},
      {"dps", R"({"steps": 7})"}};
  for (const std::string& op : operators)
    for (const auto& [method, settings] : ways) {
      const auto solver = make_solver(method, nlohmann::ordered_json::parse(settings));
      const Measurement m = measurement(op, images);
      set_whole_step_launches(true);
      const Result whole = solver->solve(m, *prior, Rng(1), images);
      set_whole_step_launches(false);
      const Result parts = solver->solve(m, *prior, Rng(1), images);
      set_whole_step_launches(true);
      const std::string which = op + ", " + method + " " + settings;
      EXPECT_TRUE(torch::equal(whole.image, parts.image)) << which;
      ASSERT_EQ(whole.history.residual.size(), parts.history.residual.size()) << which;
      for (std::size_t i = 0; i < parts.history.residual.size(); ++i)
        EXPECT_TRUE(torch::equal(whole.history.residual[i], parts.history.residual[i])) << which << ", " << i;
      EXPECT_EQ(whole.cost.reverse_passes, parts.cost.reverse_passes) << which;
    }
}

// What a step cannot do as one launch is told as an error, and the next run is none the worse for it.
TEST_F(GpuSolve, AStepThatLooksAtAValueCannotBeOneLaunch) {
  const Tensor x = torch::ones({4}, torch::kCUDA);
  EXPECT_ANY_THROW(run_as_one_launch(torch::kCUDA, [&] { (void)(x + 1).sum().item<float>(); }));
  Tensor y;
  run_as_one_launch(torch::kCUDA, [&] { y = x + 1; });
  EXPECT_EQ(y.sum().item<float>(), 8);
  for (int i = 0; i < 3; ++i)
    run_as_one_launch(torch::kCUDA, [&] { y = y * (i + 2); });  // updates the same graph
  EXPECT_EQ(y.sum().item<float>(), 8 * 24);
}

TEST_F(GpuSolve, TheSameSeedGivesTheSameBits) {
  const auto prior = bundled(torch::kCUDA, "bf16");
  const std::vector<std::uint32_t> images{0, 1};
  const auto solver = make_solver("dpg", {{"steps", 8}});
  const Measurement m = measurement("sr:4", images);
  const Tensor once = solver->solve(m, *prior, Rng(1), images).image;
  // Recorded by now, and the first calls were not: from here on every run is replayed.
  const Tensor twice = solver->solve(m, *prior, Rng(1), images).image;
  const Tensor thrice = solver->solve(m, *prior, Rng(1), images).image;
  EXPECT_TRUE(torch::equal(twice, thrice));
  EXPECT_TRUE(torch::equal(once, twice));
}

}  // namespace
}  // namespace dpg
