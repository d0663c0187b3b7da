// What makes an answer of a draw, each part against its definition.
#include "dpg/solve/answer.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cmath>

#include "dpg/solve/solver.h"
#include "dpg/solve/test_problem.h"

namespace dpg {
namespace {

constexpr double kPi = 3.14159265358979323846;

TEST(CoarsePart, KeepsWavesByTheirLength) {
  constexpr int kWide = 96;
  const Tensor place = torch::arange(kWide, torch::kFloat);
  for (const double sigma : {1.0, 2.0})
    for (const double waves : {1.0 / 32, 1.0 / 12, 1.0 / 6, 1.0 / 3}) {
      const Tensor wave = torch::cos(2 * kPi * waves * place);
      const double kept = std::exp(-2 * std::pow(kPi * sigma * waves, 2));
      for (const bool down : {false, true}) {
        const Tensor picture = (down ? wave.view({1, 1, kWide, 1}) : wave.view({1, 1, 1, kWide}))
                                   .expand({2, 3, kWide, kWide})
                                   .contiguous();
        // Away from the edges, where they are repeated.
        const auto inner = [](const Tensor& x) { return x.slice(2, 16, 80).slice(3, 16, 80); };
        const Tensor off = inner(coarse_part(picture, sigma)) - kept * inner(picture);
        EXPECT_LT(off.abs().max().item<double>(), 2e-3) << sigma << " " << waves << " " << down;
      }
    }
}

TEST(CoarsePart, KeepsWhatIsFlatOfAnySize) {
  for (const std::int64_t side : {1, 5, 40}) {
    const Tensor flat = torch::tensor({0.5f, -0.25f}).view({2, 1, 1, 1}).expand({2, 3, side, side + 1});
    const Tensor coarse = coarse_part(flat.contiguous(), 2);
    ASSERT_EQ(coarse.sizes(), flat.sizes());
    EXPECT_LT((coarse - flat).abs().max().item<double>(), 1e-6) << side;
  }
}

// Waves of one length, a draw whose own part is so many times as high as the mean: all of the way where it is
// short, and of the energy never more than the part that may be lost. A wave too fine to be coarse stays.
TEST(WayToMean, LosesNoMoreThanItMay) {
  constexpr int kWide = 96;
  constexpr double kMay = 0.1;
  const Tensor place = torch::arange(kWide, torch::kFloat);
  for (const double waves : {1.0 / 40, 1.0 / 12, 1.0 / 5, 1.0 / 2.5}) {
    const auto wave = [&](double phase) {
      return torch::cos(2 * kPi * waves * place + phase).view({1, 1, 1, kWide}).expand({1, 3, kWide, kWide});
    };
    const auto inner = [](const Tensor& x) { return x.slice(2, 24, 72).slice(3, 24, 72); };
    const auto energy = [&](const Tensor& x) { return inner(x).square().mean().item<double>(); };
    // A draw that is detail of its own beside the mean: across the mean, as draws are.
    for (const double own : {0.1, 0.3, 0.6, 1.0}) {
      const Tensor mean = wave(0).contiguous(), draw = (mean + own * wave(kPi / 2)).contiguous();
      const Tensor way = way_to_mean(draw, mean, kMay);
      const double lost = 1 - energy(draw + way) / energy(draw);
      const double gone = (inner(way) * inner(mean - draw)).mean().item<double>() / energy(mean - draw);
      EXPECT_LT(lost, 1.05 * kMay) << waves << " " << own;
      const double part = own * own / (1 + own * own), coarse = std::exp(-2 * std::pow(kPi * waves * 0.7, 2));
      const double expected = coarse / (1 + std::pow(part / kMay, 2));
      EXPECT_NEAR(gone, expected, 0.1 * expected + 0.02) << waves << " " << own;
    }
  }
}

// Each place goes by its own detail: what one half of a picture has does not lead the other.
TEST(WayToMean, GoesByWhatIsNearby) {
  const std::int64_t side = 128;
  const auto waves = [&](std::uint64_t seed) {
    return coarse_part(normal_noise(Rng(seed), std::vector<std::uint32_t>{0}, 0, 0, {3, side, side}), 3);
  };
  Tensor height = torch::full({1, 1, 1, side}, 0.02f);
  height.slice(3, side / 2) = 1;
  const Tensor draw = height * waves(2), mean = draw + 0.1 * waves(3);
  const Tensor way = way_to_mean(draw, mean, 0.1), whole = mean - draw;
  const auto gone = [&](std::int64_t from, std::int64_t to) {
    const Tensor a = whole.slice(3, from, to), b = way.slice(3, from, to);
    return ((a * b).sum() / a.square().sum()).item<double>();
  };
  EXPECT_LT(gone(0, 20), 0.1);     // the way is five times as long as what the draw has there
  EXPECT_GT(gone(108, 128), 0.9);  // a tenth
}

TEST(WayToMean, EndsAtTheDrawOrTheMean) {
  const TestProblem c("identity");
  const Tensor draw = c.truth, mean = 0.9 * c.truth;
  EXPECT_EQ(way_to_mean(draw, draw, 0.1).abs().max().item<double>(), 0);
  EXPECT_LT(relative_error(way_to_mean(draw, mean, 1), coarse_part(mean - draw, 0.7)), 2e-3);
  // Of any size, also without any detail.
  const Tensor flat = torch::full({1, 3, 5, 1}, 0.25f);
  EXPECT_LT(relative_error(way_to_mean(flat, flat + 0.02, 0.1), torch::full_like(flat, 0.02f)), 5e-3);
  EXPECT_EQ(way_to_mean(torch::zeros_like(flat), torch::zeros_like(flat), 0.1).abs().max().item<double>(), 0);
}

// Rows with residuals below and above the floor.
struct Fitted {
  explicit Fitted(const std::string& op) : c(op, "gaussian:0.1"), A(*as_linear(*c.m.A)) {
    x = 0.5 * c.truth;
    const Tensor exact = A.apply(x), noise = c.m.y - A.apply(c.truth);
    y = exact + noise * torch::tensor({0.5f, 0.9f, 1.6f}).view({3, 1, 1, 1});
    floors = residual_norm(noise, torch::zeros_like(noise));
  }
  Tensor ratio(const Tensor& picture) const {
    return residual_norm(y, A.apply(picture.clamp(-1, 1))) / floors;
  }
  TestProblem c;
  const LinearOperator& A;
  Tensor x, y, floors;
};

TEST(RaisedToFloor, PutsTheResidualThereFromBelow) {
  for (const std::string op : {"sr:2", "blur:sigma=1,size=5", "inpaint:box,height=4,width=4"}) {
    const Fitted f(op);
    const Tensor raised = raised_to_floor(f.A, f.y, f.floors, f.x);
    const Tensor before = f.ratio(f.x), after = f.ratio(raised);
    EXPECT_NEAR(before[0].item<double>(), 0.5, 1e-4) << op;
    EXPECT_NEAR(after[0].item<double>(), 1, 1e-3) << op;
    EXPECT_NEAR(after[1].item<double>(), 1, 1e-3) << op;
    EXPECT_TRUE(torch::equal(raised[2], f.x[2])) << op << ": a residual above the floor is left alone";
  }
}

// The shortest way there: for averages along A^T e, nothing of what A does not see.
TEST(RaisedToFloor, LeavesWhatTheDataDoNotSee) {
  const Fitted f("sr:2");
  const Tensor moved = raised_to_floor(f.A, f.y, f.floors, f.x) - f.x;
  EXPECT_GT(moved[0].norm().item<double>(), 0.1);
  const Tensor seen = f.A.pseudo_inverse(f.A.apply(moved));
  EXPECT_LT(relative_error(seen, moved), 1e-5);
}

// Values at the end of the range cannot move further, so the others have to.
TEST(RaisedToFloor, CountsWhatTheRangeHolds) {
  Fitted f("identity");
  f.x = torch::where(f.x > 0, torch::ones_like(f.x), f.x);
  f.y = f.x + 0.5 * (f.y - f.A.apply(0.5 * f.c.truth));
  const Tensor after = f.ratio(raised_to_floor(f.A, f.y, f.floors, f.x));
  EXPECT_NEAR(after[0].item<double>(), 1, 0.03);
}

TEST(RaisedToFloor, WithoutNoiseThereIsNothingToRaise) {
  const Fitted f("sr:2");
  EXPECT_TRUE(torch::equal(raised_to_floor(f.A, f.y, torch::zeros({3}), f.x), f.x));
  const Tensor exact = f.A.apply(f.x);  // and a residual of zero has no direction
  EXPECT_TRUE(torch::isfinite(raised_to_floor(f.A, exact, f.floors, f.x)).all().item<bool>());
}

// All of the way where the residual stays below the floor; otherwise to where it is on it, or no worse.
TEST(ShareWithinFloor, EndsWhereTheResidualWouldRise) {
  for (const std::string op : {"sr:2", "blur:sigma=1,size=5", "inpaint:box,height=4,width=4"}) {
    const Fitted f(op);
    const Tensor away = normal_noise(Rng(6), f.c.images, 0, 0, {3, kTestSide, kTestSide});
    const auto share = [&](const Tensor& way) { return share_within_floor(f.A, f.y, f.floors, f.x, way); };
    EXPECT_TRUE(torch::equal(share(1e-4 * away).flatten().slice(0, 0, 2), torch::ones({2}))) << op;
    const Tensor far = share(10 * away), after = f.ratio(f.x + far * 10 * away), before = f.ratio(f.x);
    for (int i = 0; i < 2; ++i) {
      EXPECT_LT(far[i].item<double>(), 1) << op;
      EXPECT_NEAR(after[i].item<double>(), 1, 1e-3) << op;
    }
    EXPECT_LT(after[2].item<double>(), before[2].item<double>() + 1e-4) << op << ": above the floor";
  }
}

TEST(ShareWithinFloor, IsAllOfItWhereTheDataDoNotSee) {
  const Fitted f("sr:2");
  const Tensor away = normal_noise(Rng(6), f.c.images, 0, 0, {3, kTestSide, kTestSide});
  const Tensor unseen = away - f.A.pseudo_inverse(f.A.apply(away));
  const Tensor share = share_within_floor(f.A, f.y, f.floors, f.x, unseen);
  EXPECT_EQ(share.slice(0, 0, 2).min().item<double>(), 1);
}

}  // namespace
}  // namespace dpg
