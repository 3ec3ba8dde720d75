// Persistent worker threads and futex waits. A job is published by advancing `jobs`; a null job tells the workers to end.
#include "runtime/ThreadPool.h"
#include "runtime/CpuDevice.h"
#include <climits>
#include <csignal>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace tare {
namespace {
void pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}
void futex(std::atomic<uint32_t> &word, int operation, uint32_t value) {
  syscall(SYS_futex, reinterpret_cast<uint32_t *>(&word), operation | FUTEX_PRIVATE_FLAG, value, nullptr, nullptr, 0);
}
constexpr int kSpins = 4000; // about 50 to 100 microseconds: longer than the gap between two steps, shorter than a time slice
} // namespace

void WaitWord::waitWhile(uint32_t old, int spins) {
  for (int i = 0; i < spins; ++i) {
    if (word.load(std::memory_order_acquire) != old) return;
    pause();
  }
  while (word.load(std::memory_order_acquire) == old) {
    // Sleepers announce themselves before the kernel compares the word, and advance() changes the word before it looks for sleepers (both
    // sequentially consistent): either the kernel sees the new word or advance() sees the sleeper.
    sleepers.fetch_add(1, std::memory_order_seq_cst);
    futex(word, FUTEX_WAIT, old);
    sleepers.fetch_sub(1, std::memory_order_seq_cst);
  }
}

void WaitWord::advance() {
  word.fetch_add(1, std::memory_order_seq_cst);
  if (sleepers.load(std::memory_order_seq_cst) != 0) futex(word, FUTEX_WAKE, INT_MAX);
}

void Barrier::prepare(int threadCount, int spinCount) {
  arrived.store(0, std::memory_order_relaxed);
  stop.store(false, std::memory_order_relaxed);
  threads = threadCount, spins = spinCount;
}

Result<void> ThreadPool::start(int threads) {
  spinCount = threads <= physicalCores() ? kSpins : 0; // spinning against oneself only delays the others
  workers.resize(static_cast<size_t>(threads - 1));
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, &before); // the application's signals stay on its own threads
  Error failure(Status::Ok, "");
  for (int i = 1; i < threads && failure.code == Status::Ok; ++i) {
    Worker &worker = workers[static_cast<size_t>(i - 1)];
    worker.pool = this, worker.index = i;
    if (int code = pthread_create(&worker.thread, nullptr, work, &worker)) {
      failure = Error::format(Status::Limit, "cannot start a thread", "thread %d of %d (errno %d)", i, threads, code);
      workers.resize(static_cast<size_t>(i - 1));
    } else {
      count = i + 1;
    }
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (failure.code != Status::Ok) return failure;
  return {};
}

void *ThreadPool::work(void *argument) {
  auto *worker = static_cast<Worker *>(argument);
  ThreadPool &pool = *worker->pool;
  for (uint32_t seen = 0;; ++seen) {
    pool.jobs.waitWhile(seen, pool.spinCount);
    if (!pool.job) return nullptr;
    pool.job(pool.jobArgument, worker->index);
    if (pool.remaining.fetch_sub(1, std::memory_order_acq_rel) == 1) pool.finished.advance();
  }
}

void ThreadPool::run(void (*body)(void *, int), void *argument) {
  if (count == 1) return body(argument, 0);
  job = body, jobArgument = argument;
  remaining.store(count - 1, std::memory_order_relaxed);
  uint32_t before = finished.load();
  jobs.advance();
  body(argument, 0);
  finished.waitWhile(before, spinCount);
}

ThreadPool::~ThreadPool() {
  job = nullptr;
  jobs.advance();
  for (Worker &worker : workers) pthread_join(worker.thread, nullptr);
}

} // namespace tare
