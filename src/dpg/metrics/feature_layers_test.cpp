// The parts of feature networks: single layers by hand, the tables by their sizes.
#include "dpg/metrics/feature_layers.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <algorithm>
#include <cmath>

#include "dpg/metrics/feature_weights.h"

namespace dpg {
namespace {

using metrics::expected_tensors;
using metrics::googlenet_architecture;
using metrics::inception_architecture;
using torch::Tensor;

Tensor numbers(std::vector<float> values, std::vector<std::int64_t> shape) {
  return torch::tensor(values).view(shape);
}

TEST(FeatureLayers, ResponseNormalisationByHand) {
  // Six channels of one pixel, large so that the divisor is far from 1.
  const Tensor x = numbers({100, 200, 300, 400, 500, 600}, {1, 6, 1, 1});
  const double squares[] = {1e4, 4e4, 9e4, 16e4, 25e4, 36e4};
  const Tensor y = metrics::response_normalised(x);
  for (int c = 0; c < 6; ++c) {
    double sum = 0;
    for (int k = std::max(0, c - 2); k <= std::min(5, c + 2); ++k) sum += squares[k];
    const double expected = 100.0 * (c + 1) / std::pow(1 + 2e-5 * sum, 0.75);
    EXPECT_NEAR(y[0][c][0][0].item<double>(), expected, 1e-5 * expected);
  }
}

TEST(FeatureLayers, PoolsByHand) {
  const Tensor x = torch::arange(1, 17, torch::kFloat).view({1, 1, 4, 4});
  // Windows of 3 in steps of 2 on 4 pixels: the second of two reaches one pixel over the edge.
  EXPECT_TRUE(
      metrics::run({metrics::max_pool(3, 2, 0, true)}, x).equal(numbers({11, 12, 15, 16}, {1, 1, 2, 2})));
  EXPECT_TRUE(metrics::run({metrics::max_pool(3, 2)}, x).equal(numbers({11}, {1, 1, 1, 1})));
  // The mean of the four pixels in the corner, not a ninth of their sum.
  const Tensor averages = metrics::run({metrics::average_pool(3, 1, 1)}, x);
  EXPECT_FLOAT_EQ(averages[0][0][0][0].item<float>(), (1 + 2 + 5 + 6) / 4.f);
  EXPECT_FLOAT_EQ(averages[0][0][0][1].item<float>(), (1 + 2 + 3 + 5 + 6 + 7) / 6.f);
}

TEST(FeatureLayers, BranchesStandSideBySideAndChannelsAreCounted) {
  metrics::FeatureChain chain = {
      metrics::side_by_side({{metrics::max_pool(3, 1, 1)}, {metrics::convolution("a", 2)}}),
      metrics::convolution("b", 7)};
  std::vector<std::int64_t> in;
  EXPECT_EQ(metrics::visit_convolutions(chain, 3,
                                        [&](metrics::FeatureLayer& layer, std::int64_t channels) {
                                          in.push_back(channels);
                                          layer.weight = torch::ones({layer.channels, channels, 1, 1});
                                          layer.bias = torch::full({layer.channels}, -1.f);
                                        }),
            7);
  EXPECT_EQ(in, (std::vector<std::int64_t>{3, 5}));
  chain.pop_back();
  const Tensor x = numbers({1, -2, 3}, {1, 3, 1, 1});
  EXPECT_TRUE(metrics::run(chain, x).equal(numbers({1, -2, 3, 1, 1}, {1, 5, 1, 1})));
  EXPECT_TRUE(metrics::run(chain, -x).equal(numbers({-1, 2, -3, 0, 0}, {1, 5, 1, 1})));  // a ReLU
}

TEST(FeatureLayers, AFoldedBatchNormalisationIsTheSameFunction) {
  torch::manual_seed(1);
  const auto doubles = torch::kDouble;
  const Tensor x = torch::randn({2, 4, 6, 6}, doubles), weight = torch::randn({5, 4, 3, 3}, doubles),
               gamma = torch::randn({5}, doubles), beta = torch::randn({5}, doubles),
               mean = torch::randn({5}, doubles), variance = 1e-3 * torch::rand({5}, doubles);
  const auto [folded, bias] = metrics::fold_batch_norm(weight, gamma, beta, mean, variance);
  const Tensor expected =
      torch::batch_norm(torch::conv2d(x, weight), gamma, beta, mean, variance, false, 0, 1e-3, false);
  const Tensor result = torch::conv2d(x, folded.to(doubles), bias.to(doubles));
  EXPECT_LT((result - expected).abs().max().item<double>(), 1e-5 * expected.abs().max().item<double>());
}

TEST(FeatureArchitectures, HaveThePublishedNumbersOfWeights) {
  for (const auto& [architecture, tensors, weights] :
       {std::tuple{&googlenet_architecture(), 2u * 57, 5973552},
        {&inception_architecture(), 5u * 94, 21785568}}) {
    const auto expected = expected_tensors(*architecture);
    EXPECT_EQ(expected.size(), tensors) << architecture->name;
    std::int64_t count = 0;
    for (const auto& [name, shape] : expected) {
      std::int64_t elements = 1;
      for (const std::int64_t side : shape) elements *= side;
      // Running statistics are not counted as weights.
      if (!name.ends_with("running_mean") && !name.ends_with("running_var")) count += elements;
    }
    EXPECT_EQ(count, weights) << architecture->name;
  }
}

TEST(GoogLeNetInput, IsBlueFirstAndLessTheMeanColour) {
  const Tensor colour = numbers({1, 0, -1}, {1, 3, 1, 1}).expand({1, 3, 40, 50});
  const Tensor input = googlenet_architecture().prepare(colour);
  ASSERT_EQ(input.sizes(), (std::vector<std::int64_t>{1, 3, 224, 224}));
  const double expected[] = {0 - 104, 127.5 - 117, 255 - 123};
  for (int c = 0; c < 3; ++c) {
    EXPECT_NEAR(input[0][c].max().item<double>(), expected[c], 1e-4);
    EXPECT_NEAR(input[0][c].min().item<double>(), expected[c], 1e-4);
  }
}

TEST(GoogLeNetInput, ShrinksWithoutNewPatterns) {
  // Columns of black and white, finer than 224: grey, where plain interpolation shows broad stripes.
  const Tensor stripes = (torch::arange(500) % 2 * 2 - 1).to(torch::kFloat).expand({1, 3, 500, 500});
  const Tensor inside = googlenet_architecture().prepare(stripes).narrow(3, 2, 220);
  const Tensor plain = 127.5 * torch::upsample_bilinear2d(stripes, {224, 224}, false);
  EXPECT_LT(inside.std(3).max().item<double>(), 3);
  EXPECT_GT(plain.std(3).min().item<double>(), 30);
}

}  // namespace
}  // namespace dpg
