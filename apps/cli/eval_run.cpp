#include "eval_run.h"

#include <torch/torch.h>

#include <algorithm>
#include <cstdio>

#include "dpg/core/bundled.h"
#include "dpg/core/error.h"
#include "dpg/core/file.h"
#include "dpg/core/fingerprint.h"
#include "dpg/measure/catalog.h"
#include "dpg/solve/catalog.h"
#include "dpg/tensor/convert.h"
#include "eval_inputs.h"
#include "interrupt.h"
#include "manifest.h"
#include "pictures.h"

namespace dpg::cli {
namespace {

namespace fs = std::filesystem;
using evaluate::Json;
using evaluate::Place;
using evaluate::PlannedMethod;
using evaluate::PlannedTask;
using evaluate::WorkBatch;

std::string fingerprint_of(const Json& json) {
  const std::string text = json.dump(-1, ' ', false, Json::error_handler_t::replace);
  return fingerprint({reinterpret_cast<const std::byte*>(text.data()), text.size()});
}

std::size_t smallest(const std::vector<double>& values) {
  return static_cast<std::size_t>(std::min_element(values.begin(), values.end()) - values.begin());
}

}  // namespace

Json machine_json(const NetworkPrior& prior) {
  return {{"dpg", DPG_VERSION},
          {"tensor library", TORCH_VERSION},
          {"device", prior.device().str()},
          {"precision", precision_name(prior.network().precision())},
          {"threads", torch::get_num_threads()}};
}

EvalRun::EvalRun(evaluate::Plan plan, const fs::path& folder, RuntimeOptions runtime, const fs::path& weights)
    : plan_(std::move(plan)),
      folder_(folder),
      runtime_(std::move(runtime)),
      prior_(load_prior(runtime_)),
      scorer_(plan_.metrics, weights, prior_->device()) {
  const int side = plan_.size > 0 ? plan_.size : prior_->image_size();
  shape_ = {3, side, side};
  model_ = file_fingerprint(runtime_.model.empty() ? bundled_prior_path() : runtime_.model);

  const fs::path images = plan_.images.empty()
                              ? bundled("examples/pictures", "DPG_PICTURES", "the folder of example pictures")
                              : plan_.images;
  check(fs::is_directory(images), "there is no folder ", images.string(),
        " of clean pictures; say with --images where they are");
  const std::vector<fs::path> files = pictures_in(images);
  const auto first = static_cast<std::size_t>(plan_.first);
  check(first < files.size(), images.string(), " holds ", files.size(),
        " pictures, and the first one wanted is number ", first,
        " (from 0); name a folder that has it with --images");
  const std::size_t rest = files.size() - first;
  const std::size_t count = plan_.count == 0 ? rest : std::min(rest, static_cast<std::size_t>(plan_.count));
  for (std::size_t i = first; i < first + count; ++i)
    pictures_.push_back({files[i], files[i].stem().string(), file_fingerprint(files[i])});

  for (const PlannedTask& task : plan_.tasks) {
    make_operator(task.op, {shape_, plan_.seed, {0}});
    make_noise(task.noise);
    settings_.emplace_back();
    complete_.emplace_back();
    for (const PlannedMethod& method : plan_.methods) {
      settings_.back().push_back(method.in(task, side));
      const evaluate::MethodSettings& s = settings_.back().back();
      complete_.back().push_back(settings_for({s.method, s.preset, s.settings, 0, s.samples, 1}, shape_));
      make_solver(s.method, complete_.back().back());
    }
  }
}

std::vector<std::string> EvalRun::names() const {
  std::vector<std::string> names;
  for (const Picture& picture : pictures_) names.push_back(picture.name);
  return names;
}

std::vector<fs::path> EvalRun::truths() const {
  std::vector<fs::path> files;
  for (const Picture& picture : pictures_) files.push_back(folder_.truth(picture.name));
  return files;
}

Json EvalRun::identity() const {
  Json tasks = Json::object(), methods = Json::object(), pictures = Json::object();
  for (const PlannedTask& task : plan_.tasks)
    tasks[task.name] = {{"operator", task.op_text}, {"noise", task.noise}};
  for (std::size_t m = 0; m < plan_.methods.size(); ++m)
    for (std::size_t t = 0; t < plan_.tasks.size(); ++t) {
      if (!plan_.methods[m].takes(plan_.tasks[t])) continue;
      const evaluate::MethodSettings& s = settings_[t][m];
      methods[plan_.methods[m].name][plan_.tasks[t].name] = {
          {"method", s.method}, {"samples", s.samples}, {"best", s.best}, {"settings", complete_[t][m]}};
    }
  for (const Picture& picture : pictures_) pictures[picture.name] = picture.fingerprint;
  return {{"seed", plan_.seed},
          {"size", shape_.height},
          {"model", {{"fingerprint", model_}, {"class", runtime_.label}}},
          {"tasks", tasks},
          {"methods", methods},
          {"pictures", pictures},
          {"runs",
           {{"count", plan_.evolution.runs},
            {"picture", plan_.evolution.picture},
            {"tasks", plan_.evolution.tasks},
            {"methods", plan_.evolution.methods}}}};
}

void EvalRun::use_batch(int batch) {
  batch_ = batch;
  work_ = work_list(plan_, pictures_.size(), batch);
}

const evaluate::MethodSettings& EvalRun::settings(const WorkBatch& batch) const {
  return settings_[batch.task][batch.method];
}

Place EvalRun::place(const WorkBatch& batch, std::size_t picture) const {
  return {plan_.tasks[batch.task].name, plan_.methods[batch.method].name, pictures_[picture].name, batch.run};
}

std::string EvalRun::job(const WorkBatch& batch, std::size_t picture) const {
  const PlannedTask& task = plan_.tasks[batch.task];
  const evaluate::MethodSettings& s = settings(batch);
  return fingerprint_of({{"operator", task.op_text},
                         {"noise", task.noise},
                         {"method", s.method},
                         {"settings", complete_[batch.task][batch.method]},
                         {"samples", s.samples},
                         {"best", s.best},
                         {"operator_seed", plan_.seed},
                         {"seed", plan_.seed + static_cast<std::uint64_t>(batch.run)},
                         {"picture", pictures_[picture].fingerprint},
                         {"number", picture},
                         {"size", shape_.height},
                         {"model", model_},
                         {"class", runtime_.label}});
}

bool EvalRun::finished(const WorkBatch& batch) const {
  return std::all_of(batch.pictures.begin(), batch.pictures.end(), [&](std::size_t picture) {
    return folder_.record(place(batch, picture), job(batch, picture)).has_value();
  });
}

double EvalRun::weight(const WorkBatch& batch) const {
  const Json& complete = complete_[batch.task][batch.method];
  return static_cast<double>(network_calls(settings(batch).method, complete)) *
         static_cast<double>(batch.pictures.size()) * settings(batch).samples;
}

RestorePlan EvalRun::restore_plan(const WorkBatch& batch) const {
  const evaluate::MethodSettings& s = settings(batch);
  return {s.method,  s.preset, s.settings, plan_.seed + static_cast<std::uint64_t>(batch.run),
          s.samples, batch_};
}

std::string EvalRun::cannot(const RestorePlan& plan, const std::vector<Problem>& problems) const {
  const auto solver = make_solver(plan.method, settings_for(plan, shape_));
  try {
    solver->check_problem(join(problems, 1, prior_->network().config().downsampling()));
    return "";
  } catch (const Error& error) {
    // Goes into the results, which are to be the same wherever the plan lies.
    std::string why = error.what();
    for (std::size_t at = why.find(plan_.folder); at != std::string::npos; at = why.find(plan_.folder))
      why.replace(at, plan_.folder.size(), "{plan}");
    return why;
  }
}

bool EvalRun::restore(const WorkBatch& batch, const StepWatcher& watcher,
                      const std::function<void(const std::string&)>& said) const {
  const RestorePlan plan = restore_plan(batch);
  std::vector<Problem> problems;
  for (const std::size_t picture : batch.pictures)
    problems.push_back(
        kept_problem(folder_, plan_.tasks[batch.task],
                     {pictures_[picture].file, pictures_[picture].name, static_cast<std::uint32_t>(picture)},
                     shape_, plan_.seed));
  folder_.make_folders(place(batch, batch.pictures[0]));
  const std::string why = cannot(plan, problems);
  if (!why.empty()) {
    for (const std::size_t picture : batch.pictures)
      folder_.write_record(place(batch, picture), job(batch, picture), {{"cannot", why}});
    if (batch.pictures[0] != 0) return true;  // once is enough
    const Place there = place(batch, 0);
    said(str(there.task, ", ", there.method, ": cannot: ", why));
    return true;
  }
  std::vector<RestoredPicture> restored = restore_batch(plan, *prior_, problems, watcher);
  if (Interrupt::asked()) return false;
  for (std::size_t row = 0; row < problems.size(); ++row) {
    const std::size_t picture = batch.pictures[row];
    if (folder_.record(place(batch, picture), job(batch, picture))) continue;
    said(keep(batch, plan, problems, row, std::move(restored[row])));
  }
  return true;
}

std::string EvalRun::keep(const WorkBatch& batch, const RestorePlan& plan,
                          const std::vector<Problem>& problems, std::size_t row,
                          RestoredPicture picture) const {
  const std::size_t number = batch.pictures[row];
  const Place there = place(batch, number);
  const std::size_t chosen = settings(batch).best ? smallest(picture.residuals) : 0;
  const Tensor& samples = picture.samples;
  const fs::path output = folder_.file(there, ".png");
  write_image(output, to_image(samples[static_cast<std::int64_t>(chosen)]));
  fs::path first = output;  // what "dpg rerun" makes again: the first sample
  if (samples.size(0) > 1) {
    first = folder_.sample(there, 1);
    fs::create_directories(first.parent_path());
    for (std::int64_t k = 0; k < samples.size(0); ++k)
      write_image(folder_.sample(there, static_cast<int>(k) + 1), to_image(samples[k]));
  }
  write_text(folder_.file(there, ".trace.json"), trace_json(picture.trace));

  Json record = {
      {"task", there.task},
      {"method", there.method},
      {"image", pictures_[number].file.filename().string()},
      {"number", number},
      {"run", batch.run},
      {"seed", plan.seed},
      {"residual", picture.residuals[chosen]},
      {"noise_floor", picture.noise_floor},
      {"residual_ratio",
       picture.noise_floor > 0 ? Json(picture.residuals[chosen] / picture.noise_floor) : Json(nullptr)},
      {"network_calls", picture.cost.network_calls * plan.samples},
      {"reverse_passes", picture.cost.reverse_passes * plan.samples},
      {"operator_calls", picture.cost.operator_calls * plan.samples},
      {"seconds", picture.seconds},
      {"machine", machine_json(*prior_)}};
  if (plan.samples > 1) record["sample_residuals"] = picture.residuals, record["chosen"] = chosen + 1;
  scorer_.complete(record, output, folder_.truth(there.picture));
  RestoreJob job_of_manifest;
  job_of_manifest.plan = plan, job_of_manifest.runtime = runtime_;
  const double seconds = picture.seconds;
  write_manifest(job_of_manifest, *prior_, problems, row, {problems[row], std::move(picture), first, {}, {}});
  folder_.write_record(there, job(batch, number), record);

  char numbers[64] = "";
  if (record.contains("psnr") && record["psnr"].is_number())
    std::snprintf(numbers, sizeof numbers, "PSNR %.2f dB, ", record["psnr"].get<double>());
  char time[32];
  std::snprintf(time, sizeof time, "%.1f s", seconds);
  return str(there.task, ", ", there.method, ", ", output.filename().string(), ": ", numbers, time);
}

}  // namespace dpg::cli
