#include "dpg/evaluate/store.h"

#include <algorithm>
#include <cctype>
#include <vector>

#include "dpg/core/error.h"
#include "dpg/core/file.h"
#include "dpg/core/fingerprint.h"

namespace dpg::evaluate {
namespace {

namespace fs = std::filesystem;

constexpr const char* kRunFormat = "dpg-run-1";
constexpr const char* kRecordFormat = "dpg-record-1";
constexpr std::size_t kNamed = 3;  // differences; the rest is counted
constexpr std::size_t kLongest = 60;

std::string shown(const Json& value) {
  const std::string text = value.dump(-1, ' ', false, Json::error_handler_t::replace);
  return text.size() <= kLongest ? text : text.substr(0, kLongest) + "...";
}

void compare(const Json& before, const Json& now, const std::string& where, std::vector<std::string>& found) {
  if (before.is_object() && now.is_object()) {
    for (const auto& [key, value] : before.items()) {
      const std::string there = where.empty() ? key : where + "." + key;
      if (now.contains(key))
        compare(value, now[key], there, found);
      else
        found.push_back(there + " is gone");
    }
    for (const auto& [key, value] : now.items())
      if (!before.contains(key)) found.push_back((where.empty() ? key : where + "." + key) + " is new");
  } else if (before != now) {
    found.push_back(where + " was " + shown(before) + " and is " + shown(now));
  }
}

// AtomicFile's temporary names: a known extension, a dot and six letters or digits.
bool is_left_over(const fs::path& file) {
  const std::string tail = file.extension().string();
  static const std::vector<std::string> ours = {".png", ".json", ".npy", ".csv", ".html"};
  return tail.size() == 7 &&
         std::all_of(tail.begin() + 1, tail.end(), [](unsigned char c) { return std::isalnum(c) != 0; }) &&
         std::find(ours.begin(), ours.end(), file.stem().extension().string()) != ours.end();
}

void remove_left_overs(const fs::path& folder) {
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(folder, ignored)) {
    if (entry.is_directory(ignored) && !entry.is_symlink(ignored)) remove_left_overs(entry.path());
    if (entry.is_regular_file(ignored) && is_left_over(entry.path())) fs::remove(entry.path(), ignored);
  }
}

std::optional<Json> read_json(const fs::path& file) {
  if (!fs::exists(file)) return {};
  Json json = Json::parse(read_text(file), nullptr, /*allow_exceptions=*/false);
  if (json.is_discarded()) return {};
  return json;
}

}  // namespace

std::string differences(const Json& before, const Json& now) {
  std::vector<std::string> found;
  compare(before, now, "", found);
  std::string text;
  for (std::size_t i = 0; i < std::min(found.size(), kNamed); ++i) text += (i == 0 ? "" : "; ") + found[i];
  if (found.size() > kNamed) text += str("; and ", found.size() - kNamed, " more");
  return text;
}

fs::path RunFolder::truth(const std::string& picture) const {
  return root_ / "truth" / (picture + ".png");
}

fs::path RunFolder::input(const std::string& task, const std::string& picture) const {
  return root_ / task / "inputs" / (picture + ".png");
}

fs::path RunFolder::method(const std::string& task, const std::string& method) const {
  return root_ / task / method;
}

fs::path RunFolder::file(const Place& place, const std::string& extension) const {
  const fs::path folder = method(place.task, place.method);
  return place.run == 0 ? folder / (place.picture + extension)
                        : folder / "runs" / str(place.picture, "-", place.run, extension);
}

fs::path RunFolder::sample(const Place& place, int number) const {
  return file(place, "").parent_path() / "samples" /
         str(file(place, "").filename().string(), "-", number, ".png");
}

void RunFolder::make_folders(const Place& place) const {
  fs::create_directories(file(place, "").parent_path());
}

void RunFolder::begin(const Json& identity, const Json& free, bool changed) const {
  std::error_code failed;
  fs::create_directories(root_ / "truth", failed);
  check(!failed, "the folder ", root_.string(), " can't be made: ", failed.message());
  const fs::path file = root_ / "plan.json";
  if (fs::exists(file)) {
    const std::optional<Json> before = read_json(file);
    check(before && before->is_object() && before->value("format", "") == kRunFormat &&
              before->contains("identity"),
          file.string(), " is no plan of a run of dpg; give another folder");
    const std::string what = differences((*before)["identity"], identity);
    if (what.empty() && before->value("free", Json()) == free) return;
    check(what.empty() || changed, "the folder ", root_.string(), " was begun with another plan: ", what,
          "; give another folder, or --continue-changed to keep what is unaffected and do the rest anew");
  }
  write_text(file, Json({{"format", kRunFormat}, {"identity", identity}, {"free", free}})
                           .dump(1, ' ', false, Json::error_handler_t::replace) +
                       "\n");
}

Json RunFolder::kept() const {
  const std::optional<Json> before = read_json(root_ / "plan.json");
  return before && before->is_object() ? before->value("free", Json()) : Json();
}

std::optional<Json> RunFolder::record(const Place& place, const std::string& job) const {
  std::optional<Json> record = read_json(file(place, ".json"));
  const bool ours = record && record->is_object() && record->value("format", "") == kRecordFormat &&
                    record->value("job", "") == job;
  if (!ours) return {};
  if (record->contains("cannot")) return record;
  const fs::path picture = file(place, ".png");
  // A plan that was changed and changed back may have left a newer picture beside an older record.
  if (!fs::exists(picture) || file_fingerprint(picture) != record->value("fingerprint", "")) return {};
  return record;
}

void RunFolder::write_record(const Place& place, const std::string& job, const Json& record) const {
  Json whole = {{"format", kRecordFormat}, {"job", job}};
  if (!record.contains("cannot")) whole["fingerprint"] = file_fingerprint(file(place, ".png"));
  whole.update(record);
  write_text(file(place, ".json"), whole.dump(1, ' ', false, Json::error_handler_t::replace) + "\n");
}

void RunFolder::sweep() const {
  remove_left_overs(root_);
}

}  // namespace dpg::evaluate
