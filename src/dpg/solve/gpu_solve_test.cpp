// Whole restorations on the GPU. Built with the GPU kernels only.
#include <c10/cuda/CUDAFunctions.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <nlohmann/json.hpp>

#include "dpg/measure/catalog.h"
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
