#include "dpg/metrics/metric_weights.h"

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <system_error>

#include "dpg/core/error.h"

namespace dpg {
namespace {

namespace fs = std::filesystem;

bool is_file(const fs::path& path) {
  std::error_code ignored;
  return fs::is_regular_file(path, ignored);
}

// `name` may have one '*' in its last part, and a folder before it.
std::optional<fs::path> find_file(const fs::path& folder, const std::string& name) {
  const std::size_t star = name.find('*');
  if (star == std::string::npos) return is_file(folder / name) ? std::optional(folder / name) : std::nullopt;
  const std::string before = fs::path(name.substr(0, star)).filename().string(),
                    after = name.substr(star + 1);
  std::vector<fs::path> matches;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator((folder / name).parent_path(), ignored)) {
    const std::string file = entry.path().filename().string();
    if (file.size() >= before.size() + after.size() && file.starts_with(before) && file.ends_with(after) &&
        is_file(entry.path()))
      matches.push_back(entry.path());
  }
  // The order of a folder is arbitrary; the choice must not be.
  const auto first = std::min_element(matches.begin(), matches.end());
  return first == matches.end() ? std::nullopt : std::optional(*first);
}

std::optional<fs::path> find_any(const fs::path& folder, const std::vector<std::string>& names) {
  for (const std::string& name : names)
    if (auto found = find_file(folder, name)) return found;
  return std::nullopt;
}

template <class Items, class TextOf>
std::string joined(const Items& items, const std::string& separator, const TextOf& text_of) {
  std::string text;
  for (const auto& item : items) text += (text.empty() ? "" : separator) + text_of(item);
  return text;
}

std::string missing_sentence(const WantedWeights& wanted, const std::vector<std::optional<fs::path>>& parts,
                             const std::vector<fs::path>& folders) {
  const auto same = [](const std::string& name) { return name; };
  std::string sentence = str(wanted.metric, " is unavailable: its weights (", wanted.whole);
  if (!wanted.parts.empty())
    sentence += (wanted.parts.size() > 1 ? ", or together " : ", or ") +
                joined(wanted.parts, " and ",
                       [&](const std::vector<std::string>& names) { return joined(names, " or ", same); });
  sentence +=
      str(") are not in ",
          folders.empty() ? "any folder, for none was given"
                          : joined(folders, " or ", [](const fs::path& folder) { return folder.string(); }));
  std::string found;
  for (const auto& part : parts)
    if (part) found += (found.empty() ? "" : ", ") + part->string();
  if (!found.empty()) sentence += " (only " + found + " is there)";
  return sentence +
         "; make them with tools/export_metric_weights.py, or name their folder with --weights or "
         "$DPG_WEIGHTS";
}

}  // namespace

std::vector<fs::path> metric_weight_folders(const fs::path& chosen) {
  std::vector<fs::path> folders;
  const auto variable = [](const char* name) {
    const char* value = std::getenv(name);
    return fs::path(value ? value : "");
  };
  if (!chosen.empty()) folders.push_back(chosen);
  if (const fs::path named = variable("DPG_WEIGHTS"); !named.empty()) folders.push_back(named);
  // The XDG specification: a relative path there is to be ignored.
  if (const fs::path data = variable("XDG_DATA_HOME"); data.is_absolute())
    folders.push_back(data / "dpg" / "weights");
  else if (const fs::path home = variable("HOME"); !home.empty())
    folders.push_back(home / ".local" / "share" / "dpg" / "weights");
  return folders;
}

FoundWeights find_metric_weights(const WantedWeights& wanted, const std::vector<fs::path>& folders) {
  std::vector<std::optional<fs::path>> parts(wanted.parts.size());
  for (const fs::path& folder : folders) {
    if (const auto whole = find_file(folder, wanted.whole)) return {{*whole}, ""};
    for (std::size_t i = 0; i < parts.size(); ++i)
      if (!parts[i]) parts[i] = find_any(folder, wanted.parts[i]);
    if (parts.empty() ||
        !std::all_of(parts.begin(), parts.end(), [](const auto& part) { return part.has_value(); }))
      continue;
    FoundWeights found;
    for (const auto& part : parts) found.files.push_back(*part);
    return found;
  }
  return {{}, missing_sentence(wanted, parts, folders)};
}

}  // namespace dpg
