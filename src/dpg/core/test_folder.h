// For tests: clears away a folder of files. Not std::filesystem::remove_all: the LibTorch 2 wheels export a
// copy of that function which does not work, and the linker prefers it.
#pragma once

#include <filesystem>
#include <system_error>

namespace dpg {

inline void remove_folder(const std::filesystem::path& folder) {
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(folder, ignored)) {
    if (entry.is_directory(ignored) && !entry.is_symlink(ignored)) remove_folder(entry.path());
    std::filesystem::remove(entry.path(), ignored);
  }
  std::filesystem::remove(folder, ignored);
}

}  // namespace dpg
