// Progress of long work on stderr. In: stages and, inside a stage, layer names. Out: on a terminal one line that is rewritten (stage k/n, current layer, ETA);
// elsewhere one plain line per stage, and one more every ten seconds inside a long one. Nothing with --quiet; nothing on stdout ever.
#pragma once
#include "tools/tare/Console.h"
#include "llvm/ADT/ArrayRef.h"
#include <chrono>
#include <mutex>

namespace tare::cli {

class Progress {
public:
  struct Stage {
    const char *name;
    double weight; ///< usual share of the time, for the ETA
  };
  Progress(Console &console, llvm::ArrayRef<Stage> stages);
  ~Progress() { finish(); }
  /// Starts stage `index`; the one before is done.
  void stage(size_t index);
  /// The layer or file that is being worked on; may be called from any thread, as often as one likes.
  void working(llvm::StringRef what);
  /// Clears the line on a terminal; further calls do nothing. Called before anything else is printed.
  void finish();

private:
  using Clock = std::chrono::steady_clock;
  void draw(llvm::StringRef what);
  Console &console;
  llvm::SmallVector<Stage> stages;
  std::mutex mutex;
  Clock::time_point begun, stageBegun, drawn;
  size_t current = 0;
  bool terminal, started = false, finished = false;
};

} // namespace tare::cli
