// dpg demo: what the program does, on pictures that come with it: one HTML page and one contact sheet.
#include <torch/torch.h>

#include <chrono>
#include <cmath>
#include <cstdio>
#include <memory>

#include "command.h"
#include "dpg/core/bundled.h"
#include "dpg/core/error.h"
#include "dpg/core/file.h"
#include "dpg/image/grid.h"
#include "dpg/image/transform.h"
#include "dpg/measure/catalog.h"
#include "dpg/measure/view.h"
#include "dpg/metrics/fidelity.h"
#include "dpg/report/heat.h"
#include "dpg/report/html.h"
#include "dpg/report/plot.h"
#include "dpg/tensor/convert.h"
#include "interrupt.h"
#include "pictures.h"
#include "progress.h"
#include "restoration.h"
#include "runtime.h"

namespace dpg::cli {
namespace {

namespace fs = std::filesystem;

struct Options {
  RuntimeOptions runtime;
  fs::path out = "demo";
  int steps = 50;
};

struct Task {
  std::string title, about, op, noise;
  int samples;
  std::vector<std::string> settings;  // beside the defaults
};

const std::vector<Task>& tasks() {
  static const std::vector<Task> list = {
      {"Box inpainting",
       "A quarter of the picture is missing. Four draws from the posterior: they agree where the picture was "
       "seen and differ where it was not.",
       "inpaint:box,height=64,width=64,position=centre",
       "gaussian:0.05",
       4,
       {"relaxation=1"}},
      {"Super-resolution x4", "32 x 32 noisy pixels to 128 x 128.", "sr:4", "gaussian:0.05", 1, {}},
      {"Gaussian deblurring", "A wide blur and noise.", "blur:sigma=1.5,size=31", "gaussian:0.05", 1, {}},
      {"Motion deblurring",
       "A camera that shook, and noise.",
       "motion:size=31,intensity=0.5",
       "gaussian:0.05",
       1,
       {}},
      {"JPEG as a black box",
       "Quality 10. The encoder is only ever run, never differentiated: the guidance comes from how the "
       "measurement changes when the estimate is shaken.",
       "jpeg:10",
       "none",
       1,
       {"mc=100"}},
  };
  return list;
}

struct Outcome {
  Image input, restored, truth;
  std::vector<Image> more;  // further samples
  Image map;                // of the deviation; empty for one sample
  double deviation = 0;     // its largest value
  RestoredPicture picture;
  double psnr_input = 0, psnr_restored = 0, ssim_restored = 0;
};

// The measurement as a picture of the clean one's size.
Image as_picture(const Tensor& y, const ImageShape& shape) {
  Image view = to_rgb(to_image(view_of(y).pictures));
  if (view.height != shape.height)
    view = resize(view, static_cast<int>(shape.height), static_cast<int>(shape.width));
  return view;
}

Outcome run_task(const Task& task, int steps, std::uint32_t number, const Image& truth,
                 const NetworkPrior& prior, const StepWatcher& watcher) {
  const ImageShape shape{3, truth.height, truth.width};
  const std::vector<std::uint32_t> images = {number};
  const auto A = make_operator(task.op, {shape, 1, images});
  const Measurement m = measure(A, make_noise(task.noise), to_tensor(truth), 1, images);
  const Problem problem{task.title, {}, A->spec(), m.noise->spec(), 1, number, shape, m.y};

  RestorePlan plan;
  plan.samples = task.samples;
  plan.batch = task.samples;
  plan.seed = 1;
  plan.settings["steps"] = steps;
  for (const std::string& setting : task.settings) set_from_text(plan.settings, setting);
  Outcome outcome;
  outcome.picture = std::move(restore_batch(plan, prior, {&problem, 1}, watcher)[0]);
  const Tensor& samples = outcome.picture.samples;
  outcome.truth = truth;
  outcome.input = as_picture(m.y, shape);
  outcome.restored = to_image(samples[0]);
  for (std::int64_t k = 1; k < samples.size(0); ++k) outcome.more.push_back(to_image(samples[k]));
  outcome.psnr_input = psnr(to_tensor(outcome.input), to_tensor(truth))[0];
  outcome.psnr_restored = psnr(samples.slice(0, 0, 1), to_tensor(truth))[0];
  outcome.ssim_restored = ssim(samples.slice(0, 0, 1), to_tensor(truth))[0];
  if (samples.size(0) > 1) {
    const Tensor deviation = samples.var(0).mean(0, true).sqrt();
    outcome.deviation = std::max(deviation.max().item<double>(), 1e-3);
    outcome.map = heat_map(to_image(deviation), outcome.deviation);
  }
  return outcome;
}

std::string number(double value, int digits) {
  char text[32];
  std::snprintf(text, sizeof text, "%.*f", digits, value);
  return text;
}

void add_to_page(Page& page, const Task& task, const Outcome& o) {
  page.heading(task.title).text(task.about);
  std::vector<CaptionedPicture> row = {{o.input, "input, " + number(o.psnr_input, 1) + " dB"},
                                       {o.restored, "restored, " + number(o.psnr_restored, 1) + " dB"},
                                       {o.truth, "truth"}};
  for (std::size_t k = 0; k < o.more.size(); ++k) row.push_back({o.more[k], str("sample ", k + 2)});
  if (!o.map.data.empty())
    row.push_back({with_scale(o.map, o.deviation), "standard deviation of the samples, pixel by pixel"});
  page.pictures(row, 256);
  Plot plot;
  plot.title = "residual of " + task.title;
  plot.x_label = "time step t", plot.y_label = "||y - A(x0)||";
  plot.y_scale = AxisScale::log, plot.x_falls = true;
  plot.height = 240;
  if (o.picture.noise_floor > 0) plot.reference = PlotReference{o.picture.noise_floor, "noise floor"};
  PlotSeries series;
  for (const TraceStep& step : o.picture.trace.steps) {
    series.x.push_back(step.t);
    series.y.push_back(step.residual);
  }
  plot.series = {series};
  page.figure(plot_svg(plot), "How the residual fell while the picture was restored.");
}

void write_results(const Options& o, const std::vector<Outcome>& outcomes, double seconds) {
  Page page("dpg: what it does");
  page.text(
      "Every picture below was degraded, and restored from that alone by sampling the posterior under the "
      "bundled "
      "face prior, with nothing tuned to a task. The clean pictures are samples of the same prior. Made by "
      "\"dpg demo\" in " +
      number(seconds, 0) + " seconds.");
  std::vector<std::vector<std::string>> rows;
  std::vector<Image> cells;
  for (std::size_t i = 0; i < outcomes.size(); ++i) {
    const Task& task = tasks()[i];
    const Outcome& result = outcomes[i];
    const RestoredPicture& p = result.picture;
    rows.push_back({task.title, task.op, number(result.psnr_input, 2), number(result.psnr_restored, 2),
                    number(result.ssim_restored, 3), number(p.residuals[0], 2), number(p.noise_floor, 2),
                    std::to_string(p.cost.network_calls), number(p.seconds, 1)});
    cells.push_back(with_caption(result.input, task.op.substr(0, task.op.find(','))));
    cells.push_back(with_caption(result.restored, "restored"));
    cells.push_back(with_caption(result.truth, "truth"));
    // A task without a map leaves its place empty.
    cells.push_back(result.map.data.empty() ? blank_image(3, 1, 1) : with_caption(result.map, "deviation"));
  }
  page.table({"task", "operator", "PSNR input", "PSNR restored", "SSIM", "residual", "noise floor",
              "network calls", "seconds"},
             rows);
  for (std::size_t i = 0; i < outcomes.size(); ++i) add_to_page(page, tasks()[i], outcomes[i]);
  write_text(o.out / "index.html", page.html());
  write_image(o.out / "sheet.png", make_grid(cells, 4, 4));
}

void demo(const Options& o) {
  const auto start = std::chrono::steady_clock::now();
  const std::vector<fs::path> files =
      pictures_in(bundled("examples/pictures", "DPG_PICTURES", "the folder of demo pictures"));
  check(files.size() >= tasks().size(), "the demo needs ", tasks().size(), " pictures");
  fs::create_directories(o.out);
  const auto prior = load_prior(o.runtime);
  const Interrupt interrupt;
  std::vector<Outcome> outcomes;
  for (std::size_t i = 0; i < tasks().size(); ++i) {
    const Task& task = tasks()[i];
    Outcome outcome;
    {
      Progress progress(task.title);
      outcome = run_task(
          task, o.steps, static_cast<std::uint32_t>(i), to_rgb(read_image(files[i])), *prior,
          [&](int done, int total, const std::function<double()>&) { progress.update(done, total); });
    }
    check(!Interrupt::asked(), "interrupted; nothing was written");
    std::printf("%-22s %5.2f dB -> %5.2f dB, residual %.4g (noise floor %.4g), %.1f s\n", task.title.c_str(),
                outcome.psnr_input, outcome.psnr_restored, outcome.picture.residuals[0],
                outcome.picture.noise_floor, outcome.picture.seconds);
    std::fflush(stdout);
    outcomes.push_back(std::move(outcome));
  }
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  write_results(o, outcomes, seconds);
  std::printf("%s and %s, %.0f s in all\n", (o.out / "index.html").string().c_str(),
              (o.out / "sheet.png").string().c_str(), seconds);
}

}  // namespace

void add_demo_command(CLI::App& app) {
  auto o = std::make_shared<Options>();
  CLI::App* command =
      app.add_subcommand("demo", "restore five pictures that come with the program, as a page");
  command->add_option("-o,--out", o->out, "folder for index.html and sheet.png")->capture_default_str();
  command->add_option("--steps", o->steps, "network calls for each picture")
      ->capture_default_str()
      ->check(CLI::Range(1, 1000));
  add_runtime_options(*command, o->runtime);
  command->callback([o] { demo(*o); });
}

}  // namespace dpg::cli
