#include "dpg/measure/external.h"

#include <torch/torch.h>

#include <algorithm>
#include <cstring>
#include <future>
#include <mutex>
#include <optional>

#include "dpg/core/error.h"
#include "dpg/image/npy.h"
#include "dpg/measure/child_process.h"
#include "dpg/measure/npy_stream.h"
#include "dpg/measure/spec.h"

namespace dpg {
namespace {

constexpr std::int64_t kMostNumbers = std::int64_t{1} << 31;  // in one answer: 8 GiB

std::string text_of(const std::vector<std::int64_t>& shape) {
  std::string text = "[";
  for (const std::int64_t axis : shape) text += str(text.size() > 1 ? ", " : "", axis);
  return text + "]";
}

std::vector<std::int64_t> with_batch(std::int64_t batch, std::vector<std::int64_t> shape) {
  shape.insert(shape.begin(), batch);
  return shape;
}

// The product, or -1 when it exceeds kMostNumbers.
std::int64_t count_of(const std::vector<std::int64_t>& shape) {
  std::int64_t count = 1;
  for (const std::int64_t axis : shape) {
    if (axis > kMostNumbers / std::max<std::int64_t>(count, 1)) return -1;
    count *= axis;
  }
  return count;
}

// The shape of one measurement; empty on the first request, which finds it.
using MeasurementShape = std::optional<std::vector<std::int64_t>>;

// One running copy of the program.
class Copy {
 public:
  Copy(std::vector<std::string> argv, double timeout) : argv_(std::move(argv)), timeout_(timeout) {}

  Tensor ask(const Tensor& x, const MeasurementShape& expected) {
    if (!process_) process_ = std::make_unique<ChildProcess>(argv_);
    try {
      return ask_process(x, expected);
    } catch (...) {
      process_.reset();  // whatever it still says belongs to a request that is over
      throw;
    }
  }

 private:
  Tensor ask_process(const Tensor& x, const MeasurementShape& expected) {
    std::optional<NpyStreamHeader> header;
    const auto answer_length = [&](std::span<const std::byte> start) -> std::optional<std::size_t> {
      header = parse_npy_start(start);
      if (!header) return std::nullopt;
      check_shape(header->shape, x.size(0), expected);
      return header->data_offset + static_cast<std::size_t>(count_of(header->shape)) * sizeof(float);
    };
    const Tensor pictures = x.detach().to(torch::kCPU, torch::kFloat32).contiguous();
    const std::vector<std::byte> request = encode_npy(
        pictures.sizes(), {pictures.data_ptr<float>(), static_cast<std::size_t>(pictures.numel())});
    const std::vector<std::byte> answer =
        process_->exchange(request, answer_length, std::chrono::duration<double>(timeout_));
    Tensor y = torch::empty(header->shape, torch::kFloat32);
    std::memcpy(y.data_ptr<float>(), answer.data() + header->data_offset,
                answer.size() - header->data_offset);
    check(torch::isfinite(y).all().item<bool>(), "the program ", argv_[0],
          " answered with NaN or infinity; every measurement must be a finite number");
    return y.to(x.device());
  }

  static void check_shape(const std::vector<std::int64_t>& shape, std::int64_t batch,
                          const MeasurementShape& expected) {
    const std::string wanted = text_of(with_batch(batch, expected.value_or(std::vector<std::int64_t>{})));
    if (expected) {
      check(shape == with_batch(batch, *expected), "an array of shape ", text_of(shape), " where ", wanted,
            " is needed (its first answer set the shape of one measurement)");
    } else {
      check(shape.size() >= 2 && shape[0] == batch && count_of(shape) > 0, "an array of shape ",
            text_of(shape), " where [", batch, ", ...] is needed: one measurement, not empty, for each of ",
            batch, " pictures");
    }
    check(count_of(shape) >= 0, "an array of shape ", text_of(shape), ", more than ", kMostNumbers,
          " numbers");
  }

  std::vector<std::string> argv_;
  double timeout_;
  std::unique_ptr<ChildProcess> process_;
};

// The program's running copies, shared by the copies of an operator.
class Session {
 public:
  explicit Session(const ExternalOptions& options) : options_(options) {
    for (int k = 0; k < options.jobs; ++k)
      copies_.emplace_back(split_command(options.command), options.timeout);
  }

  Tensor ask(const Tensor& x, const MeasurementShape& expected, bool counts) {
    const std::lock_guard hold(lock_);
    if (counts) spend(x.size(0));
    const auto jobs = std::min(static_cast<std::int64_t>(copies_.size()), x.size(0));
    if (jobs < 2) return copies_[0].ask(x, expected);
    const std::vector<Tensor> parts = x.tensor_split(jobs);
    std::vector<std::future<Tensor>> answers;
    for (std::size_t k = 0; k < parts.size(); ++k)
      answers.push_back(std::async(
          std::launch::async, [this, k, &parts, &expected] { return copies_[k].ask(parts[k], expected); }));
    for (const auto& answer : answers) answer.wait();  // one that fails is no reason to leave the others
    std::vector<Tensor> joined;
    for (auto& answer : answers) joined.push_back(answer.get());
    return torch::cat(joined);
  }

 private:
  void spend(std::int64_t pictures) {
    check(options_.budget == 0 || asked_ + pictures <= options_.budget, "the program ", options_.command,
          " may be asked for ", options_.budget, " pictures in all, ", asked_, " were asked and ", pictures,
          " more are wanted; raise budget= or use fewer samples");
    asked_ += pictures;
  }

  ExternalOptions options_;
  std::mutex lock_;
  std::vector<Copy> copies_;
  std::int64_t asked_ = 0;
};

class External : public Operator {
 public:
  External(const ImageShape& shape, const ExternalOptions& options)
      : shape_(shape), options_(options), session_(std::make_shared<Session>(options)) {
    const Tensor grey = torch::zeros({1, shape.channels, shape.height, shape.width});
    const Tensor y = session_->ask(grey, std::nullopt, false);
    output_shape_.assign(y.sizes().begin() + 1, y.sizes().end());
  }

  Tensor apply(const Tensor& x) const override {
    check_input(x);
    return session_->ask(x, output_shape_, true);
  }
  ImageShape input_shape() const override { return shape_; }
  std::vector<std::int64_t> output_shape() const override { return output_shape_; }
  std::string spec() const override { return options_.spec(); }
  std::shared_ptr<const Operator> to(torch::Device) const override {
    return std::make_shared<External>(*this);
  }

 private:
  ImageShape shape_;
  ExternalOptions options_;
  std::shared_ptr<Session> session_;
  std::vector<std::int64_t> output_shape_;
};

}  // namespace

void ExternalOptions::validate() const {
  check(timeout > 0 && timeout <= 86400, "exec: timeout ", timeout,
        " is outside 0 (not included) to 86400 seconds");
  check(budget >= 0, "exec: budget ", budget, " is negative; 0 means unlimited");
  check(jobs >= 1 && jobs <= 1024, "exec: jobs ", jobs, " is outside 1 to 1024");
}

std::string ExternalOptions::spec() const {
  return to_text(
      {"exec",
       {{"", command}, {"timeout", number_text(timeout)}, {"budget", str(budget)}, {"jobs", str(jobs)}}});
}

std::shared_ptr<const Operator> make_external(const ImageShape& shape, const ExternalOptions& options) {
  options.validate();
  return std::make_shared<External>(shape, options);
}

std::vector<std::string> split_command(const std::string& command) {
  std::vector<std::string> words;
  std::string word;
  char quote = 0;
  bool in_word = false;
  for (std::size_t i = 0; i < command.size(); ++i) {
    const char c = command[i];
    if (quote ? c == quote : (c == '\'' || c == '"')) {
      quote = quote ? 0 : c;
      in_word = true;
    } else if (c == '\\' && quote != '\'' && i + 1 < command.size()) {
      word += command[++i];
      in_word = true;
    } else if (!quote && (c == ' ' || c == '\t')) {
      if (in_word) words.push_back(std::move(word)), word.clear();
      in_word = false;
    } else {
      word += c;
      in_word = true;
    }
  }
  check(quote == 0, "a quote in the command ", command, " is not closed; add it");
  if (in_word) words.push_back(std::move(word));
  check(!words.empty(), "exec needs a program, as in exec:./forward.py");
  return words;
}

}  // namespace dpg
