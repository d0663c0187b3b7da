// For tests: the Inception network of FID written out line by line, in float64 and with its batch
// normalisations, to compare the table-driven one with.
#pragma once

#include <torch/torch.h>

#include <map>
#include <string>

namespace dpg {

class LiteralInception {
 public:
  explicit LiteralInception(const std::map<std::string, torch::Tensor>& weights) : weights_(weights) {}

  torch::Tensor operator()(const torch::Tensor& pictures) const {
    T x = pictures.to(torch::kDouble);
    x = unit("Conv2d_1a_3x3", x, 2);
    x = unit("Conv2d_2a_3x3", x);
    x = unit("Conv2d_2b_3x3", x, 1, 1, 1);
    x = torch::max_pool2d(x, 3, 2);
    x = unit("Conv2d_3b_1x1", x);
    x = unit("Conv2d_4a_3x3", x);
    x = torch::max_pool2d(x, 3, 2);
    for (const char* name : {"Mixed_5b.", "Mixed_5c.", "Mixed_5d."}) x = a(name, x);
    x = b("Mixed_6a.", x);
    for (const char* name : {"Mixed_6b.", "Mixed_6c.", "Mixed_6d.", "Mixed_6e."}) x = c(name, x);
    x = d("Mixed_7a.", x);
    x = e("Mixed_7b.", x, average(x));
    x = e("Mixed_7c.", x, torch::max_pool2d(x, 3, 1, 1));
    return x.mean({2, 3});
  }

 private:
  using T = torch::Tensor;

  T unit(const std::string& name, const T& x, int stride = 1, int pad_y = 0, int pad_x = 0) const {
    const auto weight = [&](const char* part) { return weights_.at(name + part).to(torch::kDouble); };
    const T y = torch::conv2d(x, weight(".conv.weight"), {}, {stride, stride}, {pad_y, pad_x});
    return torch::relu(torch::batch_norm(y, weight(".bn.weight"), weight(".bn.bias"),
                                         weight(".bn.running_mean"), weight(".bn.running_var"), false, 0,
                                         1e-3, false));
  }

  // Sums of the pixels inside over their number.
  static T average(const T& x) {
    const T ones = torch::ones_like(x);
    return torch::avg_pool2d(x, 3, 1, 1) / torch::avg_pool2d(ones, 3, 1, 1);
  }

  T a(const std::string& n, const T& x) const {
    const T five = unit(n + "branch5x5_2", unit(n + "branch5x5_1", x), 1, 2, 2);
    const T once = unit(n + "branch3x3dbl_2", unit(n + "branch3x3dbl_1", x), 1, 1, 1);
    const T twice = unit(n + "branch3x3dbl_3", once, 1, 1, 1);
    return torch::cat({unit(n + "branch1x1", x), five, twice, unit(n + "branch_pool", average(x))}, 1);
  }

  T b(const std::string& n, const T& x) const {
    const T once = unit(n + "branch3x3dbl_2", unit(n + "branch3x3dbl_1", x), 1, 1, 1);
    const T twice = unit(n + "branch3x3dbl_3", once, 2);
    return torch::cat({unit(n + "branch3x3", x, 2), twice, torch::max_pool2d(x, 3, 2)}, 1);
  }

  T c(const std::string& n, const T& x) const {
    T once = unit(n + "branch7x7_1", x);
    once = unit(n + "branch7x7_2", once, 1, 0, 3);
    once = unit(n + "branch7x7_3", once, 1, 3, 0);
    T twice = unit(n + "branch7x7dbl_1", x);
    twice = unit(n + "branch7x7dbl_2", twice, 1, 3, 0);
    twice = unit(n + "branch7x7dbl_3", twice, 1, 0, 3);
    twice = unit(n + "branch7x7dbl_4", twice, 1, 3, 0);
    twice = unit(n + "branch7x7dbl_5", twice, 1, 0, 3);
    return torch::cat({unit(n + "branch1x1", x), once, twice, unit(n + "branch_pool", average(x))}, 1);
  }

  T d(const std::string& n, const T& x) const {
    const T three = unit(n + "branch3x3_2", unit(n + "branch3x3_1", x), 2);
    T seven = unit(n + "branch7x7x3_1", x);
    seven = unit(n + "branch7x7x3_2", seven, 1, 0, 3);
    seven = unit(n + "branch7x7x3_3", seven, 1, 3, 0);
    seven = unit(n + "branch7x7x3_4", seven, 2);
    return torch::cat({three, seven, torch::max_pool2d(x, 3, 2)}, 1);
  }

  T e(const std::string& n, const T& x, const T& pooled) const {
    const T three = unit(n + "branch3x3_1", x);
    const T twice = unit(n + "branch3x3dbl_2", unit(n + "branch3x3dbl_1", x), 1, 1, 1);
    return torch::cat({unit(n + "branch1x1", x), unit(n + "branch3x3_2a", three, 1, 0, 1),
                       unit(n + "branch3x3_2b", three, 1, 1, 0), unit(n + "branch3x3dbl_3a", twice, 1, 0, 1),
                       unit(n + "branch3x3dbl_3b", twice, 1, 1, 0), unit(n + "branch_pool", pooled)},
                      1);
  }

  const std::map<std::string, torch::Tensor>& weights_;
};

inline torch::Tensor literal_inception(const std::map<std::string, torch::Tensor>& weights,
                                       const torch::Tensor& pictures) {
  const torch::NoGradGuard no_gradient;
  return LiteralInception(weights)(pictures);
}

}  // namespace dpg
