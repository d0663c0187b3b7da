// LPIPS against published distances, a literal evaluation, and its two layouts of weights.
#include "dpg/metrics/lpips.h"

#include <gtest/gtest.h>
#include <torch/torch.h>
#include <unistd.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>

#include "dpg/core/error.h"
#include "dpg/core/test_folder.h"
#include "dpg/tensor/convert.h"

namespace dpg {
namespace {

namespace fs = std::filesystem;

using Weights = std::map<std::string, Tensor>;

const fs::path kSharedWeights = fs::path(DPG_SHARED_DIR) / "weights";
const fs::path kSharedPictures = fs::path(DPG_SHARED_DIR) / "fixtures" / "lpips";
const char* const kSqueezeFile = "lpips_squeeze_v0.1.safetensors";

struct Convolution {
  int slice, index, in, out, kernel;
};
// The convolutions of each classifier, and the slice of LPIPS they lie in.
const std::vector<Convolution> kAlex = {
    {1, 0, 3, 64, 11}, {2, 3, 64, 192, 5}, {3, 6, 192, 384, 3}, {4, 8, 384, 256, 3}, {5, 10, 256, 256, 3}};
const std::vector<Convolution> kVgg = {{1, 0, 3, 64, 3},     {1, 2, 64, 64, 3},    {2, 5, 64, 128, 3},
                                       {2, 7, 128, 128, 3},  {3, 10, 128, 256, 3}, {3, 12, 256, 256, 3},
                                       {3, 14, 256, 256, 3}, {4, 17, 256, 512, 3}, {4, 19, 512, 512, 3},
                                       {4, 21, 512, 512, 3}, {5, 24, 512, 512, 3}, {5, 26, 512, 512, 3},
                                       {5, 28, 512, 512, 3}};

struct RandomNet {
  Weights whole, heads, classifier;
};

// In 16 bits: both layouts hold the same numbers, and the files are half as large.
RandomNet random_net(const std::vector<Convolution>& convolutions) {
  torch::manual_seed(3);
  RandomNet net;
  for (std::size_t i = 0; i < convolutions.size(); ++i) {
    const auto& [slice, index, in, out, kernel] = convolutions[i];
    const Tensor weight = torch::randn({out, in, kernel, kernel}) * std::sqrt(2.0 / (in * kernel * kernel));
    const Tensor bias = 0.1 * torch::randn({out});
    const std::pair<const char*, Tensor> both[] = {{".weight", weight.to(torch::kHalf)},
                                                   {".bias", bias.to(torch::kHalf)}};
    for (const auto& [part, tensor] : both) {
      net.classifier[str("features.", index, part)] = tensor;
      net.whole[str("net.slice", slice, ".", index, part)] = tensor;
    }
    if (i + 1 < convolutions.size() && convolutions[i + 1].slice == slice) continue;
    net.heads[str("lin", slice - 1, ".model.1.weight")] = torch::rand({1, out, 1, 1}).to(torch::kHalf);
  }
  net.whole.insert(net.heads.begin(), net.heads.end());
  net.whole["scaling_layer.shift"] = torch::tensor({-0.030f, -0.088f, -0.188f}).view({1, 3, 1, 1});
  net.whole["scaling_layer.scale"] = torch::tensor({0.458f, 0.448f, 0.450f}).view({1, 3, 1, 1});
  net.classifier["classifier.1.weight"] = torch::zeros({2, 2});  // in the file, and not needed
  return net;
}

class LpipsTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_ =
        fs::path(testing::TempDir()) /
        str("dpg-lpips-", testing::UnitTest::GetInstance()->current_test_info()->name(), "-", ::getpid());
    fs::create_directories(folder_ / "whole");
    fs::create_directories(folder_ / "pair" / "lpips_heads");
  }
  void TearDown() override { remove_folder(folder_); }

  void save(const std::string& name, const Weights& weights) const {
    save_tensors(folder_ / name, {weights.begin(), weights.end()});
  }
  void save_both_layouts(const std::string& net, const std::string& classifier,
                         const RandomNet& weights) const {
    save("whole/lpips_" + net + "_v0.1.safetensors", weights.whole);
    save("pair/lpips_heads/" + net + ".pth", weights.heads);
    save("pair/" + classifier + "-0123abcd.pth", weights.classifier);
  }
  static Lpips shared_squeeze() { return Lpips::load("squeeze", {kSharedWeights}); }
  static Tensor random_pictures(std::vector<std::int64_t> shape) { return torch::rand(shape) * 2 - 1; }

  // The sentence with which loading is refused.
  static std::string refusal(const std::string& net, const std::vector<fs::path>& folders) {
    try {
      Lpips::load(net, folders);
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  }

  fs::path folder_;
};

#define EXPECT_SAYS(sentence, part) EXPECT_NE((sentence).find(part), std::string::npos) << (sentence)

#define NEEDS_SHARED_SQUEEZE()                                                                   \
  if (!fs::exists(kSharedWeights / kSqueezeFile) || !fs::exists(kSharedPictures / "ex_ref.png")) \
  GTEST_SKIP() << "no LPIPS weights and pictures in the shared folder"

TEST_F(LpipsTest, SqueezeGivesThePublishedDistances) {
  NEEDS_SHARED_SQUEEZE();
  const auto picture = [](const char* name) { return to_tensor(read_image(kSharedPictures / name)); };
  const Tensor reference = picture("ex_ref.png");
  const Lpips lpips = shared_squeeze();
  const auto distances = lpips.distance(torch::cat({reference, reference}),
                                        torch::cat({picture("ex_p0.png"), picture("ex_p1.png")}));
  ASSERT_EQ(distances.size(), 2u);
  EXPECT_NEAR(distances[0], 0.71105, 1e-5);
  EXPECT_NEAR(distances[1], 0.14790, 1e-5);
  EXPECT_EQ(lpips.name(), "LPIPS squeeze");
  EXPECT_EQ(lpips.files(), std::vector<fs::path>{kSharedWeights / kSqueezeFile});
}

TEST_F(LpipsTest, IsADistanceOfEachPictureByItself) {
  NEEDS_SHARED_SQUEEZE();
  torch::manual_seed(5);
  const Lpips lpips = shared_squeeze();
  // More pixels than are compared at once, so that a batch is cut.
  const Tensor a = random_pictures({3, 3, 400, 450});
  const Tensor b =
      (a + torch::tensor({0.1f, 0.3f, 0.6f}).view({3, 1, 1, 1}) * torch::randn_like(a)).clamp(-1, 1);
  const auto there = lpips.distance(a, b), back = lpips.distance(b, a), same = lpips.distance(a, a);
  ASSERT_EQ(there.size(), 3u);
  for (int n = 0; n < 3; ++n) {
    EXPECT_GT(there[n], n == 0 ? 1e-3 : there[n - 1] + 1e-2);
    EXPECT_NEAR(there[n], back[n], 1e-6);
    EXPECT_NEAR(same[n], 0, 1e-10);
    EXPECT_NEAR(lpips.distance(a.narrow(0, n, 1), b.narrow(0, n, 1))[0], there[n], 1e-6);
  }
  const Tensor c = a.narrow(2, 0, 40).narrow(3, 0, 40), d = b.narrow(2, 0, 40).narrow(3, 0, 40);
  EXPECT_EQ(lpips.distance(2 * c, d), lpips.distance((2 * c).clamp(-1, 1), d));
  EXPECT_TRUE(lpips.distance(a.narrow(0, 0, 0), b.narrow(0, 0, 0)).empty());
}

TEST_F(LpipsTest, SqueezeFromTheOriginalHeadsEqualsTheOneFile) {
  NEEDS_SHARED_SQUEEZE();
  if (!fs::exists(kSharedWeights / "lpips_heads" / "squeeze.pth")) GTEST_SKIP() << "no LPIPS heads";
  // torchvision's file is made from the whole one; the heads are the authors' own.
  Weights classifier;
  for (const auto& [name, tensor] : load_tensors(kSharedWeights / kSqueezeFile))
    if (name.starts_with("net.slice")) classifier["features" + name.substr(name.find('.', 4))] = tensor;
  save("squeezenet1_1-0123abcd.pth", classifier);
  fs::copy_file(kSharedWeights / "lpips_heads" / "squeeze.pth", folder_ / "squeeze.pth");
  const Lpips pair = Lpips::load("squeeze", {folder_});
  EXPECT_EQ(pair.files().size(), 2u);
  const Tensor a = random_pictures({1, 3, 40, 50}), b = random_pictures({1, 3, 40, 50});
  EXPECT_NEAR(pair.distance(a, b)[0], shared_squeeze().distance(a, b)[0], 1e-6);
}

// LPIPS step by step, in double. Maxima are taken before slices 2 to `last_pooled`.
double literal_distance(const RandomNet& net, const std::vector<Convolution>& convolutions, int pool_kernel,
                        int last_pooled, const Tensor& a, const Tensor& b) {
  const auto weight = [&](const std::string& name) { return net.whole.at(name).to(torch::kDouble); };
  const auto features = [&](const Tensor& picture) {
    Tensor h = (picture.to(torch::kDouble) - weight("scaling_layer.shift")) / weight("scaling_layer.scale");
    std::vector<Tensor> taps;
    int last_slice = 1;
    for (const auto& [slice, index, in, out, kernel] : convolutions) {
      if (slice != last_slice) {
        taps.push_back(h);
        if (slice <= last_pooled) h = torch::max_pool2d(h, pool_kernel, 2);
        last_slice = slice;
      }
      const std::string name = str("net.slice", slice, ".", index);
      const int stride = kernel == 11 ? 4 : 1, padding = kernel == 11 ? 2 : kernel / 2;
      h = torch::relu(torch::conv2d(h, weight(name + ".weight"), weight(name + ".bias"), stride, padding));
    }
    taps.push_back(h);
    return taps;
  };
  const auto of_a = features(a), of_b = features(b);
  EXPECT_EQ(of_a.size(), 5u);
  double distance = 0;
  for (std::size_t l = 0; l < of_a.size(); ++l) {
    const Tensor difference = of_a[l] / (of_a[l].norm(2, {1}, true) + 1e-10) -  // each pixel by itself
                              of_b[l] / (of_b[l].norm(2, {1}, true) + 1e-10);
    const Tensor weighted = difference.pow(2) * weight(str("lin", l, ".model.1.weight"));
    distance += weighted.sum(1).mean().item<double>();
  }
  return distance;
}

TEST_F(LpipsTest, AlexInBothLayoutsEqualsTheLiteralEvaluation) {
  const RandomNet net = random_net(kAlex);
  save_both_layouts("alex", "alexnet-owt", net);
  const Lpips whole = Lpips::load("alex", {folder_ / "whole"}),
              pair = Lpips::load("alex", {folder_ / "pair"});
  EXPECT_EQ(pair.files().size(), 2u);
  const Tensor a = random_pictures({2, 3, 64, 79}), b = random_pictures({2, 3, 64, 79});
  const auto distances = whole.distance(a, b);
  EXPECT_EQ(distances, pair.distance(a, b));
  for (int n = 0; n < 2; ++n) {
    const double expected = literal_distance(net, kAlex, 3, 3, a.narrow(0, n, 1), b.narrow(0, n, 1));
    EXPECT_GT(expected, 0.1);
    EXPECT_NEAR(distances[n], expected, 1e-5 * expected);
  }
  // The smallest picture works, one pixel less is refused.
  EXPECT_GT(whole.distance(a.narrow(2, 0, 31), b.narrow(2, 0, 31))[0], 0);
  EXPECT_THROW(whole.distance(a.narrow(2, 0, 30), b.narrow(2, 0, 30)), Error);
  EXPECT_THROW(whole.distance(a.narrow(1, 0, 1), b.narrow(1, 0, 1)), Error);
}

TEST_F(LpipsTest, VggInBothLayoutsEqualsTheLiteralEvaluation) {
  const RandomNet net = random_net(kVgg);
  save_both_layouts("vgg", "vgg16", net);
  const Lpips whole = Lpips::load("vgg", {folder_ / "whole"}), pair = Lpips::load("vgg", {folder_ / "pair"});
  const Tensor a = random_pictures({1, 3, 16, 37}), b = random_pictures({1, 3, 16, 37});
  const auto distances = whole.distance(a, b);
  EXPECT_EQ(distances, pair.distance(a, b));
  const double expected = literal_distance(net, kVgg, 2, 5, a, b);
  EXPECT_GT(expected, 0.1);
  EXPECT_NEAR(distances[0], expected, 1e-5 * expected);
  EXPECT_THROW(whole.distance(a.narrow(2, 0, 15), b.narrow(2, 0, 15)), Error);
}

TEST_F(LpipsTest, SqueezeTakesPicturesOf17Pixels) {
  NEEDS_SHARED_SQUEEZE();
  const Tensor a = random_pictures({1, 3, 17, 17}), b = random_pictures({1, 3, 17, 17});
  EXPECT_GT(shared_squeeze().distance(a, b)[0], 0);
  EXPECT_THROW(shared_squeeze().distance(a.narrow(2, 0, 16), b.narrow(2, 0, 16)), Error);
}

TEST_F(LpipsTest, MissingWeightsAreNamedWithTheirPlaces) {
  const std::string sentence = refusal("alex", {folder_ / "whole", folder_ / "pair"});
  EXPECT_SAYS(sentence, "LPIPS alex is unavailable");
  EXPECT_SAYS(sentence, "lpips_alex_v0.1.safetensors");
  EXPECT_SAYS(sentence, "lpips_heads/alex.pth or alex.pth");
  EXPECT_SAYS(sentence, "alexnet-*.pth");
  EXPECT_SAYS(sentence, (folder_ / "whole").string() + " or " + (folder_ / "pair").string());
  EXPECT_SAYS(sentence, "tools/export_metric_weights.py");
  // Half of the pair is not enough, and is named. Another net's files do not count.
  save("pair/alex.pth", random_net(kAlex).heads);
  save("pair/vgg16-0123abcd.pth", random_net(kAlex).classifier);
  EXPECT_SAYS(refusal("alex", {folder_ / "pair"}), "only " + (folder_ / "pair" / "alex.pth").string());
  EXPECT_SAYS(refusal("resnet", {folder_}), "squeeze, alex or vgg");
  EXPECT_SAYS(refusal("vgg", {}), "none was given");
}

TEST_F(LpipsTest, FoldersThatComeFirstWin) {
  const WantedWeights wanted = Lpips::wanted_weights("alex");
  save_both_layouts("alex", "alexnet", random_net(kAlex));
  const fs::path whole = folder_ / "whole", pair = folder_ / "pair";
  EXPECT_EQ(find_metric_weights(wanted, {whole, pair}).files.size(), 1u);
  EXPECT_EQ(find_metric_weights(wanted, {pair, whole}).files.size(), 2u);
  // The parts of a pair may lie apart.
  save("alex.pth", random_net(kAlex).heads);
  EXPECT_EQ(find_metric_weights(wanted, {folder_, pair}).files,
            (std::vector<fs::path>{folder_ / "alex.pth", pair / "alexnet-0123abcd.pth"}));
}

// Sets an environment variable until the end of the scope.
class Variable {
 public:
  Variable(const char* name, const char* value) : name_(name) {
    if (const char* old = std::getenv(name)) old_ = old, had_ = true;
    value ? ::setenv(name, value, 1) : ::unsetenv(name);
  }
  ~Variable() { had_ ? ::setenv(name_, old_.c_str(), 1) : ::unsetenv(name_); }

 private:
  const char* name_;
  std::string old_;
  bool had_ = false;
};

TEST_F(LpipsTest, LooksInTheChosenFolderThenTheVariableThenTheDataFolder) {
  const Variable weights("DPG_WEIGHTS", "/b"), home("HOME", "/h");
  {
    const Variable data("XDG_DATA_HOME", "/c");
    EXPECT_EQ(metric_weight_folders("a"), (std::vector<fs::path>{"a", "/b", "/c/dpg/weights"}));
  }
  const Variable data("XDG_DATA_HOME", nullptr), none("DPG_WEIGHTS", nullptr);
  EXPECT_EQ(metric_weight_folders(), std::vector<fs::path>{"/h/.local/share/dpg/weights"});
}

TEST_F(LpipsTest, FilesOfAnotherNetworkAreRefused) {
  const std::string name = "whole/lpips_alex_v0.1.safetensors";
  RandomNet net = random_net(kAlex);
  net.whole.erase("lin4.model.1.weight");
  save(name, net.whole);
  EXPECT_SAYS(refusal("alex", {folder_ / "whole"}), "lin4.model.1.weight");
  net = random_net(kAlex);
  net.whole["net.slice3.6.weight"] = torch::zeros({384, 192, 5, 5});
  save(name, net.whole);
  EXPECT_SAYS(refusal("alex", {folder_ / "whole"}), "features.6.weight");
  net = random_net(kAlex);
  net.whole["net.slice3.6.bias"] = torch::zeros({384}, torch::kInt);
  save(name, net.whole);
  EXPECT_SAYS(refusal("alex", {folder_ / "whole"}), "features.6.bias");
}

TEST_F(LpipsTest, TheSameOnTheGpu) {
  if (!torch::cuda::is_available()) GTEST_SKIP() << "no CUDA device";
  save_both_layouts("alex", "alexnet", random_net(kAlex));
  const Lpips lpips = Lpips::load("alex", {folder_ / "whole"});
  const Tensor a = random_pictures({2, 3, 64, 64}), b = random_pictures({2, 3, 64, 64});
  const auto here = lpips.distance(a, b), there = lpips.to(torch::kCUDA).distance(a.to(torch::kCUDA), b);
  for (int n = 0; n < 2; ++n) EXPECT_NEAR(there[n], here[n], 1e-5 * here[n]);
}

}  // namespace
}  // namespace dpg
