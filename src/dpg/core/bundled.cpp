#include "dpg/core/bundled.h"

#include <cstdlib>
#include <vector>

#include "dpg/core/error.h"

namespace dpg {

namespace fs = std::filesystem;

fs::path bundled(const std::string& relative, const char* variable, const std::string& what) {
  std::vector<fs::path> places;
  if (const char* chosen = std::getenv(variable)) places.emplace_back(chosen);
  std::error_code ignored;
  const fs::path program = fs::read_symlink("/proc/self/exe", ignored);
  if (!ignored) places.push_back(program.parent_path().parent_path() / "share" / "dpg" / relative);
  places.push_back(fs::path(DPG_SOURCE_ROOT) / relative);
  for (const fs::path& place : places)
    if (fs::exists(place)) return place;
  fail(what, " was not found (looked for ", places.front().string(), "); set ", variable, " to where it is");
}

}  // namespace dpg
