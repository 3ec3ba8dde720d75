// Drawing of progress (Progress.h). In: time and stage weights. Out: lines on stderr. Time is only shown, it never gets into an engine or a report.
#include "tools/tare/Progress.h"
#include "compiler/report/Writers.h"
#include <cstdlib>
#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

namespace tare::cli {

Progress::Progress(Console &console, llvm::ArrayRef<Stage> stages)
    : console(console), stages(stages.begin(), stages.end()), begun(Clock::now()), stageBegun(begun), drawn(begun) {
  const char *term = std::getenv("TERM");
  terminal = ::isatty(STDERR_FILENO) == 1 && !(term && llvm::StringRef(term) == "dumb") && !std::getenv("CI");
}

static void raw(const std::string &text) { (void)!::write(STDERR_FILENO, text.data(), text.size()); }

static size_t terminalWidth() {
  winsize size{};
  return ::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 20 ? size.ws_col : 80;
}

void Progress::draw(llvm::StringRef what) {
  auto now = Clock::now();
  double elapsed = std::chrono::duration<double>(now - begun).count(), done = 0, all = 0;
  for (size_t i = 0; i < stages.size(); i++) all += stages[i].weight, done += i < current ? stages[i].weight : 0;
  std::string line = fmt::format("[{}/{}] {}", current + 1, stages.size(), stages[current].name);
  if (!what.empty()) line += ": " + report::escapeTerminal(what);
  if (terminal) {
    if (done / all > 0.05) line += fmt::format("  ({:.0f} s, about {:.0f} s left)", elapsed, elapsed * (all - done) / done);
    size_t width = terminalWidth() - 1;
    raw("\r\x1b[K" + (line.size() > width ? line.substr(0, width) : line));
  } else {
    raw("tare: " + line + "\n");
  }
  drawn = now;
}

void Progress::stage(size_t index) {
  std::lock_guard lock(mutex);
  if (console.quiet || finished || index >= stages.size() || (started && index == current)) return;
  started = true, current = index, stageBegun = Clock::now();
  draw("");
}

void Progress::working(llvm::StringRef what) {
  std::lock_guard lock(mutex);
  if (console.quiet || finished || !started) return;
  auto pause = terminal ? std::chrono::milliseconds(100) : std::chrono::milliseconds(10000);
  if (Clock::now() - drawn >= pause) draw(what);
}

void Progress::finish() {
  std::lock_guard lock(mutex);
  if (!finished && terminal && started && !console.quiet) raw("\r\x1b[K");
  finished = true;
}

} // namespace tare::cli
