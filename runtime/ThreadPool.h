// The threads of one context and the barrier between steps. In: a function to run on every thread. Out: when run() returns, all have finished.
// Waiting spins a little, then sleeps in a futex. The calling thread is thread 0. With a caller's own pool only the barrier is used.
#pragma once
#include "runtime/result.h"
#include <atomic>
#include <cstdint>
#include <pthread.h>
#include <vector>

namespace tare {

/// A counter that threads can wait on: spin first, futex after.
class WaitWord {
public:
  uint32_t load() const { return word.load(std::memory_order_acquire); }
  /// Returns when the word is no longer `old`.
  void waitWhile(uint32_t old, int spins);
  void advance();

private:
  std::atomic<uint32_t> word{0};
  std::atomic<uint32_t> sleepers{0};
};

/// All `threads` meet here between steps; the last to arrive decides for everybody whether the run goes on.
class Barrier {
public:
  /// `stop` is asked by the last thread to arrive, before the others are let go.
  void prepare(int threads, int spins);
  /// True: stop. `shouldStop()` runs on one thread only.
  template <typename F> bool arrive(F shouldStop) {
    uint32_t now = round.load();
    if (arrived.fetch_add(1, std::memory_order_acq_rel) + 1 < threads) {
      round.waitWhile(now, spins);
    } else {
      arrived.store(0, std::memory_order_relaxed);
      stop.store(shouldStop(), std::memory_order_relaxed);
      round.advance();
    }
    return stop.load(std::memory_order_relaxed);
  }

private:
  std::atomic<int> arrived{0};
  std::atomic<bool> stop{false};
  WaitWord round;
  int threads = 1, spins = 0;
};

class ThreadPool {
public:
  ThreadPool() = default;
  ~ThreadPool();
  ThreadPool(const ThreadPool &) = delete;
  /// Starts threads 1 .. threads-1. Error Limit when the system gives no more.
  Result<void> start(int threads);
  /// Calls body(argument, i) for i in [0, threads), all at the same time; i = 0 on the calling thread.
  void run(void (*body)(void *, int), void *argument);
  int threads() const { return count; }
  int spins() const { return spinCount; }

private:
  struct Worker { ThreadPool *pool; int index; pthread_t thread; };
  static void *work(void *worker);
  std::vector<Worker> workers;
  WaitWord jobs, finished;
  std::atomic<int> remaining{0};
  void (*job)(void *, int) = nullptr;
  void *jobArgument = nullptr;
  int count = 1, spinCount = 0;
};

} // namespace tare
