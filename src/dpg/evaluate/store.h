// The folder of a run. Every file in it is written under another name and renamed, the record of a picture
// last: whenever the program ends, by whatever signal, what has a record is whole.
//
//   plan.json                      what the run is about, see begin()
//   truth/NAME.png                 the clean pictures
//   TASK/inputs/NAME.{png,json,npy}      measurements, as "dpg degrade" writes them
//   TASK/METHOD/NAME.png           restored
//   TASK/METHOD/NAME.json          its record: scores, residual, cost
//   TASK/METHOD/NAME.trace.json    the residual at each step
//   TASK/METHOD/NAME.manifest.json for "dpg rerun"
//   TASK/METHOD/runs/NAME-K.*      the same picture with other seeds
//   TASK/METHOD/samples/NAME-K.png samples of the posterior, where there are several
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

namespace dpg::evaluate {

using Json = nlohmann::ordered_json;

// One restored picture's place in a run.
struct Place {
  std::string task, method, picture;  // the picture's name without extension
  int run = 0;
};

class RunFolder {
 public:
  explicit RunFolder(std::filesystem::path root) : root_(std::move(root)) {}
  const std::filesystem::path& root() const { return root_; }

  std::filesystem::path truth(const std::string& picture) const;
  std::filesystem::path input(const std::string& task, const std::string& picture) const;
  std::filesystem::path method(const std::string& task, const std::string& method) const;
  // With the extension, as in ".png" or ".trace.json".
  std::filesystem::path file(const Place& place, const std::string& extension) const;
  std::filesystem::path sample(const Place& place, int number) const;
  void make_folders(const Place& place) const;

  // Starts a run, or goes on with it. `identity` is all that the results depend on: where the folder was
  // begun with another one, what differs is said and refused, unless `changed` allows it. `free` is kept
  // beside it and may differ.
  void begin(const Json& identity, const Json& free, bool changed) const;
  // What begin() kept as `free`; null for a folder that was not begun.
  Json kept() const;

  // The record, if it is there and belongs to this job, and if the picture is the one it was written for.
  std::optional<Json> record(const Place& place, const std::string& job) const;
  // Written last: from now on the picture is finished. A record with "cannot" has no picture.
  void write_record(const Place& place, const std::string& job, const Json& record) const;

  // Removes what killed writers left. Only when nobody writes.
  void sweep() const;

 private:
  std::filesystem::path root_;
};

// What differs between two JSON values, in words; empty when nothing does.
std::string differences(const Json& before, const Json& now);

}  // namespace dpg::evaluate
