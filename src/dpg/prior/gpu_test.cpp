// The GPU's kernels and recordings against the CPU's and against plain torch. Built with the GPU kernels
// only.
#include <c10/cuda/CUDAFunctions.h>
#include <c10/cuda/CUDAStream.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <random>

#include "dpg/kernels/split_cuda.h"
#include "dpg/prior/gpu_norm.h"
#include "dpg/prior/gpu_residual.h"
#include "dpg/prior/prior.h"

namespace dpg {
namespace {

constexpr auto kChannelsLast = torch::MemoryFormat::ChannelsLast;

double relative_error(const Tensor& a, const Tensor& b) {
  const Tensor x = a.to(torch::kCPU, torch::kDouble), y = b.to(torch::kCPU, torch::kDouble);
  return ((x - y).norm() / y.norm()).item<double>();
}

class Gpu : public testing::Test {
 protected:
  void SetUp() override {
    if (!torch::cuda::is_available()) GTEST_SKIP() << "no GPU here";
    torch::manual_seed(7);
  }
};

// The formula at the top of norm.h in double precision, under autograd.
Tensor plain_norm(const Tensor& x, const NormConstants& c) {
  const auto wide = [](const Tensor& t) { return t.to(torch::kDouble); };
  Tensor h = torch::group_norm(x, kNormGroups, wide(c.gamma), wide(c.beta), kNormEps);
  if (c.scale.defined())
    h = h * (1 + wide(c.scale)).unsqueeze(-1).unsqueeze(-1) + wide(c.shift).unsqueeze(-1).unsqueeze(-1);
  return c.silu ? torch::silu(h) : h;
}

// Random shapes, every kind of input: one or two parts, with and without scale, shift, an added constant and
// something to add to the gradient, in float, bf16, and bf16 to float.
TEST_F(Gpu, NormEqualsPlainTorch) {
  std::mt19937 generator(5);
  const auto pick = [&](int low, int high) {
    return std::uniform_int_distribution<int>(low, high)(generator);
  };
  for (int round = 0; round < 40; ++round) {
    const bool large = pick(0, 3) == 0;  // too large to be held in registers
    const std::int64_t n = pick(1, 4), height = 2 * pick(1, large ? 50 : 12),
                       width = 2 * pick(1, large ? 50 : 12);
    const std::int64_t first = 32 * pick(1, 20), second = pick(0, 1) ? 32 * pick(1, 12) : 0;
    const std::int64_t c = first + second;
    const bool half = pick(0, 1), to_float = half && pick(0, 1), scaled = pick(0, 1), added = pick(0, 1),
               adding = pick(0, 1), silu = pick(0, 3) > 0;
    const auto type = half ? torch::kBFloat16 : torch::kFloat;
    const auto image = [&](std::int64_t channels) {
      return torch::randn({n, channels, height, width}, torch::kCUDA).to(type).contiguous(kChannelsLast);
    };
    const Tensor wide_row = torch::randn({n, 3 * c + 8}, torch::kCUDA);  // scale and shift are parts of it
    const Resample how = second ? Resample::none : static_cast<Resample>(pick(0, 2));
    NormConstants constants{torch::randn({c}, torch::kCUDA), torch::randn({c}, torch::kCUDA), {}, {}, silu};
    if (scaled) constants.scale = wide_row.narrow(1, 4, c), constants.shift = wide_row.narrow(1, c + 8, c);
    GpuNormInput x{image(first) + 3, second ? image(second) : Tensor(),
                   added ? torch::randn({c}, torch::kCUDA) : Tensor(), how};
    if (added && pick(0, 1)) x.added = torch::randn({n, c}, torch::kCUDA);

    Tensor statistics;
    const auto result_type = to_float ? torch::kFloat : type;
    const Tensor y = gpu_norm_forward(x, constants, result_type, statistics);
    const Tensor dy = torch::randn(y.sizes(), torch::kCUDA).to(result_type).contiguous(kChannelsLast);
    const auto like_result = [&](std::int64_t channels) { return resample(image(channels), how); };
    const Tensor add_first = adding ? like_result(first) : Tensor(),
                 add_second = adding && second ? like_result(second) : Tensor();
    const Tensor other = !second && pick(0, 1) ? image(first) : Tensor();
    const auto [dx, dx_second] =
        gpu_norm_backward(x, constants, statistics, dy, {add_first, add_second, other});

    Tensor joined = (second ? torch::cat({x.first, x.second}, 1) : x.first).to(torch::kDouble);
    if (added) joined = joined + x.added.to(torch::kDouble).view({x.added.dim() == 2 ? n : 1, c, 1, 1});
    joined = joined.detach().requires_grad_(true);
    const Tensor expected = resample(plain_norm(joined, constants), how);
    Tensor gradient = torch::autograd::grad({expected}, {joined}, {dy.to(torch::kDouble)})[0];
    if (adding) {
      const Tensor both = second ? torch::cat({add_first, add_second}, 1) : add_first;
      gradient = gradient + resample_backward(both.to(torch::kDouble), how);
    }
    if (other.defined()) gradient = gradient + other.to(torch::kDouble);
    const Tensor actual = second ? torch::cat({dx, dx_second}, 1) : dx;
    const std::string which = "round " + std::to_string(round) + ": " + std::to_string(c) + " channels, " +
                              std::to_string(height * width) + " pixels" + (half ? ", bf16" : "");
    EXPECT_LT(relative_error(y, expected.detach()), half && !to_float ? 4e-3 : 3e-6) << which;
    EXPECT_LT(relative_error(actual, gradient), half ? 5e-3 : 1e-5) << which;
    // The same bits every time.
    Tensor again;
    EXPECT_TRUE(torch::equal(y, gpu_norm_forward(x, constants, result_type, again))) << which;
    EXPECT_TRUE(torch::equal(statistics, again)) << which;
  }
}

TEST_F(Gpu, SumWithBiasEqualsPlainTorch) {
  std::mt19937 generator(6);
  const auto pick = [&](int low, int high) {
    return std::uniform_int_distribution<int>(low, high)(generator);
  };
  for (int round = 0; round < 8; ++round)
    for (const auto type : {torch::kFloat, torch::kBFloat16})
      for (const Resample how : {Resample::none, Resample::down, Resample::up}) {
        const std::int64_t n = pick(1, 4), channels = 8 * pick(1, 80), height = 2 * pick(1, 20),
                           width = 2 * pick(1, 20);
        const Tensor other =
            torch::randn({n, channels, height, width}, torch::kCUDA).to(type).contiguous(kChannelsLast);
        const Tensor straight = resample(other.to(torch::kDouble), how);
        const Tensor out = torch::randn(straight.sizes(), torch::kCUDA).to(type).contiguous(kChannelsLast);
        const Tensor bias = torch::randn({channels}, torch::kCUDA), plain = out.to(torch::kDouble) + straight;
        const Tensor without = out.clone(kChannelsLast), with = out.clone(kChannelsLast);
        gpu_add(without, other, how, {});
        gpu_add(with, other, how, bias);
        const double bound = type == torch::kFloat ? 1e-7 : 3e-3;
        EXPECT_LT(relative_error(without, plain), bound) << other.sizes();
        EXPECT_LT(relative_error(with, plain + bias.view({1, -1, 1, 1})), bound) << other.sizes();
      }
}

// The formula of split_cuda.h, bit for bit.
TEST_F(Gpu, SplitEqualsPlainTorch) {
  std::mt19937 generator(7);
  const auto pick = [&](int low, int high) {
    return std::uniform_int_distribution<int>(low, high)(generator);
  };
  for (int round = 0; round < 20; ++round) {
    const std::int64_t n = pick(1, 4), channels = pick(1, 9), height = pick(1, 70), width = pick(1, 70);
    const std::int64_t out_channels = (2 * channels + 2 + 7) / 8 * 8 + 8 * pick(0, 1);
    const Tensor x = torch::randn({n, channels, height, width}) * 3, there = x.to(torch::kCUDA);
    const Tensor out = torch::full({n, out_channels, height, width}, 5,
                                   torch::TensorOptions(torch::kCUDA).dtype(torch::kBFloat16))
                           .contiguous(kChannelsLast);
    cuda::split_channels(n, channels, height * width, there.data_ptr<float>(), out_channels,
                         static_cast<kernels::Bf16*>(out.data_ptr()),
                         c10::cuda::getCurrentCUDAStream().stream());
    const Tensor high = x.to(torch::kBFloat16), low = (x - high.to(torch::kFloat)).to(torch::kBFloat16);
    const auto filled = [&](std::int64_t count, double value) {
      return torch::full({n, count, height, width}, value, torch::kBFloat16);
    };
    const Tensor expected =
        torch::cat({high, low, filled(2, 1), filled(out_channels - 2 * channels - 2, 0)}, 1);
    EXPECT_TRUE(torch::equal(out.to(torch::kCPU).contiguous(), expected)) << x.sizes() << out_channels;
  }
}

UNetConfig small_config() {
  UNetConfig c;
  c.image_size = 32;
  c.model_channels = 64;
  c.channel_mult = {1, 2, 2};
  c.num_res_blocks = 1;
  c.attention_downsampling = {2};
  c.num_head_channels = 64;
  c.learn_sigma = true;
  c.resblock_updown = true;
  return c;
}

// The same weights everywhere: drawn on the CPU.
std::shared_ptr<const UNet> network_on(const UNetConfig& c, torch::Device device, Precision precision) {
  const WeightSource weights = random_weights(c, 5, torch::kCPU);
  return std::make_shared<const UNet>(
      c, [&](const std::string& name) { return weights(name).to(device); }, precision, device);
}

std::shared_ptr<const NetworkPrior> prior_on_gpu(Precision precision) {
  return std::make_shared<const NetworkPrior>(network_on(small_config(), torch::kCUDA, precision));
}

// Every kind of network: the GPU's blocks, embeddings and attention against the CPU's, over enough calls that
// the later ones are replayed, and with another shape in between.
TEST_F(Gpu, NetworksGiveWhatTheCpuGives) {
  for (const bool updown : {true, false})
    for (const bool scale_shift : {true, false})
      for (const bool new_order : {true, false}) {
        UNetConfig c = small_config();
        c.resblock_updown = updown, c.use_scale_shift_norm = scale_shift;
        c.use_new_attention_order = new_order;
        const auto cpu = network_on(c, torch::kCPU, Precision::fp32);
        NetworkRunner wide(cpu), exact(network_on(c, torch::kCUDA, Precision::fp32)),
            half(network_on(c, torch::kCUDA, Precision::bf16));
        for (int call = 0; call < 4; ++call) {
          const Tensor x = torch::randn({2, 3, 32, 48}), v = torch::randn({2, 6, 32, 48});
          const Tensor x_there = x.to(torch::kCUDA), v_there = v.to(torch::kCUDA);
          const int t = 100 + 200 * call;
          const NetworkCall expected = wide.run(x, t, true), d = exact.run(x_there, t, true),
                            h = half.run(x_there, t, true);
          const Tensor gradient = expected.reverse(v);
          EXPECT_LT(relative_error(d.output, expected.output), 1e-5) << call;
          EXPECT_LT(relative_error(d.reverse(v_there), gradient), 1e-5) << call;
          EXPECT_TRUE(torch::equal(d.reverse(v_there), d.reverse(v_there))) << call;
          EXPECT_TRUE(torch::equal(h.reverse(v_there), h.reverse(v_there))) << call;
          EXPECT_LT(relative_error(h.output, expected.output), 0.02) << call;
          EXPECT_LT(relative_error(h.reverse(v_there), gradient), 0.03) << call;
          exact.run(torch::randn({1, 3, 64, 32}, torch::kCUDA), t, false);
        }
      }
}

TEST_F(Gpu, AReversePassSurvivesLaterCalls) {
  const auto prior = prior_on_gpu(Precision::fp32);
  const auto image = [] { return torch::randn({1, 3, 32, 32}, torch::kCUDA); };
  const Tensor v = image(), a = image(), b = image();
  for (int i = 0; i < 3; ++i) prior->denoise(image(), 5, Track::gradient);
  const Denoised first = prior->denoise(a, 300, Track::gradient);
  const Tensor at_once = first.pull_back(v), x0 = first.x0.clone();
  const Denoised second = prior->denoise(b, 700, Track::gradient);
  const Tensor of_second = second.pull_back(v);
  EXPECT_TRUE(torch::equal(first.x0, x0));
  EXPECT_LT(relative_error(first.pull_back(v), at_once), 1e-6);
  EXPECT_LT(relative_error(second.pull_back(v), of_second), 1e-6);
  EXPECT_GT(relative_error(at_once, of_second), 0.1);
}

TEST_F(Gpu, AReplayedCallDoesNotWaitForTheCard) {
  const auto prior = prior_on_gpu(Precision::bf16);
  const Tensor x = torch::randn({1, 3, 32, 32}, torch::kCUDA), v = torch::randn_like(x);
  for (int i = 0; i < 3; ++i) prior->denoise(x, 5, Track::gradient).pull_back(v);
  c10::cuda::warning_state().set_sync_debug_mode(c10::cuda::SyncDebugMode::L_ERROR);
  EXPECT_NO_THROW(prior->denoise(x, 6, Track::gradient).pull_back(v));
  EXPECT_ANY_THROW(x.sum().item<float>());  // or this test could not fail
  c10::cuda::warning_state().set_sync_debug_mode(c10::cuda::SyncDebugMode::L_DISABLED);
}

}  // namespace
}  // namespace dpg
