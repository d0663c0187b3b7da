// The policy gradient against the authors' program, against its closed forms, and the streamed form against a
// plain one.
#include "dpg/solve/policy_gradient.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cmath>
#include <filesystem>
#include <limits>

#include "dpg/core/error.h"
#include "dpg/measure/catalog.h"
#include "dpg/solve/coarse_noise.h"
#include "dpg/tensor/convert.h"

namespace dpg {
namespace {

double cosine(const Tensor& a, const Tensor& b) {
  return (a * b).sum().item<double>() / (a.norm().item<double>() * b.norm().item<double>());
}

double relative_error(const Tensor& a, const Tensor& truth) {
  return ((a - truth).norm() / truth.norm()).item<double>();
}

// Two images of 3 x 8 x 8 in one batch, a mask, a blur or a non-linear operator, and a measurement.
struct Problem {
  std::shared_ptr<const Operator> A;
  std::shared_ptr<const NoiseModel> noise;
  Tensor y, mu, prediction;
  std::vector<std::uint32_t> images = {3, 8};
  Rng rng{5};

  Problem(const std::string& op, const std::string& noise_spec, int side = 8)
      : A(make_operator(op, {{3, side, side}, 1, {0}})), noise(make_noise(noise_spec)) {
    const auto draw = [&](std::uint32_t step) {
      return 0.3 * normal_noise(rng, images, step, 0, {3, side, side});
    };
    y = measure(A, noise, draw(1), 2, images).y;
    mu = draw(2);
    prediction = A->apply(mu);
  }

  PolicyStep step(RewardRule rule = RewardRule::code) const {
    return {*A, *noise,     y,
            mu, prediction, next_scale(rule, noise->loss(), y - prediction, mu.numel() / 2, 0, {})};
  }
  NoiseSource source(std::uint32_t at = 0) const {
    return [this, at](std::int64_t first, std::int64_t count) {
      return normal_samples(rng, images, at, static_cast<std::uint32_t>(1 + first), count,
                            mu.sizes().slice(1));
    };
  }
};

// The definition, sample by sample in double precision.
Tensor plain_policy_gradient(const PolicyStep& s, const Tensor& xi, std::int64_t samples) {
  const std::int64_t n = s.mu.size(0);
  Tensor v = torch::zeros_like(s.mu, torch::kDouble);
  for (std::int64_t i = 0; i < n; ++i) {
    std::vector<double> p;
    const double Z = s.scale.Z[i].item<double>(), r = s.scale.r[i].item<double>();
    const auto row = [&](const Tensor& t) { return t.slice(0, i, i + 1); };
    const double base = s.noise.misfit(row(s.y), row(s.prediction)).item<double>();
    double total = 0;
    for (std::int64_t k = 0; k < samples; ++k) {
      const Tensor x = row(s.mu) + r * xi.slice(0, k * n + i, k * n + i + 1);
      p.push_back(std::exp(-(s.noise.misfit(row(s.y), s.A.apply(x)).item<double>() - base) / Z));
      total += p.back();
    }
    for (std::int64_t k = 0; k < samples; ++k) {
      const double others = (total - p[static_cast<std::size_t>(k)]) / static_cast<double>(samples - 1);
      v[i] -= (p[static_cast<std::size_t>(k)] - others) * xi[k * n + i].to(torch::kDouble) /
              (r * static_cast<double>(samples));
    }
  }
  return v;
}

TEST(PolicyGradient, StreamedIsTheDefinition) {
  for (const std::string op : {"inpaint:box,height=4,width=4", "blur:sigma=1,size=5", "quantize:4", "hdr"})
    for (const std::string noise : {"gaussian:0.05", "poisson:1"}) {
      const Problem problem(op, noise);
      const PolicyStep step = problem.step();
      const int samples = 40;
      const Tensor xi = problem.source()(0, samples);
      const Tensor expected = plain_policy_gradient(step, xi, samples);
      // Handed out in uneven pieces: the running sums have to be carried from piece to piece.
      EXPECT_LT(relative_error(streamed_policy_gradient(step, samples, false, problem.source()), expected),
                2e-4)
          << op << ", " << noise;
      const Tensor both = torch::cat({xi, -xi});
      EXPECT_LT(relative_error(streamed_policy_gradient(step, samples, true, problem.source()),
                               plain_policy_gradient(step, both, 2 * samples)),
                2e-4)
          << op << ", " << noise << ", pairs";
    }
}

// With the paper's text every reward of 3 x 32 x 32 pictures is below the smallest float: the common factor
// must not be lost.
TEST(PolicyGradient, TextRewardsDoNotUnderflow) {
  const Problem problem("identity", "gaussian:0.05", 32);
  const PolicyStep step = problem.step(RewardRule::text);
  const Tensor v = streamed_policy_gradient(step, 64, false, problem.source());
  EXPECT_TRUE(torch::isfinite(v).all().item<bool>());
  EXPECT_GT(v[0].norm().item<double>(), 0);
  EXPECT_GT(v[1].norm().item<double>(), 0);
  // The samples alone would underflow.
  const double typical = (step.scale.r.square() * (3 * 32 * 32) / step.scale.Z)[0].item<double>();
  EXPECT_GT(typical, 1000);
}

TEST(PolicyGradient, EachImageIsOnItsOwn) {
  const Problem both("blur:sigma=1,size=5", "poisson:1");
  const Tensor v = streamed_policy_gradient(both.step(), 20, true, both.source());
  Problem second = both;
  second.images = {8};
  second.y = both.y.slice(0, 1, 2), second.mu = both.mu.slice(0, 1, 2);
  second.prediction = both.prediction.slice(0, 1, 2);
  const PolicyStep step{
      *second.A,
      *second.noise,
      second.y,
      second.mu,
      second.prediction,
      next_scale(RewardRule::code, Loss::absolute, second.y - second.prediction, 192, 0, {})};
  EXPECT_LT(relative_error(streamed_policy_gradient(step, 20, true, second.source()), v.slice(0, 1, 2)),
            1e-5);
}

// The direction's angle to the exact one closes as sqrt(d / N), and pairs do not change where it goes.
TEST(PolicyGradient, ConvergesToTheExactOne) {
  const Problem problem("blur:sigma=1,size=5", "gaussian:0.05");
  const PolicyStep step = problem.step();
  const Tensor exact = exact_policy_gradient(step, std::numeric_limits<double>::infinity());
  const double d = 3 * 8 * 8;
  for (const bool pairs : {false, true})
    for (const int samples : {400, 6400, 102400}) {
      const Tensor v = streamed_policy_gradient(step, samples, pairs, problem.source());
      // Noise in each of the d components. Without pairs the even part of the reward adds to it.
      const double noise = d / samples, expected = 1 / std::sqrt(1 + noise);
      for (int i = 0; i < 2; ++i) {
        EXPECT_NEAR(cosine(v[i], exact[i]), expected,
                    pairs ? 0.12 * (1 - expected) + 0.01 : 0.5 * (1 - expected) + 0.02)
            << samples << (pairs ? " in pairs" : "");
      }
    }
}

// lambda = Z / (2 r^2) is 1/2 for the paper's text: there v is the solution of a least-squares problem. Few
// values, so that the rewards differ little enough to be sampled.
TEST(PolicyGradient, TextRewardsConvergeToTheRegularisedOne) {
  const auto A = make_operator("blur:sigma=0.6,size=3,boundary=circular", {{1, 2, 2}, 1, {0}});
  const auto noise = make_noise("gaussian:0.05");
  const Tensor mu = torch::tensor({0.1f, -0.3f, 0.2f, 0.4f}).view({1, 1, 2, 2});
  const Tensor y = torch::tensor({0.5f, 0.3f, -0.4f, 0.1f}).view({1, 1, 2, 2}), prediction = A->apply(mu);
  const PolicyStep step{
      *A, *noise, y, mu, prediction, next_scale(RewardRule::text, Loss::squared, y - prediction, 4, 0, {})};
  const Rng rng(1);
  const std::vector<std::uint32_t> images = {0};
  const Tensor v = streamed_policy_gradient(step, 400000, false, [&](std::int64_t first, std::int64_t count) {
    return normal_samples(rng, images, 0, static_cast<std::uint32_t>(1 + first), count, {1, 2, 2});
  });
  EXPECT_GT(cosine(v, exact_policy_gradient(step, 0.5)), 0.9995);
  EXPECT_LT(cosine(exact_policy_gradient(step, 1e6), exact_policy_gradient(step, 0.5)), 0.9995);
}

// In law the collapsed form is the streamed one: same mean, same spread along A^T e and across it.
TEST(PolicyGradient, CollapsedHasTheLawOfTheStreamed) {
  const Problem problem("blur:sigma=1,size=5", "gaussian:0.05", 16);
  const PolicyStep step = problem.step();
  const Tensor exact = exact_policy_gradient(step, std::numeric_limits<double>::infinity());
  const Tensor direction = exact[0] / exact[0].norm();
  const int samples = 32, runs = 1500;
  std::vector<double> along[2], across[2];
  for (std::uint32_t run = 0; run < runs; ++run)
    for (int form = 0; form < 2; ++form) {
      const Tensor v = form == 0 ? streamed_policy_gradient(step, samples, true, problem.source(run))
                                 : collapsed_policy_gradient(
                                       step, normal_noise(problem.rng, problem.images, run, 77, {samples}),
                                       normal_noise(problem.rng, problem.images, run, 78, {3, 16, 16}));
      const double a = (v[0] * direction).sum().item<double>();
      along[form].push_back(a);
      across[form].push_back((v[0] - a * direction).norm().item<double>());
    }
  const auto mean = [](const std::vector<double>& x) {
    double sum = 0;
    for (const double value : x) sum += value;
    return sum / static_cast<double>(x.size());
  };
  const auto deviation = [&](const std::vector<double>& x) {
    double sum = 0;
    const double m = mean(x);
    for (const double value : x) sum += (value - m) * (value - m);
    return std::sqrt(sum / static_cast<double>(x.size()));
  };
  const double root = std::sqrt(static_cast<double>(runs));
  // The even part, held at its mean in the collapsed form, is a common factor of exp(-r^2 tr(A^T A) / Z).
  const double trace = step.A.apply(torch::eye(768).view({768, 3, 16, 16})).square().sum().item<double>();
  const double factor = std::exp(-(step.scale.r.square() / step.scale.Z)[0].item<double>() * trace);
  EXPECT_NEAR(mean(along[0]), factor * mean(along[1]), 5 * deviation(along[0]) / root);
  EXPECT_NEAR(mean(across[0]), factor * mean(across[1]),
              5 * deviation(across[0]) / root + 0.01 * mean(across[0]));
  EXPECT_NEAR(deviation(along[0]), factor * deviation(along[1]), 0.1 * deviation(along[0]));
  EXPECT_NEAR(deviation(across[0]), factor * deviation(across[1]), 0.1 * deviation(across[0]));
}

// The guess never makes the direction worse by much, and where the residual is a good one makes it far
// better.
TEST(PolicyGradient, AGuessHelpsWhereItIsGood) {
  const auto cosines = [](const std::string& op) {
    const Problem problem(op, "gaussian:0.05", 32);
    const PolicyStep step = problem.step();
    const Tensor exact = exact_policy_gradient(step, std::numeric_limits<double>::infinity());
    const Tensor sampled = streamed_policy_gradient(step, 200, false, problem.source());
    const Tensor guessed = guessed_policy_gradient(step, 200, false, problem.source(), 3 * 32 * 32);
    // In the same units: the slope of the rewards, 2 A^T e / Z.
    EXPECT_NEAR(guessed[0].norm().item<double>() / (2 * exact[0].norm() / step.scale.Z[0]).item<double>(), 1,
                0.5)
        << op;
    return std::pair{cosine(sampled[0], exact[0]), cosine(guessed[0], exact[0])};
  };
  for (const std::string op : {"identity", "inpaint:box,height=16,width=16", "blur:sigma=0.7,size=5"}) {
    const auto [sampled, guessed] = cosines(op);
    EXPECT_GT(guessed, 0.9) << op;
    EXPECT_LT(sampled, 0.4) << op;
  }
}

TEST(PolicyGradient, RefusesWhatItCannotDo) {
  const Problem curved("hdr", "gaussian:0.05"), absolute("blur:1", "poisson:1");
  EXPECT_THROW(exact_policy_gradient(curved.step(), 1), Error);
  EXPECT_THROW(collapsed_policy_gradient(absolute.step(), torch::zeros({2, 1}), absolute.mu), Error);
  EXPECT_THROW(streamed_policy_gradient(curved.step(), 0, true, curved.source()), Error);
  EXPECT_THROW(streamed_policy_gradient(curved.step(), 1, false, curved.source()), Error);
}

TEST(RewardScale, FollowsTheTable) {
  const Tensor e = torch::tensor({3.0f, -4.0f}).view({1, 2});
  const RewardScale first = next_scale(RewardRule::code, Loss::squared, e, 100, 0, {});
  EXPECT_FLOAT_EQ(first.Z.item<float>(), 25);
  EXPECT_FLOAT_EQ(first.r.item<float>(), 0.25f);
  const RewardScale second = next_scale(RewardRule::code, Loss::squared, 2 * e, 100, 0, first);
  EXPECT_FLOAT_EQ(second.Z.item<float>(), 0.9f * 25 + 0.1f * 100);
  EXPECT_FLOAT_EQ(next_scale(RewardRule::code, Loss::squared, e, 100, 0.3, {}).r.item<float>(), 0.3f);
  const RewardScale l1 = next_scale(RewardRule::code, Loss::absolute, e, 100, 0, first);
  EXPECT_FLOAT_EQ(l1.Z.item<float>(), 7);
  EXPECT_FLOAT_EQ(l1.r.item<float>(), 0.07f);
  const RewardScale text = next_scale(RewardRule::text, Loss::squared, e, 100, 0, first);
  EXPECT_FLOAT_EQ(text.Z.item<float>(), 0.25f);
  EXPECT_FLOAT_EQ(text.r.item<float>(), 0.5f);
}

// Two consecutive steps of the authors' program with their noise, direction momentum included.
TEST(PolicyGradient, EqualsTheAuthorsProgram) {
  const std::filesystem::path file =
      std::filesystem::path(DPG_SHARED_DIR) / "fixtures/official-dpg-step.safetensors";
  if (!std::filesystem::exists(file)) GTEST_SKIP() << "needs " << file;
  const auto tensors = load_tensors(file);
  const auto A = make_operator("sr:4", {{3, 16, 16}, 0, {0}});
  const double momentum = 0.1 * 0.8;  // beta * t/T
  for (const std::string kind : {"gaussian", "poisson"}) {
    const auto noise = make_noise(kind == "gaussian" ? "gaussian:0.05" : "poisson:1");
    RewardScale scale;
    Tensor last;
    for (const std::string step_name : {"step0", "step1"}) {
      const auto get = [&](const std::string& name) {
        return tensors.at(kind + "." + step_name + "." + name);
      };
      const Tensor mu = get("mu"), y = get("y"), xi = get("xi"), prediction = A->apply(mu);
      EXPECT_NEAR((y - prediction).norm().item<double>(), get("residual_norm").item<double>(), 1e-5);
      scale = next_scale(RewardRule::code, noise->loss(), y - prediction, 768, 0, scale);
      EXPECT_NEAR(scale.Z.item<double>(), get("Z").item<double>(), 1e-5 * get("Z").item<double>());
      EXPECT_NEAR(scale.r.item<double>(), get("r").item<double>(), 1e-5 * get("r").item<double>());
      const Tensor v = streamed_policy_gradient(
          {*A, *noise, y, mu, prediction, scale}, xi.size(0), false,
          [&](std::int64_t first, std::int64_t count) { return xi.slice(0, first, first + count); });
      // The fixture's denoiser is one convolution; its transpose pulls v back.
      Tensor g = torch::conv_transpose2d(v, tensors.at(kind + ".W"), {}, 1, 1);
      g = last.defined() ? momentum * last + (1 - momentum) * g : g;
      last = g;
      // Double precision throughout is 1.02e-5 away from the second Poisson step: the fixture's own rounding.
      EXPECT_LT((g / g.norm() - get("direction")).abs().max().item<double>(),
                kind == "poisson" ? 1.1e-5 : 1e-5)
          << kind << " " << step_name;
    }
  }
}

TEST(CoarseNoise, HasUnitVarianceAndNoDetail) {
  const Rng rng(3);
  const std::vector<std::uint32_t> images = {0, 4};
  const ImageShape shape{3, 32, 32};
  const Tensor coarse = coarse_samples(rng, images, 0, 1, 1000, shape, 8, 8, torch::kCPU);
  EXPECT_EQ(coarse.sizes(), torch::IntArrayRef({2000, 3, 32, 32}));
  EXPECT_NEAR(coarse.square().mean().item<double>(), 1, 0.02);
  EXPECT_NEAR(coarse.mean().item<double>(), 0, 0.01);
  // Neighbours differ less than white noise's 2.
  EXPECT_LT((coarse.slice(3, 1) - coarse.slice(3, 0, 31)).square().mean().item<double>(), 0.2);
  EXPECT_TRUE(torch::equal(coarse_samples(rng, images, 0, 1, 3, shape, 32, 32, torch::kCPU),
                           normal_samples(rng, images, 0, 1, 3, {3, 32, 32})));
  EXPECT_EQ(coarse_side(128), 32);
  EXPECT_EQ(coarse_side(8), 4);
  EXPECT_EQ(coarse_side(3), 3);
}

}  // namespace
}  // namespace dpg
