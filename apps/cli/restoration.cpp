#include "restoration.h"

#include <torch/torch.h>

#include <algorithm>
#include <chrono>
#include <cmath>

#include "dpg/core/error.h"
#include "dpg/solve/catalog.h"
#include "dpg/tensor/convert.h"
#include "gpu.h"
#include "interrupt.h"

namespace dpg::cli {
namespace {

constexpr int kFrames = 10;  // of the trace: estimates on the way
// Sample k of image i draws its numbers as image i + k * kSampleStride.
constexpr std::uint32_t kSampleStride = 1u << 24;
constexpr int kMostSamples = 255;

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

Image cut_out(const Tensor& picture, const ImageShape& shape) {
  return to_image(picture.slice(1, 0, shape.height).slice(2, 0, shape.width));
}

// One call of the solver: the samples first .. first + count - 1 of each problem.
class BatchRun {
 public:
  BatchRun(const RestorePlan& plan, const NetworkPrior& prior, std::span<const Problem> problems, int first,
           int count)
      : problems_(problems),
        measurement_(join(problems, count, prior.network().config().downsampling())),
        floors_(noise_floors(measurement_)),
        first_(first),
        count_(count) {
    // For the picture that was asked for, not for the larger one it may be part of: as its manifest says.
    solver_ = make_solver(plan.method, settings_for(plan, problems[0].shape));
    for (int k = 0; k < count; ++k)
      for (const Problem& problem : problems) {
        check(problem.image < kSampleStride, "picture number ", problem.image, " is too large");
        images_.push_back(problem.image + static_cast<std::uint32_t>(first + k) * kSampleStride);
      }
  }

  void run(const RestorePlan& plan, const Prior& prior, const StepWatcher& watcher,
           std::vector<RestoredPicture>& into) {
    const auto start = std::chrono::steady_clock::now();
    std::vector<std::vector<TraceFrame>> frames(problems_.size());
    const Result result =
        solver_->solve(measurement_, prior, Rng(plan.seed), images_, [&](const StepRecord& record) {
          if (first_ == 0) keep_frame(record, frames);
          if (watcher) watcher(record.done, record.total, [&] { return residual_ratio(record); });
          return Interrupt::asked() ? Next::stop : Next::go_on;
        });
    const Tensor pictures = result.image.to(torch::kCPU);
    const Tensor residuals =
        residual_norm(measurement_.y, measurement_.A->apply(pictures)).to(torch::kDouble);
    const double seconds = seconds_since(start);
    for (std::size_t i = 0; i < problems_.size(); ++i) {
      RestoredPicture& picture = into[i];
      for (int k = 0; k < count_; ++k) {
        const auto row = static_cast<std::int64_t>(static_cast<std::size_t>(k) * problems_.size() + i);
        const ImageShape& shape = problems_[i].shape;
        const Tensor sample =
            pictures.slice(0, row, row + 1).slice(2, 0, shape.height).slice(3, 0, shape.width).contiguous();
        picture.samples = picture.samples.defined() ? torch::cat({picture.samples, sample}) : sample;
        picture.residuals.push_back(residuals[row].item<double>());
      }
      picture.noise_floor = floors_[i];
      picture.seconds += seconds / static_cast<double>(problems_.size());
      picture.stopped = picture.stopped || result.stopped;
      if (first_ > 0) continue;
      picture.cost = result.cost;
      picture.trace = trace_of(result, i, std::move(frames[i]));
    }
  }

 private:
  double residual_ratio(const StepRecord& record) const {
    if (!record.residual.defined()) return std::nan("");
    const Tensor floors = torch::tensor(floors_, torch::kDouble);
    return (record.residual.to(torch::kCPU, torch::kDouble) / floors).mean().item<double>();
  }

  void keep_frame(const StepRecord& record, std::vector<std::vector<TraceFrame>>& frames) const {
    const bool due = record.done == 1 ||
                     record.done * kFrames / record.total != (record.done - 1) * kFrames / record.total;
    if (!due) return;
    for (std::size_t i = 0; i < frames.size(); ++i)
      frames[i].push_back({record.t, cut_out(record.x0[static_cast<std::int64_t>(i)], problems_[i].shape)});
  }

  Trace trace_of(const Result& result, std::size_t i, std::vector<TraceFrame> frames) const {
    Trace trace;
    trace.title = problems_[i].input.filename().string();
    trace.method = solver_->name();
    trace.op = problems_[i].op, trace.noise = problems_[i].noise;
    trace.noise_floor = floors_[i];
    const std::vector<double> residuals = result.history.residual_of(static_cast<std::int64_t>(i));
    for (std::size_t k = 0; k < residuals.size(); ++k)
      trace.steps.push_back({result.history.t[k], residuals[k]});
    trace.frames = std::move(frames);
    return trace;
  }

  std::span<const Problem> problems_;
  Measurement measurement_;
  std::vector<double> floors_;
  int first_, count_;
  std::unique_ptr<Solver> solver_;
  std::vector<std::uint32_t> images_;
};

[[noreturn]] void refuse_batch(const Prior& prior, const ImageShape& shape, int batch) {
  const int fits = std::min(batch_that_fits(prior, shape.height, shape.width), batch - 1);
  fail("the GPU's memory does not hold ", batch, batch == 1 ? " picture of " : " pictures of ", shape.width,
       "x", shape.height,
       fits > 0 ? str(" at once; about --batch ", fits, " would fit")
                : std::string("; use smaller pictures, another GPU or --device cpu"));
}

}  // namespace

Json settings_for(const RestorePlan& plan, const ImageShape& shape) {
  Json settings = Json::object();
  if (!plan.preset.empty()) {
    const Preset preset = load_preset(plan.preset);
    check(preset.method == plan.method, "the preset ", plan.preset, " is for the method ", preset.method,
          ", not for ", plan.method);
    settings = preset_settings(preset, static_cast<double>(shape.elements()));
  }
  settings.update(plan.settings);
  return complete_settings(plan.method, settings);
}

std::vector<RestoredPicture> restore_batch(const RestorePlan& plan, const NetworkPrior& prior,
                                           std::span<const Problem> problems, const StepWatcher& watcher) {
  check(plan.samples >= 1 && plan.samples <= kMostSamples, "--samples ", plan.samples, " must lie in 1 to ",
        kMostSamples);
  std::vector<RestoredPicture> pictures(problems.size());
  const int at_once = std::max(1, plan.batch / static_cast<int>(problems.size()));
  // Interrupted or not, the first samples are begun: their estimate is what an interrupted run keeps.
  for (int first = 0; first < plan.samples && (first == 0 || !Interrupt::asked()); first += at_once) {
    const int count = std::min(at_once, plan.samples - first);
    try {
      BatchRun(plan, prior, problems, first, count)
          .run(plan, prior,
               watcher
                   ? [&](int done, int total,
                         const std::function<double()>&
                             ratio) { watcher(first * total + done * count, plan.samples * total, ratio); }
                   : StepWatcher(),
               pictures);
    } catch (const c10::OutOfMemoryError&) {
      refuse_batch(prior, problems[0].shape, count * static_cast<int>(problems.size()));
    }
  }
  return pictures;
}

std::vector<std::vector<Problem>> batches_of(const std::vector<Problem>& problems, int batch) {
  std::vector<std::vector<Problem>> batches;
  for (const Problem& problem : problems) {
    const bool joins = !batches.empty() && static_cast<int>(batches.back().size()) < batch &&
                       alike(batches.back().front(), problem);
    if (joins)
      batches.back().push_back(problem);
    else
      batches.push_back({problem});
  }
  return batches;
}

}  // namespace dpg::cli
