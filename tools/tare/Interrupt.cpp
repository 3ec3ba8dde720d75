// The waiting thread of Interrupt.h. In: SIGINT, SIGTERM. Out: temporaries of this process are unlinked, then _exit(128 + signal).
#include "tools/tare/Interrupt.h"
#include <csignal>
#include <dirent.h>
#include <mutex>
#include <set>
#include <thread>
#include <unistd.h>

namespace tare::cli {

namespace {
/// The one piece of process-wide state: signals are process-wide.
struct Registry {
  std::mutex mutex;
  std::set<std::pair<std::string, std::string>> names; // folder, file name
};
Registry &registry() {
  static Registry instance;
  return instance;
}
} // namespace

static void removeIn(const std::string &folder, const std::string &name) {
  std::string prefix = "." + name + "." + std::to_string(::getpid()) + ".", suffix = ".tmp";
  DIR *directory = ::opendir(folder.c_str());
  if (!directory) return;
  while (dirent *entry = ::readdir(directory)) {
    std::string found = entry->d_name;
    if (found.size() > prefix.size() + suffix.size() && found.compare(0, prefix.size(), prefix) == 0 &&
        found.compare(found.size() - suffix.size(), suffix.size(), suffix) == 0)
      ::unlinkat(::dirfd(directory), found.c_str(), 0);
  }
  ::closedir(directory);
}

void removeTemporaries() {
  std::lock_guard lock(registry().mutex);
  for (auto &[folder, name] : registry().names) removeIn(folder, name);
}

void removeTemporariesOnInterrupt(const std::string &path) {
  size_t slash = path.rfind('/');
  std::lock_guard lock(registry().mutex);
  registry().names.insert(slash == std::string::npos ? std::pair<std::string, std::string>(".", path)
                                                     : std::pair(path.substr(0, slash + 1), path.substr(slash + 1)));
}

void startInterruptThread() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGINT);
  sigaddset(&set, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
  std::thread([set] {
    int signal = 0;
    while (sigwait(&set, &signal) != 0) {}
    // Twice: the command still runs, and a temporary may appear while the first pass looks.
    removeTemporaries();
    removeTemporaries();
    ::_exit(128 + signal);
  }).detach();
}

} // namespace tare::cli
