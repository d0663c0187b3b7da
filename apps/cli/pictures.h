// Folders of pictures.
#pragma once

#include <filesystem>
#include <vector>

namespace dpg::cli {

// Every picture in the folder that this build reads, sorted by name. Throws when there is none, and when two
// have the same name but for the extension: their results would be written to the same file.
std::vector<std::filesystem::path> pictures_in(const std::filesystem::path& folder);

}  // namespace dpg::cli
