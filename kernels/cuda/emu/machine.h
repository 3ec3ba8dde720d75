// The emulated multiprocessor: one block of threads as fibers on one host thread. In: a kernel body, its geometry, memory for stacks, shared memory and
// shadow. Out: the body's effects, or one Report that says what it did wrong, where. Must hold: freestanding (no libc, no globals, no thread-local data), so that
// the same header serves tests and code sections of engines; stacks are aligned to their size, so that a thread finds itself through its stack pointer.
#pragma once

namespace tare::emu {

using u8 = unsigned char;
using u16 = unsigned short;
using u32 = unsigned;
using u64 = unsigned long long;
using i64 = long long;

struct Dim3 {
  u32 x = 1, y = 1, z = 1;
};

/// A place in the kernel's text. Made by here(), which as a default argument names its caller.
struct Site {
  const char *file;
  u32 line, column;
  bool operator==(const Site &o) const { return file == o.file && line == o.line && column == o.column; }
};
#if defined(__clang__)
#define TARE_COLUMN __builtin_COLUMN()
#else
#define TARE_COLUMN 0
#endif
constexpr Site here(const char *file = __builtin_FILE(), u32 line = __builtin_LINE(), u32 column = TARE_COLUMN) { return {file, line, column}; }

enum class Fault : u32 {
  None,
  Race,             // two threads touch shared memory in one barrier epoch, one of them writes
  GlobalRace,       // the same for global memory, between threads or between blocks
  OutOfBounds,      // an index outside of the buffer
  Misaligned,       // a vector access at an address that its width does not divide
  Uninitialised,    // shared memory read before the block wrote it
  NotArrived,       // the target of a cp.async touched before the wait that delivers it
  DivergentBarrier, // some threads of a block are at a barrier that others never reach
  DivergentWarp,    // lanes of a warp are at different collectives, or some never come
  TooManyCopies,    // more cp.async in flight than the emulator keeps per thread
  StackOverflow,    // a thread's locals do not fit into its stack
  BadLaunch         // a geometry that no GPU takes
};

/// The first fault of a launch, shared by all host threads of it.
struct Report {
  u32 fault = 0; // Fault; set once, atomically
  char text[640] = {};
  Fault kind() const { return static_cast<Fault>(__atomic_load_n(&fault, __ATOMIC_ACQUIRE)); }
};

/// Appends words and numbers to a buffer of fixed size.
struct Text {
  char *at, *end;
  Text(char *buffer, u64 bytes) : at(buffer), end(buffer + bytes - 1) { *at = 0; }
  Text &operator<<(const char *s) {
    while (s && *s && at < end) *at++ = *s++;
    *at = 0;
    return *this;
  }
  Text &operator<<(i64 v) {
    char digits[24];
    int n = 0;
    u64 rest = v < 0 ? 0ull - static_cast<u64>(v) : static_cast<u64>(v);
    do digits[n++] = static_cast<char>('0' + rest % 10);
    while (rest /= 10);
    if (v < 0 && at < end) *at++ = '-';
    while (n && at < end) *at++ = digits[--n];
    *at = 0;
    return *this;
  }
  Text &operator<<(u32 v) { return *this << static_cast<i64>(v); }
  Text &operator<<(u64 v) { return *this << static_cast<i64>(v); }
  Text &operator<<(int v) { return *this << static_cast<i64>(v); }
  Text &operator<<(Dim3 d) { return *this << "(" << d.x << "," << d.y << "," << d.z << ")"; }
  Text &operator<<(Site s) { return *this << (s.file ? s.file : "?") << ":" << s.line; }
};

constexpr u32 kWarp = 32, kMaxThreads = 1024, kMaxCopies = 64;
constexpr u64 kStack = 64 << 10; // bytes per thread, its Fiber included; a power of two
constexpr u64 kCanary = 0x7a5e57ac4c0ffee5ull;

struct Cell { // shadow of two bytes of shared memory (shadow.h)
  u64 write, read;
};
struct Copy { // one cp.async in flight
  u32 at, bytes, valid, group;
  const u8 *from;
};

enum class State : u32 { Ready, InWarp, InBarrier, Done };

struct Machine;
struct Stats;
struct Fiber { // lies at the low end of its stack
  Machine *machine;
  void *sp;
  Dim3 thread;
  u32 tid, lane, warp;
  State state;
  Site site; // where it waits
  void *argument;
  bool vote, verdict; // of a voting barrier
  u32 group, copies; // cp.async groups committed, copies in flight
  Copy pending[kMaxCopies];
  u64 canary;
};

struct Warp {
  u32 arrived = 0, operation = 0, epoch = 1, alive = kWarp;
  Site site{};
};

using Body = void (*)(void *environment);

struct Machine {
  Dim3 block, blockDim, gridDim;
  u32 threads = 0, sharedBytes = 0;
  u8 *stacks = nullptr, *sharedMemory = nullptr;
  Cell *shadow = nullptr;
  Warp warps[kMaxThreads / kWarp];
  u32 epoch = 1, firstEpoch = 1; // of barriers; grows from block to block, so that the shadow needs no clearing
  u32 atBarrier = 0;
  Site barrier{};
  u64 random = 0, seed = 0;
  const char *name = "";
  Report *report = nullptr;
  void *scheduler = nullptr; // its stack pointer while a fiber runs
  Body body = nullptr;
  void *environment = nullptr;
  Stats *stats = nullptr;
  bool failed = false;

  Fiber &fiber(u32 tid) { return *reinterpret_cast<Fiber *>(stacks + tid * kStack); }
  /// xorshift64*: which warp goes next.
  u32 next(u32 below) {
    random ^= random >> 12, random ^= random << 25, random ^= random >> 27;
    return static_cast<u32>(((random * 0x2545f4914f6cdd1dull) >> 33) % below);
  }
};

/// Saves the callee-saved registers on the running stack and continues on another one.
#if defined(__x86_64__)
__attribute__((naked, noinline)) inline void switchStack(void **save, void *load) {
  __asm__ volatile("pushq %rbp\n pushq %rbx\n pushq %r12\n pushq %r13\n pushq %r14\n pushq %r15\n"
                   "movq %rsp, (%rdi)\n movq %rsi, %rsp\n"
                   "popq %r15\n popq %r14\n popq %r13\n popq %r12\n popq %rbx\n popq %rbp\n ret\n");
}
#else
#error "the emulator's fiber switch is written for x86-64"
#endif

/// The running thread.
inline Fiber &self() { return *reinterpret_cast<Fiber *>(reinterpret_cast<u64>(__builtin_frame_address(0)) & ~(kStack - 1)); }

inline void yieldToScheduler(Fiber &f) { switchStack(&f.sp, f.machine->scheduler); }

/// Text for a report, or null when another thread was first.
inline bool claim(Machine &m, Fault kind) {
  u32 none = 0;
  m.failed = true;
  return __atomic_compare_exchange_n(&m.report->fault, &none, static_cast<u32>(kind), false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
}
inline Text preamble(Machine &m) {
  Text t(m.report->text, sizeof m.report->text);
  t << m.name << ": ";
  return t;
}
inline void epilogue(Machine &m, Text &t) { t << " [block " << m.block << ", seed " << m.seed << "]"; }

/// Ends the block with a fault of the running thread; does not return.
template <class... Words> [[noreturn]] __attribute__((noinline)) inline void fault(Fault kind, Site site, Words... words) {
  Fiber &f = self();
  Machine &m = *f.machine;
  if (claim(m, kind)) {
    Text t = preamble(m);
    t << site << ": thread " << f.tid << ": ";
    (t << ... << words);
    epilogue(m, t);
  }
  f.state = State::Done;
  for (;;) yieldToScheduler(f);
}

void flushStats(Machine &m, u32 warp); // stats.h

__attribute__((noinline)) inline void fiberMain() {
  Fiber &f = self();
  f.machine->body(f.machine->environment);
  Machine &m = *f.machine;
  if (f.canary != kCanary) fault(Fault::StackOverflow, f.site, "locals need more than ", kStack, " bytes");
  f.state = State::Done;
  Warp &w = m.warps[f.warp];
  if (--w.alive == 0 && m.stats) flushStats(m, f.warp);
  for (;;) yieldToScheduler(f);
}

/// Barrier of the whole block (bar.sync 0). All threads must come, and to the same place.
inline void barrier(Site site) {
  Fiber &f = self();
  Machine &m = *f.machine;
  if (m.atBarrier == 0) m.barrier = site;
  if (!(m.barrier == site))
    fault(Fault::DivergentBarrier, site, "is at this barrier while others of its block wait at ", m.barrier);
  f.site = site;
  if (++m.atBarrier < m.threads) {
    f.state = State::InBarrier;
    yieldToScheduler(f);
    return;
  }
  m.atBarrier = 0;
  if (m.stats)
    for (u32 w = 0; w < m.threads / kWarp; ++w) flushStats(m, w);
  ++m.epoch;
  bool all = true;
  for (u32 t = 0; t < m.threads; ++t) all &= m.fiber(t).vote;
  for (u32 t = 0; t < m.threads; ++t) m.fiber(t).state = State::Ready, m.fiber(t).verdict = all;
}

/// All 32 lanes meet; the last one to come runs `combine` over everyone's argument, once.
template <class A> inline void collective(u32 operation, Site site, A &mine, void (*combine)(Machine &, Warp &, A *const *lanes)) {
  Fiber &f = self();
  Machine &m = *f.machine;
  Warp &w = m.warps[f.warp];
  if (w.arrived == 0) w.operation = operation, w.site = site;
  if (w.operation != operation || !(w.site == site))
    fault(Fault::DivergentWarp, site, "lane ", f.lane, " is at this warp operation while other lanes wait at ", w.site);
  f.argument = &mine;
  f.site = site;
  if (++w.arrived < kWarp) {
    f.state = State::InWarp;
    yieldToScheduler(f);
    return;
  }
  w.arrived = 0;
  if (m.stats) flushStats(m, f.warp);
  A *lanes[kWarp];
  for (u32 l = 0; l < kWarp; ++l) lanes[l] = static_cast<A *>(m.fiber(f.warp * kWarp + l).argument);
  combine(m, w, lanes);
  for (u32 l = 0; l < kWarp; ++l) m.fiber(f.warp * kWarp + l).state = State::Ready;
}

/// Nobody can go on: names who waits where, and who is missing.
__attribute__((noinline)) inline void reportDeadlock(Machine &m) {
  bool inWarp = false;
  const Fiber *waiting = nullptr;
  u32 count = 0;
  for (u32 t = 0; t < m.threads; ++t) {
    Fiber &f = m.fiber(t);
    if (f.state == State::InWarp && !inWarp) waiting = &f, inWarp = true, count = 0;
    if (f.state == State::InBarrier && !waiting) waiting = &f;
    count += waiting && f.state == waiting->state && f.site == waiting->site;
  }
  if (!claim(m, inWarp ? Fault::DivergentWarp : Fault::DivergentBarrier)) return;
  Text t = preamble(m);
  t << waiting->site << ": thread " << waiting->tid << ": " << count << (inWarp ? " lanes wait at this warp operation" : " threads wait at this barrier") << "; thread ";
  for (u32 i = 0; i < m.threads; ++i) {
    Fiber &f = m.fiber(i);
    bool missing = !(f.state == waiting->state && f.site == waiting->site) && (!inWarp || f.warp == waiting->warp);
    if (!missing) continue;
    t << f.tid << (f.state == State::Done ? " has ended" : " waits at ");
    if (f.state != State::Done) t << f.site;
    break;
  }
  epilogue(m, t);
}

/// Runs one block to its end or to the first fault.
__attribute__((noinline)) inline void runBlock(Machine &m, Dim3 block) {
  m.block = block;
  m.failed = false;
  m.firstEpoch = ++m.epoch;
  m.atBarrier = 0;
  for (u32 i = 0; i < m.sharedBytes; ++i) m.sharedMemory[i] = 0xff; // NaN in f32, f16 and bf16
  u32 warps = m.threads / kWarp;
  for (u32 w = 0; w < warps; ++w) m.warps[w].arrived = 0, m.warps[w].alive = kWarp;
  for (u32 t = 0; t < m.threads; ++t) {
    Fiber &f = m.fiber(t);
    f.machine = &m, f.tid = t, f.lane = t % kWarp, f.warp = t / kWarp, f.state = State::Ready;
    f.thread = {t % m.blockDim.x, t / m.blockDim.x % m.blockDim.y, t / m.blockDim.x / m.blockDim.y};
    f.group = f.copies = 0, f.vote = f.verdict = false, f.canary = kCanary, f.site = {};
    u64 *top = reinterpret_cast<u64 *>(reinterpret_cast<u8 *>(&f) + kStack);
    top[-2] = reinterpret_cast<u64>(&fiberMain);
    for (int i = 3; i <= 8; ++i) top[-i] = 0;
    f.sp = top - 8;
  }
  for (;;) {
    u32 start = m.next(warps), step = 1 + 2 * m.next(4); // 1 or a prime: visits every warp unless it divides their number
    if (warps % step == 0) step = 1;
    bool progress = false, alive = false;
    for (u32 i = 0; i < warps && !m.failed; ++i) {
      u32 w = (start + i * step) % warps, first = m.next(kWarp);
      for (u32 l = 0; l < kWarp && !m.failed; ++l) {
        Fiber &f = m.fiber(w * kWarp + (first + l) % kWarp);
        if (f.state == State::Ready) {
          progress = true;
          switchStack(&m.scheduler, f.sp);
        }
        alive |= f.state != State::Done;
      }
    }
    if (m.failed || !alive) return;
    if (!progress) return reportDeadlock(m);
  }
}

} // namespace tare::emu
