// Distances between sets against closed forms and literal evaluations.
#include "dpg/metrics/frechet.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cmath>
#include <limits>
#include <numeric>

#include "dpg/core/error.h"
#include "dpg/core/jackknife.h"

namespace dpg {
namespace {

Tensor normals(std::int64_t rows, std::int64_t columns, std::uint64_t seed) {
  torch::manual_seed(seed);
  return torch::randn({rows, columns}, torch::kDouble);
}

// Rows whose mean is 0 and whose covariance is the identity, not only about but exactly.
Tensor white_rows(std::int64_t rows, std::int64_t columns, std::uint64_t seed) {
  const Tensor x = normals(rows, columns, seed);
  return std::get<0>(torch::linalg_qr(x - x.mean(0))) * std::sqrt(static_cast<double>(rows - 1));
}

Tensor vector_of(std::vector<double> values) {
  return torch::tensor(values, torch::kDouble);
}

Tensor covariance(const Tensor& x) {
  const Tensor centred = x - x.mean(0);
  return centred.t().mm(centred) / static_cast<double>(x.size(0) - 1);
}

// The definition, with the general eigenvalues of S_a S_b.
double literal_frechet(const Tensor& a, const Tensor& b) {
  const Tensor of_a = covariance(a), of_b = covariance(b);
  const Tensor eigenvalues = torch::real(torch::linalg_eigvals(of_a.mm(of_b)));
  return ((a.mean(0) - b.mean(0)).square().sum() + of_a.trace() + of_b.trace() -
          2 * eigenvalues.clamp_min(0).sqrt().sum())
      .item<double>();
}

TEST(Frechet, DiagonalCovariancesHaveAClosedForm) {
  const Tensor a = white_rows(10, 3, 1) * vector_of({1, 2, 3}) + vector_of({5, 0, -1});
  const Tensor b = white_rows(12, 3, 2) * vector_of({2, 1, 0.5}) + vector_of({4, 0, 1});
  // |(1, 0, -2)|^2 and the squared differences of the standard deviations.
  EXPECT_NEAR(frechet_distance(a, b).distance, 5 + 1 + 1 + 6.25, 1e-10);
  EXPECT_NEAR(frechet_distance(b, a).distance, 5 + 1 + 1 + 6.25, 1e-10);
}

TEST(Frechet, CommutingCovariancesHaveAClosedFormInEitherForm) {
  // The same axes, turned: S_a and S_b commute. With 20 features and 9 pictures on 4 axes the covariances are
  // never formed; with 4 features they are.
  for (const std::int64_t features : {20, 4}) {
    const Tensor axes = std::get<0>(torch::linalg_qr(normals(features, 4, 3))).t();
    const Tensor a = (white_rows(9, 4, 4) * vector_of({1, 2, 3, 0})).mm(axes);
    const Tensor b = (white_rows(9, 4, 5) * vector_of({3, 2, 0.5, 1})).mm(axes);
    const FrechetResult result = frechet_distance(a, b);
    EXPECT_NEAR(result.distance, 4 + 0 + 6.25 + 1, 1e-9) << features;
    EXPECT_EQ(result.low_rank, features == 20);
  }
}

TEST(Frechet, EqualsTheDefinition) {
  const Tensor mix = normals(6, 6, 6);
  const Tensor a = normals(40, 6, 7), b = normals(50, 6, 8).mm(mix) + 0.3;
  const double expected = literal_frechet(a, b);
  EXPECT_GT(expected, 1);
  EXPECT_NEAR(frechet_distance(a, b).distance, expected, 1e-9 * expected);
}

TEST(Frechet, FeaturesThatAreAlwaysZeroChangeTheFormAndNotTheDistance) {
  const Tensor a = normals(40, 6, 9), b = 2 * normals(50, 6, 10) + 0.3;
  const FrechetResult dense = frechet_distance(a, b);
  EXPECT_FALSE(dense.low_rank);
  EXPECT_EQ(dense.note, "");
  for (const std::int64_t zeros : {39, 94}) {  // more features than one set has pictures, and than both have
    const FrechetResult wide =
        frechet_distance(torch::constant_pad_nd(a, {0, zeros}), torch::constant_pad_nd(b, {0, zeros}));
    EXPECT_TRUE(wide.low_rank);
    EXPECT_NEAR(wide.distance, dense.distance, 1e-9 * dense.distance);
  }
}

TEST(Frechet, FewerPicturesThanFeaturesInOneSetOrBothEqualTheDefinition) {
  const Tensor a = normals(7, 12, 11);
  for (const std::int64_t others : {5, 12, 30}) {
    const Tensor b = 1.5 * normals(others, 12, 12);
    const FrechetResult result = frechet_distance(a, b);
    const double expected = literal_frechet(a, b);
    EXPECT_TRUE(result.low_rank);
    EXPECT_NE(result.note.find(others == 5 ? "only 5 pictures for 12 features" : "only 7 pictures"),
              std::string::npos)
        << result.note;
    EXPECT_NEAR(result.distance, expected, 1e-6 * expected);  // the definition takes roots of rounded zeros
  }
}

TEST(Frechet, EqualSetsAreAtDistanceZero) {
  for (const auto& [pictures, features] : {std::pair{30, 8}, {8, 30}, {8, 8}, {2, 5}}) {
    Tensor a = 10 * normals(pictures, features, 13) + 100;
    a.select(1, 0).fill_(7);                   // a feature that never changes
    a.select(1, 1).copy_(2 * a.select(1, 2));  // one that says nothing new
    const double trace = covariance(a).trace().item<double>();
    EXPECT_LE(frechet_distance(a, a).distance, 1e-8 * trace) << pictures << "x" << features;
    EXPECT_LE(frechet_distance(a, a.flip(0)).distance, 1e-8 * trace)
        << "the order of pictures is of no matter";
    EXPECT_NEAR(frechet_distance(a, a + 2).distance, 4.0 * features, 1e-8 * trace);
  }
}

// Pictures, their restorations by two methods, and how sure the distances and their difference are: the
// jackknife of one draw against what many draws show.
TEST(Frechet, TheJackknifeKnowsTheErrorOfADistanceAndOfADifference) {
  constexpr std::int64_t kPictures = 24;
  for (const std::int64_t features : {6, 60}) {
    std::vector<double> first, difference, said, said_of_difference;
    for (std::uint64_t draw = 0; draw < 60; ++draw) {
      const Tensor truth = normals(kPictures, features, 100 + draw);
      const Tensor one = truth + 0.5 * normals(kPictures, features, 1000 + draw);
      const Tensor other = one + 0.2 * normals(kPictures, features, 2000 + draw);
      const double a = frechet_distance(truth, one).distance, b = frechet_distance(truth, other).distance;
      const auto without_a = frechet_leaving_out(truth, one), without_b = frechet_leaving_out(truth, other);
      ASSERT_EQ(without_a.size(), static_cast<std::size_t>(kPictures));
      std::vector<double> apart;
      for (std::size_t i = 0; i < without_a.size(); ++i) apart.push_back(without_b[i] - without_a[i]);
      first.push_back(a), difference.push_back(b - a);
      said.push_back(jackknife_error(without_a)), said_of_difference.push_back(jackknife_error(apart));
    }
    const auto mean = [](const std::vector<double>& v) {
      return std::accumulate(v.begin(), v.end(), 0.0) / static_cast<double>(v.size());
    };
    const auto deviation = [&](const std::vector<double>& v) {
      double squares = 0;
      for (const double x : v) squares += (x - mean(v)) * (x - mean(v));
      return std::sqrt(squares / static_cast<double>(v.size() - 1));
    };
    for (const auto& [told, seen] :
         {std::pair{mean(said), deviation(first)}, {mean(said_of_difference), deviation(difference)}}) {
      EXPECT_GT(told, 0.7 * seen) << features;
      EXPECT_LT(told, 1.6 * seen) << features;
    }
  }
}

TEST(Frechet, LeavesOutSinglePicturesOrRuns) {
  const Tensor a = normals(100, 4, 30), b = a + 0.3 * normals(100, 4, 31);
  const auto parts = frechet_leaving_out(a, b);
  ASSERT_EQ(parts.size(), 20u);
  EXPECT_EQ(parts[0], frechet_distance(a.slice(0, 5), b.slice(0, 5)).distance);
  EXPECT_EQ(parts[19], frechet_distance(a.slice(0, 0, 95), b.slice(0, 0, 95)).distance);
  EXPECT_THROW(frechet_leaving_out(a, b.slice(0, 1)), Error);
  EXPECT_THROW(frechet_leaving_out(a.slice(0, 0, 5), b.slice(0, 0, 5)), Error);
}

TEST(Frechet, DoesNotDependOnWhereTheOriginIsOrTheAxesPoint) {
  const Tensor turn = std::get<0>(torch::linalg_qr(normals(5, 5, 14)));
  const Tensor a = normals(20, 5, 15), b = 3 * normals(25, 5, 16);
  const double distance = frechet_distance(a, b).distance;
  EXPECT_NEAR(frechet_distance(a + 50, b + 50).distance, distance, 1e-9 * distance);
  EXPECT_NEAR(frechet_distance(a.mm(turn), b.mm(turn)).distance, distance, 1e-9 * distance);
  EXPECT_NEAR(frechet_distance(3 * a, 3 * b).distance, 9 * distance, 1e-8 * distance);
}

TEST(SetDistances, RefuseWhatCannotBeCompared) {
  const Tensor a = normals(5, 4, 17);
  for (const Tensor& bad : {a.narrow(0, 0, 1), a.narrow(1, 0, 3), a[0], a.to(torch::kLong),
                            a / torch::zeros({5, 4}, torch::kDouble)}) {
    EXPECT_THROW(frechet_distance(a, bad), Error);
    EXPECT_THROW(kernel_distance(bad, a), Error);
  }
}

double kernel(const Tensor& x, const Tensor& y) {
  return std::pow(x.dot(y).item<double>() / static_cast<double>(x.size(0)) + 1, 3);
}

// The definition, pair by pair, without one picture of each set; -1: with all.
double literal_kernel_distance(const Tensor& a, const Tensor& b, int skip_a = -1, int skip_b = -1) {
  const auto mean_of = [&](const Tensor& x, int skip_x, const Tensor& y, int skip_y, bool same) {
    double sum = 0;
    int pairs = 0;
    for (int i = 0; i < x.size(0); ++i)
      for (int j = 0; j < y.size(0); ++j)
        if (i != skip_x && j != skip_y && !(same && i == j)) sum += kernel(x[i], y[j]), ++pairs;
    return sum / pairs;
  };
  return mean_of(a, skip_a, a, skip_a, true) + mean_of(b, skip_b, b, skip_b, true) -
         2 * mean_of(a, skip_a, b, skip_b, false);
}

TEST(KernelDistance, EqualsTheDefinition) {
  const Tensor a = normals(6, 3, 18), b = 1.5 * normals(6, 3, 19) + 0.5;
  const KernelDistance result = kernel_distance(a, b);
  EXPECT_NEAR(result.value, literal_kernel_distance(a, b), 1e-10);

  const auto jackknife = [](const std::vector<double>& values) {
    const double n = static_cast<double>(values.size());
    double mean = 0, sum = 0;
    for (const double value : values) mean += value / n;
    for (const double value : values) sum += (value - mean) * (value - mean);
    return (n - 1) / n * sum;
  };
  std::vector<double> without_a, without_b;
  for (int i = 0; i < 6; ++i) {
    without_a.push_back(literal_kernel_distance(a, b, i, -1));
    without_b.push_back(literal_kernel_distance(a, b, -1, i));
  }
  EXPECT_NEAR(result.standard_error, std::sqrt(jackknife(without_a) + jackknife(without_b)), 1e-9);
}

TEST(KernelDistance, IsAboutZeroForSetsOfOneDistribution) {
  constexpr int trials = 400;
  double sum = 0, squares = 0;
  for (int i = 0; i < trials; ++i) {
    const double value = kernel_distance(normals(20, 4, 1000 + i), normals(20, 4, 5000 + i)).value;
    sum += value, squares += value * value;
  }
  const double mean = sum / trials, error = std::sqrt((squares / trials - mean * mean) / trials);
  EXPECT_LT(std::abs(mean), 4 * error);
  // With the pairs of a picture and itself the mean would be (11.5 - 1.75) (1/20 + 1/20), near 1.
  EXPECT_LT(4 * error, 0.3);
}

TEST(KernelDistance, ItsStandardErrorIsTheSpreadOverSets) {
  constexpr int trials = 300;
  double sum = 0, squares = 0, variance = 0;
  for (int i = 0; i < trials; ++i) {
    const KernelDistance one = kernel_distance(normals(60, 4, 9000 + i), normals(60, 4, 13000 + i) + 1);
    sum += one.value, squares += one.value * one.value;
    variance += one.standard_error * one.standard_error / trials;
  }
  const double mean = sum / trials, spread = std::sqrt(squares / trials - mean * mean);
  EXPECT_GT(mean, 3 * spread);
  EXPECT_NEAR(std::sqrt(variance) / spread, 1, 0.25);
}

TEST(KernelDistance, OfSubsetsIsNearThatOfAllAndRepeats) {
  const Tensor a = normals(30, 4, 20), b = normals(90, 4, 21) + 1;
  const KernelDistance result = kernel_distance(a, b, 3), again = kernel_distance(a, b, 3),
                       other = kernel_distance(a, b, 4);
  EXPECT_EQ(result.value, again.value);
  EXPECT_EQ(result.standard_error, again.standard_error);
  EXPECT_NE(result.value, other.value);
  EXPECT_NEAR(result.value, literal_kernel_distance(a, b), 0.5 * result.standard_error);
}

TEST(KernelDistance, TwoPicturesHaveNoStandardError) {
  const KernelDistance result = kernel_distance(normals(2, 3, 22), normals(2, 3, 23));
  EXPECT_TRUE(std::isfinite(result.value));
  EXPECT_TRUE(std::isnan(result.standard_error));
}

}  // namespace
}  // namespace dpg
