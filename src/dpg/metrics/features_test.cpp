// Feature networks: Inception against a literal evaluation, GoogLeNet by what it sees.
#include "dpg/metrics/features.h"

#include <gtest/gtest.h>
#include <torch/torch.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "dpg/core/error.h"
#include "dpg/core/test_folder.h"
#include "dpg/image/transform.h"
#include "dpg/metrics/feature_weights.h"
#include "dpg/metrics/frechet.h"
#include "dpg/metrics/literal_inception.h"
#include "dpg/metrics/set_metrics.h"
#include "dpg/tensor/convert.h"

namespace dpg {
namespace {

namespace fs = std::filesystem;
using metrics::expected_tensors;
using metrics::FeatureArchitecture;
using metrics::googlenet_architecture;
using metrics::inception_architecture;

const fs::path kSharedWeights = fs::path(DPG_SHARED_DIR) / "weights";
const fs::path kSharedFaces = fs::path(DPG_SHARED_DIR) / "data" / "faces128" / "val";
const fs::path kSharedPhotos = fs::path(DPG_SHARED_DIR) / "data" / "photos" / "CBSD68";
const char* const kInceptionFile = "fid_inception.safetensors";

using Weights = std::map<std::string, Tensor>;

// Of every name and shape, such that no layer dies or explodes. In 16 bits, for smaller files.
Weights random_weights(const FeatureArchitecture& architecture) {
  torch::manual_seed(11);
  Weights weights;
  for (const auto& [name, shape] : expected_tensors(architecture)) {
    Tensor tensor = 0.1 * torch::randn(shape);
    if (shape.size() == 4)
      tensor *= 10 * std::sqrt(2.0 / static_cast<double>(shape[1] * shape[2] * shape[3]));
    if (name.ends_with("running_var") || name.ends_with("bn.weight")) tensor = 0.5 + torch::rand(shape);
    weights[name] = tensor.to(torch::kHalf);
  }
  return weights;
}

class FeaturesTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_ =
        fs::path(testing::TempDir()) /
        str("dpg-features-", testing::UnitTest::GetInstance()->current_test_info()->name(), "-", ::getpid());
    fs::create_directories(folder_);
  }
  void TearDown() override { remove_folder(folder_); }

  void save(const std::string& name, const Weights& weights) const {
    save_tensors(folder_ / name, {weights.begin(), weights.end()});
  }
  std::string refusal(const std::string& network) const {
    try {
      FeatureNetwork::load(network, {folder_});
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  }

  fs::path folder_;
};

#define EXPECT_SAYS(sentence, part) EXPECT_NE((sentence).find(part), std::string::npos) << (sentence)

#define NEEDS_SHARED_GOOGLENET()                                         \
  if (!fs::exists(kSharedWeights / "googlenet_bvlc_fp16.safetensors") || \
      !fs::exists(kSharedFaces / "000.png"))                             \
  GTEST_SKIP() << "no GoogLeNet weights and faces in the shared folder"

TEST_F(FeaturesTest, InceptionEqualsTheLiteralEvaluation) {
  const Weights weights = random_weights(inception_architecture());
  Weights file = weights;
  file["fc.weight"] = torch::zeros({1008, 2048}, torch::kHalf);  // in the file, and not needed
  file["Conv2d_1a_3x3.bn.num_batches_tracked"] = torch::zeros({1}, torch::kLong);
  save("pt_inception-2015-12-05-6726825d.pth", file);
  const FeatureNetwork network = FeatureNetwork::load("inception", {folder_});
  EXPECT_EQ(network.frechet_name(), "FID");
  EXPECT_EQ(network.kernel_name(), "KID");

  const Tensor pictures = torch::rand({2, 3, 150, 100}) * 2 - 1;
  const Tensor features = network.features(pictures);
  ASSERT_EQ(features.sizes(), (std::vector<std::int64_t>{2, 2048}));
  EXPECT_EQ(features.scalar_type(), torch::kDouble);
  const Tensor sized = torch::upsample_bilinear2d(pictures, {299, 299}, false);
  const Tensor expected = literal_inception(weights, sized);
  ASSERT_GT(expected.abs().mean().item<double>(), 0.01);
  EXPECT_GT((expected > 0).to(torch::kDouble).mean().item<double>(), 0.5);
  EXPECT_LT((features - expected).abs().max().item<double>(), 1e-4 * expected.abs().max().item<double>());
  // The pictures' features differ by far more than that.
  EXPECT_GT((features[0] - features[1]).abs().max().item<double>(),
            1e-2 * expected.abs().max().item<double>());
  EXPECT_TRUE(network.features(pictures).equal(features));
}

TEST_F(FeaturesTest, MissingWrongAndSurplusTensorsAreNamed) {
  const Weights weights = random_weights(googlenet_architecture());
  const std::string file = "googlenet_bvlc.safetensors";
  const auto refusal_of = [&](const std::string& name, const Tensor& tensor) {
    Weights changed = weights;
    if (tensor.defined())
      changed[name] = tensor;
    else
      changed.erase(name);
    save(file, changed);
    return refusal("googlenet");
  };
  EXPECT_SAYS(refusal_of("inception_4c/5x5/bias", {}), "inception_4c/5x5/bias is not in");
  EXPECT_SAYS(refusal_of("conv1/7x7_s2/weight", torch::zeros({64, 3, 5, 5})), "conv1/7x7_s2/weight");
  EXPECT_SAYS(refusal_of("conv1/7x7_s2/bias", torch::zeros({64}, torch::kInt)), "conv1/7x7_s2/bias");
  EXPECT_SAYS(refusal_of("inception_6a/1x1/weight", torch::zeros({1})), "inception_6a/1x1/weight");
  EXPECT_EQ(refusal_of("loss3/classifier/weight", torch::zeros({1})), "");
}

TEST_F(FeaturesTest, MissingFilesAreNamedAndNothingStandsIn) {
  EXPECT_SAYS(refusal("inception"), "FID, KID) is unavailable");
  EXPECT_SAYS(refusal("inception"), "fid_inception.safetensors, or pt_inception-2015-12-05-*.pth");
  EXPECT_SAYS(refusal("googlenet"), "googlenet_bvlc_fp16.safetensors");
  EXPECT_SAYS(refusal("resnet"), "inception or googlenet");

  save("googlenet_bvlc.safetensors", random_weights(googlenet_architecture()));
  const SetMetrics metrics({folder_});
  SetMetrics::Features a, b;
  for (int i = 0; i < 3; ++i) {
    metrics.add(a, torch::rand({1, 3, 20 + i, 30}) * 2 - 1);
    metrics.add(b, torch::rand({1, 3, 30, 20 + i}) - 1);
  }
  const auto distances = metrics.distances(a, b);
  ASSERT_EQ(distances.size(), 4u);
  EXPECT_EQ(distances[0].name, "FID");
  EXPECT_EQ(distances[1].name, "KID");
  for (int i : {0, 1}) {
    EXPECT_FALSE(distances[i].value);
    EXPECT_SAYS(distances[i].note, kInceptionFile);
  }
  EXPECT_EQ(distances[2].name, "FD-googlenet");
  EXPECT_GT(distances[2].value.value(), 0);
  EXPECT_SAYS(distances[2].note, "only 3 pictures for 1024 features");
  EXPECT_EQ(distances[3].name, "KD-googlenet");
  EXPECT_TRUE(distances[3].standard_error);
  EXPECT_THROW(metrics.distances(a, {}), Error);
}

Tensor faces(int first, int count) {
  std::vector<Image> images;
  for (int i = first; i < first + count; ++i) {
    char name[16];
    std::snprintf(name, sizeof name, "%03d.png", i);
    images.push_back(to_rgb(read_image(kSharedFaces / name)));
  }
  return to_tensor(images);
}

// At most `count` photographs of all kinds of things, as large as the faces.
Tensor photographs(std::size_t count) {
  std::vector<fs::path> files;
  std::error_code missing;
  for (const auto& entry : fs::directory_iterator(kSharedPhotos, missing)) files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  std::vector<Image> images;
  for (std::size_t i = 0; i < std::min(count, files.size()); ++i)
    images.push_back(fit(to_rgb(read_image(files[i])), 128));
  return images.empty() ? torch::empty({0, 3, 128, 128}) : to_tensor(images);
}

// Means over 2 * radius + 1 pixels, down and across.
Tensor blurred(const Tensor& pictures, std::int64_t radius) {
  const Tensor padded = torch::replication_pad2d(pictures, {radius, radius, radius, radius});
  return torch::avg_pool2d(padded, 2 * radius + 1, 1);
}

TEST_F(FeaturesTest, GoogLeNetSeesFacesAndHowBlurredTheyAre) {
  NEEDS_SHARED_GOOGLENET();
  const FeatureNetwork network = FeatureNetwork::load("googlenet", {kSharedWeights});
  EXPECT_EQ(network.frechet_name(), "FD-googlenet");
  const Tensor some = faces(0, 16), others = faces(16, 16);
  const Tensor reference = network.features(some);
  ASSERT_EQ(reference.sizes(), (std::vector<std::int64_t>{16, 1024}));
  EXPECT_TRUE(reference.equal(network.features(some))) << "the same pictures, the same features";

  const Tensor of_others = network.features(others);
  const double between_faces = frechet_distance(of_others, reference).distance;
  double last = 0;
  for (const std::int64_t radius : {1, 2, 4}) {
    const double distance = frechet_distance(network.features(blurred(some, radius)), reference).distance;
    EXPECT_GT(distance, 1.2 * last) << "blur " << radius;
    last = distance;
  }
  EXPECT_GT(last, between_faces);
  const Tensor photos = photographs(16);
  if (photos.size(0) < 16) GTEST_SKIP() << "no photographs in the shared folder";
  const Tensor of_photos = network.features(photos);
  EXPECT_GT(frechet_distance(of_photos, reference).distance, 1.5 * between_faces);
  EXPECT_GT(kernel_distance(of_photos, reference).value,
            5 * std::abs(kernel_distance(of_others, reference).value));
}

TEST_F(FeaturesTest, APicturesFeaturesDoNotDependOnTheOthers) {
  NEEDS_SHARED_GOOGLENET();
  const FeatureNetwork network = FeatureNetwork::load("googlenet", {kSharedWeights});
  const Tensor pictures = faces(0, 18);  // more than go at once
  const Tensor together = network.features(pictures);
  const double size = together.abs().max().item<double>();
  for (const int i : {0, 15, 16, 17})
    EXPECT_LT((network.features(pictures.narrow(0, i, 1))[0] - together[i]).abs().max().item<double>(),
              1e-5 * size);
  EXPECT_TRUE(network.features(3 * pictures.narrow(0, 0, 1))
                  .equal(network.features((3 * pictures.narrow(0, 0, 1)).clamp(-1, 1))));
  EXPECT_EQ(network.features(pictures.narrow(0, 0, 0)).sizes(), (std::vector<std::int64_t>{0, 1024}));
  EXPECT_THROW(network.features(pictures[0]), Error);
  EXPECT_THROW(network.features(pictures.narrow(1, 0, 1)), Error);
}

TEST_F(FeaturesTest, TheSameOnTheGpu) {
  if (!torch::cuda::is_available()) GTEST_SKIP() << "no CUDA device";
  save("googlenet_bvlc.safetensors", random_weights(googlenet_architecture()));
  save(kInceptionFile, random_weights(inception_architecture()));
  const Tensor pictures = torch::rand({2, 3, 64, 80}) * 2 - 1;
  for (const std::string& name : FeatureNetwork::names()) {
    const FeatureNetwork network = FeatureNetwork::load(name, {folder_});
    const Tensor here = network.features(pictures);
    const Tensor there = network.to(torch::kCUDA).features(pictures.to(torch::kCUDA));
    EXPECT_TRUE(there.device().is_cpu());
    EXPECT_LT((here - there).abs().max().item<double>(), 1e-4 * here.abs().max().item<double>()) << name;
  }
}

}  // namespace
}  // namespace dpg
