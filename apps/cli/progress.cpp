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

bool Progress::due() const {
  return visible_ && std::chrono::steady_clock::now() - last_drawn_ >= kRedrawInterval;
}

void Progress::update(int done, int total, const std::string& note) {
  if (total <= 0 || (!due() && !(visible_ && done == total))) return;
  draw(static_cast<double>(done) / total,
       std::to_string(done) + "/" + std::to_string(total) + (note.empty() ? "" : ", " + note));
}

void Progress::update(double share, const std::string& note) {
  if (due()) draw(share, note);
}

void Progress::draw(double share, const std::string& text) {
  last_drawn_ = std::chrono::steady_clock::now();
  const double elapsed = std::chrono::duration<double>(last_drawn_ - start_).count();
  const int filled = static_cast<int>(kBarWidth * share);
  const std::string bar = std::string(filled, '#') + std::string(kBarWidth - filled, '.');
  const std::string left = share > 0 ? clock_text(elapsed / share * (1 - share)) : "?";
  std::fprintf(stderr, "\r\033[K%s [%s] %s left, %s", what_.c_str(), bar.c_str(), left.c_str(), text.c_str());
  std::fflush(stderr);
}

}  // namespace dpg::cli
