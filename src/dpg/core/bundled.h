// Where the files that come with the project lie.
#pragma once

#include <filesystem>
#include <string>

namespace dpg {

// `relative` ("priors/faces128.pt", "presets") under share/dpg beside the installed program, or in the source
// tree the library was built from; the environment variable `variable`, where it is set, names it instead.
// `what` stands for it in the message when it is nowhere.
std::filesystem::path bundled(const std::string& relative, const char* variable, const std::string& what);

}  // namespace dpg
