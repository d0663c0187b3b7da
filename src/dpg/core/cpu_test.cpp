#include "dpg/core/cpu.h"

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>
#include <string>

namespace dpg {
namespace {

TEST(Cpu, AmxIsWhatTheSystemSays) {
  std::ifstream file("/proc/cpuinfo");
  if (!file) GTEST_SKIP() << "there is no /proc/cpuinfo to compare with";
  std::ostringstream words;
  words << file.rdbuf();
  const auto says = [&](const char* word) { return words.str().find(word) != std::string::npos; };
  EXPECT_TRUE(has_amx() || !says(" amx_bf16"));  // Linux before 5.16 does not name it
  EXPECT_TRUE(says("GenuineIntel") || !has_amx());
}

TEST(Cpu, TheBestInstructionSetIsSupported) {
  EXPECT_TRUE(isa_supported(Isa::baseline));
  EXPECT_TRUE(isa_supported(best_isa()));
}

}  // namespace
}  // namespace dpg
