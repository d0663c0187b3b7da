// What the checkpoint tests share.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "dpg/checkpoint/sample_files.h"
#include "dpg/checkpoint/state_dict.h"
#include "dpg/core/test_folder.h"

namespace dpg::checkpoint::sample {

inline std::vector<float> values(const TensorView& tensor) {
  std::vector<float> out(static_cast<std::size_t>(tensor.elements()));
  copy_as_float(tensor, out);
  return out;
}

inline std::vector<float> values(const StateDict& state, std::string_view name) {
  const TensorView* tensor = state.find(name);
  if (tensor != nullptr) return values(*tensor);
  ADD_FAILURE() << "no tensor " << name;
  return {};
}

// The message with which a file is refused; empty when it is read.
inline std::string refusal(const std::string& bytes) {
  try {
    StateDict::parse(view(bytes), "sample.file");
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("sample.file"), std::string::npos) << error.what();
    return error.what();
  }
  return "";
}

#define EXPECT_REFUSED(bytes, part)                                                                 \
  do {                                                                                              \
    const std::string refused_with_ = ::dpg::checkpoint::sample::refusal(bytes);                    \
    EXPECT_NE(refused_with_.find(part), std::string::npos) << "message: '" << refused_with_ << "'"; \
  } while (false)

// A folder of its own for the running test, removed with its contents.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    const auto* test = testing::UnitTest::GetInstance()->current_test_info();
    path_ = std::filesystem::path(testing::TempDir()) /
            str("dpg-", test->test_suite_name(), "-", test->name(), "-", ::getpid());
    std::filesystem::create_directories(path_);
  }
  ~TemporaryFolder() { remove_folder(path_); }
  std::filesystem::path operator/(const std::string& name) const { return path_ / name; }

 private:
  std::filesystem::path path_;
};

inline void write_file(const std::filesystem::path& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

// A path below the shared folder.
inline std::filesystem::path shared(const std::string& name) {
  return std::filesystem::path(DPG_SHARED_DIR) / name;
}

}  // namespace dpg::checkpoint::sample
