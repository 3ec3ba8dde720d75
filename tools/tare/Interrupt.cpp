// The waiting thread of Interrupt.h. In: SIGINT, SIGTERM. Out: compilers that this process started are killed (they
// inherit the blocked signals), its temporaries removed, then _exit(128 + signal).
#include "tools/tare/Interrupt.h"
#include "compiler/graph/TemporaryFolder.h"
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dirent.h>
#include <filesystem>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <unistd.h>
#include <vector>

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

/// Compilers' files in the folder for temporaries (TemporaryFolder.h).
static void removeOwn() {
  const char *variable = std::getenv("TMPDIR");
  std::error_code error;
  std::filesystem::directory_iterator entries(variable && *variable ? variable : "/tmp", error), end;
  std::vector<std::filesystem::path> own;
  for (; !error && entries != end; entries.increment(error))
    for (const char *what : {"cuda", "link", "verify"})
      if (entries->path().filename().string().rfind(temporaryName(what) + "-", 0) == 0) own.push_back(entries->path());
  for (auto &path : own) std::filesystem::remove_all(path, error);
}

void removeTemporaries() {
  std::lock_guard lock(registry().mutex);
  for (auto &[folder, name] : registry().names) removeIn(folder, name);
}

/// Every process below this one, children's children too.
static std::vector<int> descendants() {
  std::multimap<int, int> children;
  std::error_code error;
  for (std::filesystem::directory_iterator entries("/proc", error), end; !error && entries != end; entries.increment(error)) {
    FILE *file = std::fopen((entries->path() / "stat").c_str(), "re");
    if (!file) continue;
    char text[512];
    size_t size = std::fread(text, 1, sizeof text - 1, file);
    std::fclose(file);
    text[size] = 0;
    const char *name = std::strrchr(text, ')'); // the name may hold anything, brackets too
    int parent = 0;
    if (name && std::sscanf(name + 1, " %*c %d", &parent) == 1) children.emplace(parent, std::atoi(text));
  }
  std::vector<int> below{::getpid()};
  for (size_t i = 0; i < below.size(); ++i)
    for (auto [at, last] = children.equal_range(below[i]); at != last; ++at) below.push_back(at->second);
  below.erase(below.begin());
  return below;
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
    // The command still runs: compilers are stopped first, and killed when this process is gone, so that no thread goes
    // on to the next one or tells that one was killed. Twice: one, or a temporary, may appear while the first pass looks.
    std::vector<int> stopped;
    for (int pass = 0; pass < 2; ++pass) {
      stopped = descendants();
      for (int process : stopped) ::kill(process, SIGSTOP);
      removeTemporaries(), removeOwn();
    }
    const pid_t self = ::getpid(), reaper = stopped.empty() ? -1 : ::fork();
    if (reaper == 0)
      for (int waited = 0; ::getppid() == self && waited < 1000; ++waited) ::usleep(1000);
    if (reaper <= 0)
      for (int process : stopped) ::kill(process, SIGKILL);
    ::_exit(128 + signal);
  }).detach();
}

} // namespace tare::cli
