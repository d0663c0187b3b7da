#include "restore_job.h"

#include <torch/torch.h>

#include <cmath>
#include <cstdio>

#include "dpg/core/error.h"
#include "dpg/core/file.h"
#include "dpg/image/npy.h"
#include "dpg/report/heat.h"
#include "dpg/report/html.h"
#include "dpg/tensor/convert.h"
#include "interrupt.h"
#include "manifest.h"
#include "progress.h"

namespace dpg::cli {
namespace {

namespace fs = std::filesystem;

// x.png, "-mean" -> x-mean.png; "" and ".html" -> x.html
fs::path beside(const fs::path& output, const std::string& suffix, const std::string& extension = "") {
  const std::string end = extension.empty() ? output.extension().string() : extension;
  return output.parent_path() / (output.stem().string() + suffix + end);
}

// The samples after the first, their mean, and how much they differ at each pixel: the root mean square over
// the channels of the standard deviation, as numbers and as a picture.
void write_samples(const fs::path& output, const Tensor& samples) {
  for (std::int64_t k = 1; k < samples.size(0); ++k)
    write_image(beside(output, str("-", k + 1)), to_image(samples[k]));
  write_image(beside(output, "-mean"), to_image(samples.mean(0)));
  const Tensor deviation = samples.var(0, /*unbiased=*/true).mean(0, /*keepdim=*/true).sqrt().contiguous();
  write_npy(beside(output, "-std", ".npy"), deviation.sizes(),
            {deviation.data_ptr<float>(), static_cast<std::size_t>(deviation.numel())});
  const double top = std::max(deviation.max().item<double>(), 1e-3);
  write_image(beside(output, "-std"), with_scale(heat_map(to_image(deviation), top), top));
}

void write_trace(const fs::path& output, const Restored& restored) {
  write_text(beside(output, ".trace", ".json"), trace_json(restored.picture.trace));
  char seconds[32];
  std::snprintf(seconds, sizeof seconds, "%.1f", restored.picture.seconds);
  Facts facts = {{"seconds", seconds},
                 {"network calls", std::to_string(restored.picture.cost.network_calls)},
                 {"applications of A", std::to_string(restored.picture.cost.operator_calls)}};
  if (!restored.scores.empty()) {
    char text[96];
    std::snprintf(text, sizeof text, "%.2f dB", restored.scores[0].psnr);
    facts.emplace_back("PSNR", text);
    std::snprintf(text, sizeof text, "%.4f", restored.scores[0].ssim);
    facts.emplace_back("SSIM", text);
    if (restored.scores[0].lpips) {
      std::snprintf(text, sizeof text, "%.4f", *restored.scores[0].lpips);
      facts.emplace_back("LPIPS squeeze", text);
    }
  }
  write_text(beside(output, ".trace", ".html"), trace_page(restored.picture.trace, facts));
}

void judge_picture(const Judge& judge, Restored& restored) {
  const Tensor truth = judge.truth_of(restored.problem.input, restored.problem.shape);
  const Tensor& samples = restored.picture.samples;
  for (std::int64_t k = 0; k < samples.size(0); ++k)
    restored.scores.push_back(judge.scores(samples.slice(0, k, k + 1), truth));
  if (samples.size(0) > 1) restored.mean_scores.push_back(judge.scores(samples.mean(0, true), truth));
}

Json scores_json(const Scores& scores) {
  return {{"psnr", scores.psnr},
          {"ssim", scores.ssim},
          {"lpips_squeeze", scores.lpips ? Json(*scores.lpips) : Json("unavailable")}};
}

}  // namespace

std::string run_job(const RestoreJob& job, const NetworkPrior& prior, const std::vector<Problem>& problems,
                    const std::vector<fs::path>& outputs, const std::function<void(const Restored&)>& done) {
  std::optional<Judge> judge;
  if (!job.truth.empty()) {
    judge.emplace(job.truth, job.weights, prior.device());
    for (const Problem& problem : problems)
      judge->truth_of(problem.input, problem.shape);  // missing: say so now
  }
  const auto batches = batches_of(problems, job.plan.batch);
  Progress progress("restoring");
  std::size_t first = 0;
  for (const std::vector<Problem>& batch : batches) {
    if (Interrupt::asked() && first > 0) break;
    const auto watcher = [&](int step, int total, const std::function<double()>& ratio) {
      if (!progress.due()) return;
      char note[64];
      std::snprintf(note, sizeof note, "residual %.2f of the noise floor", ratio());
      const double share = static_cast<double>(batch.size()) / static_cast<double>(problems.size());
      const double before = static_cast<double>(first) / static_cast<double>(problems.size());
      progress.update(before + share * step / total, str("picture ", first + 1, " of ", problems.size(),
                                                         ", step ", step, " of ", total, ", ", note));
    };
    std::vector<RestoredPicture> pictures = restore_batch(job.plan, prior, batch, watcher);
    for (std::size_t i = 0; i < batch.size(); ++i) {
      Restored restored{batch[i], std::move(pictures[i]), outputs[first + i], {}, {}};
      if (restored.picture.stopped) restored.output = beside(restored.output, ".partial");
      if (judge) judge_picture(*judge, restored);
      write_image(restored.output, to_image(restored.picture.samples[0]));
      if (!restored.picture.stopped) {
        if (restored.picture.samples.size(0) > 1) write_samples(restored.output, restored.picture.samples);
        if (job.trace) write_trace(restored.output, restored);
        write_manifest(job, prior, batch, i, restored);
      }
      done(restored);
    }
    first += batch.size();
  }
  return judge ? judge->lpips_missing() : "";
}

std::string brief(const Restored& r) {
  char text[256];
  std::snprintf(text, sizeof text, "%s: residual %.4g (noise floor %.4g), %d network calls, %.1f s",
                r.output.string().c_str(), r.picture.residuals[0], r.picture.noise_floor,
                r.picture.cost.network_calls, r.picture.seconds);
  std::string line = text;
  const auto add = [&](const char* what, const Scores& s) {
    std::snprintf(text, sizeof text, "; %sPSNR %.2f dB, SSIM %.4f", what, s.psnr, s.ssim);
    line += text;
    if (!s.lpips) return;
    std::snprintf(text, sizeof text, ", LPIPS %.4f", *s.lpips);
    line += text;
  };
  if (!r.scores.empty()) add("", r.scores[0]);
  if (!r.mean_scores.empty()) add("mean of samples: ", r.mean_scores[0]);
  if (r.picture.stopped) line += "; interrupted, this is the estimate so far";
  return line;
}

Json summary(const Restored& r) {
  Json json = {{"input", r.problem.input.string()},
               {"output", r.output.string()},
               {"operator", r.problem.op},
               {"noise", r.problem.noise},
               {"residual", r.picture.residuals[0]},
               {"noise_floor", r.picture.noise_floor},
               {"seconds", r.picture.seconds},
               {"network_calls", r.picture.cost.network_calls},
               {"reverse_passes", r.picture.cost.reverse_passes},
               {"operator_calls", r.picture.cost.operator_calls},
               {"interrupted", r.picture.stopped}};
  if (!r.scores.empty()) json.update(scores_json(r.scores[0]));
  if (r.picture.residuals.size() > 1) {
    Json samples = Json::array();
    for (std::size_t k = 0; k < r.picture.residuals.size(); ++k) {
      Json sample = {{"residual", r.picture.residuals[k]}};
      if (!r.scores.empty()) sample.update(scores_json(r.scores[k]));
      samples.push_back(sample);
    }
    json["samples"] = samples;
    if (!r.mean_scores.empty()) json["mean"] = scores_json(r.mean_scores[0]);
  }
  return json;
}

}  // namespace dpg::cli
