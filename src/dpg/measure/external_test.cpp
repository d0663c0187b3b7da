// A program as an operator: it works, and it survives every way in which the program can fail.
#include "dpg/measure/external.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <torch/torch.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <filesystem>
#include <thread>

#include "dpg/core/error.h"
#include "dpg/measure/catalog.h"

namespace dpg {
namespace {

const ImageShape kShape = {3, 8, 6};

ExternalOptions program(const std::string& behaviour, double timeout = 20) {
  return {std::string(DPG_TEST_PROGRAM) + " " + behaviour, timeout, 0};
}

std::string failure_of(const Operator& a, const Tensor& x) {
  try {
    a.apply(x);
  } catch (const Error& error) {
    return error.what();
  }
  return "no failure";
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

int open_descriptors() {
  return static_cast<int>(std::distance(std::filesystem::directory_iterator("/proc/self/fd"), {}));
}

class ExternalOperator : public testing::Test {
 protected:
  void SetUp() override { descriptors_ = open_descriptors(); }
  // Whatever happened: no zombie, no open pipe.
  void TearDown() override {
    EXPECT_EQ(waitpid(-1, nullptr, WNOHANG), -1);
    EXPECT_EQ(errno, ECHILD);
    EXPECT_EQ(open_descriptors(), descriptors_);
  }
  int descriptors_ = 0;
  const Tensor x_ = torch::rand({4, 3, 8, 6}) * 2 - 1;
};

TEST_F(ExternalOperator, AppliesTheProgramToEveryPicture) {
  const auto a = make_external(kShape, program("well"));
  EXPECT_STREQ(kind_name(*a), "black box");
  for (int round = 0; round < 3; ++round) EXPECT_TRUE(torch::equal(a->apply(x_), x_ / 2));
  EXPECT_TRUE(torch::equal(a->to(torch::kCPU)->apply(x_), x_ / 2));
}

TEST_F(ExternalOperator, FindsTheShapeOfTheMeasurement) {
  const auto a = make_external(kShape, program("sum"));
  EXPECT_EQ(a->output_shape(), std::vector<std::int64_t>{1});
  EXPECT_TRUE(torch::allclose(a->apply(x_).flatten(), x_.flatten(1).sum(1) / 2, 1e-4, 1e-5));
}

TEST_F(ExternalOperator, IsBuiltFromItsTextAndNeedsNoShell) {
  const auto a =
      make_operator("exec:cat", {kShape, 0, {0}});  // a request and its answer look alike: the identity
  EXPECT_TRUE(torch::equal(a->apply(x_), x_));
  EXPECT_EQ(make_operator(a->spec(), {kShape, 0, {0}})->spec(), a->spec());
  const auto shell = make_operator("exec:\"sh -c 'cat | cat'\"", {kShape, 0, {0}});
  EXPECT_TRUE(torch::equal(shell->apply(x_), x_));
  EXPECT_EQ(split_command("a 'b c' d\\ e \"f 'g\""), (std::vector<std::string>{"a", "b c", "d e", "f 'g"}));
  EXPECT_THROW(split_command("a 'b"), Error);
}

TEST_F(ExternalOperator, LargeBatchesDoNotDeadlock) {
  const Tensor many = torch::rand({500, 3, 64, 64});  // 24 MB each way, far more than a pipe holds
  for (const std::string behaviour : {"well", "stream"}) {
    const auto a = make_external({3, 64, 64}, program(behaviour, 60));
    EXPECT_TRUE(torch::equal(a->apply(many), many / 2)) << behaviour;
  }
}

TEST_F(ExternalOperator, ChatterOnStderrDoesNotBlock) {
  const auto a = make_external(kShape, program("chatter"));
  for (int round = 0; round < 3; ++round) EXPECT_TRUE(torch::equal(a->apply(x_), x_ / 2));
}

TEST_F(ExternalOperator, DeathIsReportedWithItsLastWords) {
  const auto a = make_external(kShape, program("exit"));
  const std::string message = failure_of(*a, x_);
  EXPECT_TRUE(contains(message, "exit code 3")) << message;
  EXPECT_TRUE(contains(message, "the lens fell off")) << message;
  // Started anew, it answers its first request again.
  EXPECT_TRUE(torch::equal(a->apply(x_), x_ / 2));
  EXPECT_TRUE(contains(failure_of(*make_external(kShape, program("abort")), x_), "signal 6"));
}

TEST_F(ExternalOperator, AHangEndsAtTheTimeout) {
  const auto start = std::chrono::steady_clock::now();
  const std::string message = failure_of(*make_external(kShape, program("hang", 0.3)), x_);
  EXPECT_TRUE(contains(message, "did not answer within 0.3 s")) << message;
  EXPECT_THROW(make_external({3, 512, 512}, program("deaf", 0.3)),
               Error);  // never reads: the pipe stays full
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(5));
}

TEST_F(ExternalOperator, WrongAnswersAreRefused) {
  const auto failure = [&](const std::string& behaviour) {
    return failure_of(*make_external(kShape, program(behaviour)), x_);
  };
  EXPECT_TRUE(contains(failure("shape"), "[4, 3, 8, 7] where [4, 3, 8, 6] is needed"));
  EXPECT_TRUE(contains(failure("huge"), "where [4, 3, 8, 6] is needed"));
  EXPECT_TRUE(contains(failure("type"), "'<f8' where float32"));
  EXPECT_TRUE(contains(failure("print"), "no NPY array: \"processing...")) << failure("print");
  EXPECT_TRUE(contains(failure("half"), "exit code 0"));
  EXPECT_TRUE(contains(failure("nan"), "NaN"));
}

TEST_F(ExternalOperator, TwoAnswersForOneRequestAreNoticed) {
  const auto a = make_external(kShape, program("twice"));
  const std::string now = failure_of(*a, x_);
  // Noticed at once, or at the next request when the second answer came late; give it the time to come.
  if (now == "no failure") std::this_thread::sleep_for(std::chrono::milliseconds(500));
  const std::string later = now == "no failure" ? failure_of(*a, x_) : now;
  EXPECT_TRUE(contains(later, "more than one array") || contains(later, "without being asked")) << later;
}

TEST_F(ExternalOperator, AProgramThatIsNotThereIsNamed) {
  for (const std::string command : {"./no-such-program", "no-such-program-in-path", "/dev/null"}) {
    try {
      make_external(kShape, {command, 5, 0});
      ADD_FAILURE() << command;
    } catch (const Error& error) {
      EXPECT_TRUE(contains(error.what(), command)) << error.what();
    }
  }
  // Leaves without a word, so that writing to it meets a closed pipe.
  EXPECT_THROW(make_external({3, 256, 256}, {"true", 5, 0}), Error);
}

TEST_F(ExternalOperator, BudgetCountsPictures) {
  ExternalOptions options = program("well");
  options.budget = 10;
  const auto a = make_external(kShape, options);
  a->apply(x_);
  a->to(torch::kCPU)->apply(x_);  // copies share the budget
  const std::string message = failure_of(*a, x_);
  EXPECT_TRUE(contains(message, "10 pictures") && contains(message, "8 were asked")) << message;
  a->apply(x_.slice(0, 0, 2));  // what is left can still be used
}

TEST_F(ExternalOperator, ManyThreadsMayAsk) {
  const auto a = make_external(kShape, program("well"));
  std::vector<std::thread> threads;
  std::atomic<int> right = 0;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      for (int i = 0; i < 20; ++i) {
        const Tensor x = torch::full({1 + t, 3, 8, 6}, 0.01 * (t + i));
        right += torch::equal(a->apply(x), x / 2);
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(right, 80);
}

TEST_F(ExternalOperator, CopiesShareARequest) {
  ExternalOptions options = program("well");
  options.jobs = 3;
  const auto a = make_external(kShape, options);
  for (const std::int64_t pictures : {1, 2, 3, 4, 11}) {
    const Tensor x = torch::rand({pictures, 3, 8, 6});
    EXPECT_TRUE(torch::equal(a->apply(x), x / 2)) << pictures;
  }
  EXPECT_EQ(make_operator(a->spec(), {kShape, 0, {0}})->spec(), a->spec());

  options.command = program("pid").command;
  const Tensor who = make_external(kShape, options)->apply(torch::rand({7, 3, 8, 6})).flatten();
  EXPECT_EQ(std::get<0>(torch::_unique(who)).numel(), 3) << who;      // three copies,
  EXPECT_TRUE(torch::equal(who.slice(0, 0, 3), who[0].expand({3})));  // each with neighbours: 3, 2 and 2
}

TEST_F(ExternalOperator, ACopyThatFailsIsStartedAnew) {
  ExternalOptions options = program("ones");
  options.jobs = 2;
  const auto a = make_external(kShape, options);
  Tensor x = torch::zeros({4, 3, 8, 6});
  x[2] = 1;  // the second copy's first
  EXPECT_TRUE(contains(failure_of(*a, x), "exit code 4"));
  EXPECT_TRUE(torch::equal(a->apply(x * 0), x * 0));
}

TEST_F(ExternalOperator, ExamplesFollowTheProtocol) {
  const std::string examples = std::string(DPG_SOURCE_DIR) + "/examples/";
  const Tensor x = torch::rand({3, 3, 16, 16}) * 2 - 1;
  const auto copy = make_external({3, 16, 16}, {"sh '" + examples + "forward.sh' cp", 20, 0});
  for (int round = 0; round < 2; ++round) EXPECT_TRUE(torch::equal(copy->apply(x), x));
  if (std::system("python3 -c '' > /dev/null 2>&1") != 0)
    GTEST_SKIP() << "no python3 to run examples/forward.py";
  const auto half = make_external({3, 16, 16}, {"python3 '" + examples + "forward.py'", 20, 0});
  EXPECT_EQ(half->output_shape(), (std::vector<std::int64_t>{3, 8, 8}));
  const Tensor expected = torch::avg_pool2d(x, 2).clamp(-0.5, 0.5);
  for (int round = 0; round < 2; ++round) EXPECT_TRUE(torch::allclose(half->apply(x), expected, 1e-5, 1e-6));
}

}  // namespace
}  // namespace dpg
