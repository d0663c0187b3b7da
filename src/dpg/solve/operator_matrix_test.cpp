// Every method with every operator: it restores, or refuses with a sentence, exactly as the catalogues say.
#include <gtest/gtest.h>
#include <torch/torch.h>
#include <unistd.h>

#include <filesystem>
#include <set>

#include "dpg/core/test_folder.h"
#include "dpg/image/npy.h"
#include "dpg/measure/jpeg_round_trip.h"
#include "dpg/measure/spec.h"
#include "dpg/solve/catalog.h"
#include "dpg/solve/settings.h"
#include "dpg/solve/test_problem.h"

namespace dpg {
namespace {

class OperatorMatrix : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::temp_directory_path() / ("dpg_operator_matrix_" + std::to_string(::getpid()));
    std::filesystem::create_directories(folder_);
    const std::vector<std::int64_t> shape = {3, 3};
    const std::vector<float> kernel = {0, 1, 0, 1, 4, 1, 0, 1, 0};
    write_npy(folder_ / "kernel.npy", shape, kernel);
  }
  void TearDown() override { remove_folder(folder_); }

  // Each operator of the catalogue, and what changes its kind.
  std::vector<std::string> operators() const {
    const std::string kernel = "kernel:" + (folder_ / "kernel.npy").string();
    std::vector<std::string> list = {"inpaint:box",
                                     "inpaint:random,removed=0.5",
                                     "uncrop",
                                     "sr:2",
                                     "sr-bicubic:2",
                                     "blur:sigma=1,size=3",
                                     "blur:sigma=1,size=3,boundary=circular",
                                     "motion:size=3",
                                     "motion:size=3,boundary=circular",
                                     kernel,
                                     kernel + ",boundary=circular",
                                     "gray",
                                     "identity",
                                     "cs:ratio=0.5",
                                     "phase",
                                     "nonlinear-blur:size=3",
                                     "hdr",
                                     "quantize:bits=3",
                                     "exec:cat",
                                     "blur:sigma=1,size=3 | sr:2",
                                     "sr:2 | quantize:bits=8"};
    if (jpeg_available()) list.insert(list.end(), {"jpeg:10", "jpeg:10,gradient=straight"});
    return list;
  }

  std::filesystem::path folder_;
};

std::unique_ptr<Solver> quick(const std::string& method) {
  Json settings = {{"steps", 4}};
  if (method == "daps") settings.update({{"ode_steps", 2}, {"langevin_steps", 3}});
  if (method == "enkg") settings.update({{"particles", 6}, {"ode_steps", 2}});
  if (method == "dpg") settings["mc"] = 8;
  return make_solver(method, settings);
}

bool keeps_the_size(const Operator& A) {
  return A.output_shape() == std::vector<std::int64_t>{3, kTestSide, kTestSide};
}

TEST_F(OperatorMatrix, AMethodRestoresWhatItTakesAndRefusesTheRest) {
  std::set<std::string> tried;
  int restored = 0, refused = 0;
  for (const std::string& op : operators()) {
    for (const Spec& spec : parse_specs(op)) tried.insert(spec.name);
    const TestProblem problem = faint_problem(op);
    const Operator& A = *problem.m.A;
    for (const MethodInfo& method : method_catalog()) {
      const std::string which = method.name + " with " + op;
      const bool codec = !as_differentiable(A) && keeps_the_size(A);
      const auto solver = quick(method.name);
      if (takes(method, kind_name(A)) || (codec && takes(method, "encode and decode"))) {
        ++restored;
        Result result;
        ASSERT_NO_THROW(result = problem.solve(*solver)) << which;
        EXPECT_EQ(result.image.sizes(), problem.truth.sizes()) << which;
        EXPECT_TRUE(torch::isfinite(result.image).all().item<bool>()) << which;
        EXPECT_LE(result.image.abs().max().item<float>(), 1) << which;
      } else {
        ++refused;
        try {
          problem.solve(*solver);
          ADD_FAILURE() << which << " was not refused";
        } catch (const std::exception& error) {  // what is missing, and a method that would do
          const std::string text = error.what();
          EXPECT_NE(text.find("needs"), std::string::npos) << which << ": " << text;
          EXPECT_NE(text.find("--method"), std::string::npos) << which << ": " << text;
        }
      }
    }
  }
  for (const OperatorInfo& info : operator_catalog())
    EXPECT_TRUE(tried.count(info.name) || (info.name == "jpeg" && !jpeg_available())) << info.name;
  EXPECT_GT(restored, 150);
  EXPECT_GT(refused, 50);
}

}  // namespace
}  // namespace dpg
