#include "progress.h"

#include <unistd.h>

#include <cmath>
#include <cstdio>

namespace dpg::cli {
namespace {

constexpr int kBarWidth = 30;
constexpr auto kRedrawInterval = std::chrono::milliseconds(100);

}  // namespace

std::string clock_text(double seconds) {
  const long whole = std::lround(std::max(seconds, 0.0));
  char text[48];
  if (whole >= 3600)
    std::snprintf(text, sizeof text, "%ld:%02ld:%02ld", whole / 3600, whole / 60 % 60, whole % 60);
  else
    std::snprintf(text, sizeof text, "%ld:%02ld", whole / 60, whole % 60);
  return text;
}

Progress::Progress(std::string what)
    : what_(std::move(what)),
      visible_(isatty(STDERR_FILENO) == 1),
      start_(std::chrono::steady_clock::now()),
      last_drawn_(start_ - kRedrawInterval) {}

Progress::~Progress() {
  if (visible_) std::fputs("\r\033[K", stderr);
}

void Progress::update(int done, int total, const std::string& note) {
  const auto now = std::chrono::steady_clock::now();
  if (!visible_ || total <= 0 || (now - last_drawn_ < kRedrawInterval && done < total)) return;
  last_drawn_ = now;
  const double elapsed = std::chrono::duration<double>(now - start_).count();
  const int filled = kBarWidth * done / total;
  const std::string bar = std::string(filled, '#') + std::string(kBarWidth - filled, '.');
  const std::string left = done > 0 ? clock_text(elapsed / done * (total - done)) : "?";
  std::fprintf(stderr, "\r\033[K%s [%s] %d/%d, %s left%s%s", what_.c_str(), bar.c_str(), done, total,
               left.c_str(), note.empty() ? "" : ", ", note.c_str());
  std::fflush(stderr);
}

}  // namespace dpg::cli
