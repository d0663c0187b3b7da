#include "dpg/prior/network_cost.h"

#include <vector>

namespace dpg {
namespace {

struct Count {
  double pixels;  // of the running activation
  double flop = 0;

  void convolution(int in, int out, int side) { flop += 2.0 * in * out * side * side * pixels; }
  void residual(int in, int out) {
    convolution(in, out, 3);
    convolution(out, out, 3);
    if (in != out) convolution(in, out, 1);
  }
  void attention(int channels) {
    convolution(channels, 4 * channels, 1);    // q, k, v and the projection
    flop += 4.0 * channels * pixels * pixels;  // scores, and the values they weigh
  }
  // `factor`: 0.25 or 4. Convolutions of such a layer run at the new size, or at the larger one where it is a
  // layer of its own that goes up.
  void resize(const UNetConfig& config, int channels, double factor) {
    pixels *= factor;
    if (config.resblock_updown)
      residual(channels, channels);
    else if (config.conv_resample)
      convolution(channels, channels, 3);
  }
};

}  // namespace

double network_flop(const UNetConfig& config, int height, int width) {
  validate(config);
  Count count{static_cast<double>(height) * width};
  int channels = config.level_channels(0), factor = 1;
  count.convolution(config.in_channels, channels, 3);
  std::vector<int> skips{channels};
  for (int level = 0; level < config.levels(); ++level) {
    for (int i = 0; i < config.num_res_blocks; ++i) {
      count.residual(channels, config.level_channels(level));
      channels = config.level_channels(level);
      if (config.has_attention(factor)) count.attention(channels);
      skips.push_back(channels);
    }
    if (level + 1 == config.levels()) break;
    factor *= 2;
    count.resize(config, channels, 0.25);
    skips.push_back(channels);
  }
  count.residual(channels, channels);
  count.attention(channels);
  count.residual(channels, channels);
  for (int level = config.levels() - 1; level >= 0; --level)
    for (int i = 0; i <= config.num_res_blocks; ++i) {
      count.residual(channels + skips.back(), config.level_channels(level));
      skips.pop_back();
      channels = config.level_channels(level);
      if (config.has_attention(factor)) count.attention(channels);
      if (level > 0 && i == config.num_res_blocks) {
        factor /= 2;
        count.resize(config, channels, 4);
      }
    }
  count.convolution(channels, config.out_channels(), 3);
  return count.flop;
}

}  // namespace dpg
