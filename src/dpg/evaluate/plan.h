// What is to be evaluated, as one JSON file: pictures x tasks (an operator and a noise) x methods.
// docs/evaluation.md describes the file. Torch-free: whether operators, noises and settings exist is checked
// by who runs the plan.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace dpg::evaluate {

using Json = nlohmann::ordered_json;

struct PlannedTask {
  std::string name;    // of its folder
  std::string family;  // the name without that of the noise; the same where the task has a noise of its own
  std::string title, op, noise;
  std::string op_text;  // the operator as the plan has it, before "{plan}" was replaced
};

// Whether `names` has the task, in full or without its noise; an empty list has all.
bool among(const std::vector<std::string>& names, const PlannedTask& task);

// What a method is run with in one task.
struct MethodSettings {
  std::string method;
  std::string preset;              // or empty
  Json settings = Json::object();  // on top of the preset's
  int samples = 1;                 // of the posterior, for each picture
  bool best = false;               // of the samples the one with the smallest residual counts, not the first
};

struct PlannedMethod {
  std::string name, title;
  Json base = Json::object();         // method, preset, settings, samples, best_of
  Json presets = Json::object();      // task -> preset
  Json overrides = Json::object();    // task -> members that replace those of base
  std::vector<std::string> in_tasks;  // empty: in all

  bool takes(const PlannedTask& task) const;
  // For pictures of this side: a preset may be given as {"128": NAME, "256": NAME}, of which the one with the
  // nearest side is taken.
  MethodSettings in(const PlannedTask& task, int side) const;
};

// How the residual falls while one picture is restored several times with different seeds (Figure 2).
struct Evolution {
  int runs = 1;  // 1: what the evaluation has anyway
  int picture = 0;
  std::vector<std::string> tasks, methods;
};

struct Plan {
  std::string name, title, about;
  std::string folder;            // of the plan, absolute: what "{plan}" stands for
  std::filesystem::path images;  // folder of clean pictures; empty: those that come with the program
  int first = 0, count = 0;      // of the folder's pictures; count 0: all, otherwise at most so many
  int size = 0;                  // side of the squares they are made; 0: what the prior was trained on
  std::uint64_t seed = 0;
  int batch = 0;  // pictures at once; 0: as suits the device
  int shown = 4;  // pictures of each task in the report
  std::vector<PlannedTask> tasks;
  std::vector<PlannedMethod> methods;
  std::vector<std::string> metrics;  // see known_metrics
  Evolution evolution;

  const PlannedTask& task(const std::string& name) const;
  const PlannedMethod& method(const std::string& name) const;
};

// Of single pictures ("psnr", "ssim", "lpips_squeeze", ...) and of sets ("FID", "KID", "FD-googlenet", ...).
const std::vector<std::string>& picture_metrics();
const std::vector<std::string>& set_metrics();

// `file` stands for the plan in messages. Its folder is where a relative "images" starts, and (as an absolute
// path) what "{plan}" means in an operator. Throws one sentence that says where the plan is wrong.
Plan parse_plan(const std::string& text, const std::filesystem::path& file);
Plan read_plan(const std::filesystem::path& file);

// The plan with only the tasks (in full or without their noise) and the methods of these names, in its own
// order; an empty list takes all. Throws when a name is not in the plan, or nothing is left to do.
Plan part_of(Plan plan, const std::vector<std::string>& tasks, const std::vector<std::string>& methods);

}  // namespace dpg::evaluate
