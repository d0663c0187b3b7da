#include "pictures.h"

#include <algorithm>
#include <cctype>
#include <set>
#include <string>

#include "dpg/core/error.h"
#include "dpg/image/image.h"

namespace dpg::cli {

namespace fs = std::filesystem;

std::vector<fs::path> pictures_in(const fs::path& folder) {
  const std::vector<std::string> readable = readable_extensions();
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(folder)) {
    std::string extension = entry.path().extension().string();
    std::transform(extension.begin(), extension.end(), extension.begin(),
                   [](unsigned char c) { return std::tolower(c); });
    if (entry.is_regular_file() && std::find(readable.begin(), readable.end(), extension) != readable.end())
      files.push_back(entry.path());
  }
  check(!files.empty(), "the folder ", folder.string(), " holds no picture that this build reads");
  std::sort(files.begin(), files.end());
  std::set<fs::path> names;
  for (const fs::path& file : files)
    check(names.insert(file.stem()).second, "two pictures in ", folder.string(), " are called ",
          file.stem().string(), ", and both would be written to the same files; rename one");
  return files;
}

}  // namespace dpg::cli
