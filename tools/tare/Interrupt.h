// SIGINT and SIGTERM: temporaries go, exit 130 or 143. In: the paths a command is going to write. Out: nothing half-written stays behind.
// Holds: a thread waits for the signals, so cleaning up needs no async-signal-safe code; must start before any other thread does.
#pragma once
#include <string>

namespace tare::cli {

/// Blocks both signals in this thread and all later ones, and starts the thread that waits for them.
void startInterruptThread();
/// Writers make their temporaries as `.<name>.<pid>.*.tmp` in the folder of `path`; on a signal those of this process are removed.
void removeTemporariesOnInterrupt(const std::string &path);
/// Removes temporaries of this process beside the registered paths now (after a failure).
void removeTemporaries();

} // namespace tare::cli
