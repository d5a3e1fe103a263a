// Memory as C++ sees it, one step at a time: per location all stores in modification order, and per thread a view,
// which says from which store on it may read. Knows neither schedules nor fibers.
//
// This is the promise-free machine of "A promising semantics for relaxed-memory concurrency" (Kang et al., POPL 2017):
// - A load reads any store that is not older than the thread's view. Stores go anywhere in the modification order
//   behind the view, not only to its end (2+2W is seen). A read-modify-write goes directly behind the store it reads.
// - A release store carries the thread's view; who acquires it, by the load or by a fence behind a relaxed load, takes
//   it over. A relaxed store carries the view of the last fence that releases. Read-modify-writes pass on what the
//   store that they replace carried (release sequences, C++20).
// - full_fence() is a sequentially consistent fence: fences are in one order, and each knows what the earlier ones
// knew.
// - light_fence() and heavy_fence() are the pair of P1202: a heavy fence makes each other thread pass a barrier, but
// the
//   barrier counts only from the thread's last light (or full) fence, and from its next one on. Without light fences
//   the compiler may move things across, so a heavy fence alone orders nothing of the other thread.
// - Contents are plain: their accesses must be ordered by happens-before, else there is a race. Fences that are merely
//   in one order do not make happens-before.
// Not covered: loads that see stores which follow them in program order of another thread (load buffering, values out
// of thin air), seq_cst loads and stores (refused), consume (is acquire), mixed sizes.
#pragma once

#include <atomic>
#include <cstdint>
#include <span>
#include <vector>

namespace weir::explored {

inline constexpr int kMaxLocations = 64;
inline constexpr int kMaxThreads = 6;

// For each location the position in its modification order.
struct View {
  using Lane = std::uint8_t __attribute__((vector_size(16)));
  static constexpr int kLanes = kMaxLocations / 16;

  Lane lanes[kLanes] = {};

  std::uint8_t at(int x) const { return lanes[x / 16][x % 16]; }
  void set(int x, std::size_t position) { lanes[x / 16][x % 16] = static_cast<std::uint8_t>(position); }
  void join(const View& other) {
    for (int i = 0; i < kLanes; ++i) lanes[i] = lanes[i] > other.lanes[i] ? lanes[i] : other.lanes[i];
  }
  View masked(const View& mask) const {
    View result;
    for (int i = 0; i < kLanes; ++i) result.lanes[i] = lanes[i] & mask.lanes[i];
    return result;
  }
  bool covers(const View& other) const;
};

struct Store {
  std::uint64_t value = 0;
  View view;               // what its readers may take over
  std::uint32_t born = 0;  // how many stores the location had seen before
  bool is_update = false;  // a read-modify-write: nothing goes between it and the store before
};

class Memory {
 public:
  void reset();
  // Before the first plain location.
  void set_threads(int threads) { thread_count_ = threads; }
  // An atomic location; its first store is known to everybody.
  int add_atomic(std::uint64_t value);
  // Contents: one location for writes, and one per thread for reads. The first of them.
  int add_plain();
  int locations() const { return locations_; }
  std::vector<Store>& stores(int x) { return histories_[static_cast<std::size_t>(x)].stores; }
  std::uint32_t born(int x) const { return histories_[static_cast<std::size_t>(x)].born; }
  // The oldest store that the thread may read.
  std::size_t oldest(int thread, int x) const { return threads_[thread].now.at(x); }

  std::uint64_t read(int thread, int x, std::size_t position, std::memory_order order);
  // Whether the thread may read an older store with the same value that tells it no more. After that one it can do all
  // that it can do after this one: smaller views allow more.
  bool is_outdone(int thread, int x, std::size_t position);
  // Puts a store at that position: behind oldest(), and not in front of an update.
  void write(int thread, int x, std::size_t position, std::uint64_t value, std::memory_order order);
  // Replaces by `value` what was read at that position: the last, or one that no update follows.
  void update(int thread, int x, std::size_t position, std::uint64_t value, std::memory_order order);

  void acquire_fence(int thread);
  void release_fence(int thread);
  void full_fence(int thread);
  void light_fence(int thread);
  // The barrier that another thread's heavy_fence() makes this one pass.
  void pass_barrier(int thread);
  const View& fenced() const { return fenced_; }
  // Whether a fence of this thread would tell one that knows `fenced` anything.
  bool is_news(int thread, const View& fenced) const {
    return !fenced.covers(threads_[thread].acquired.masked(atomics_));
  }
  // The kernel looked at the word for this thread: it cannot read older ones any more.
  void see(int thread, int x, std::size_t position);

  // False: a race.
  bool plain_read(int thread, int x);
  bool plain_write(int thread, int x);

  // The same number for memories that live threads cannot tell apart: what nobody may read any more does not count.
  // `readers`: per location, the live threads that ever touch it; `only_last`: they read the last store and no other.
  std::uint64_t hash(std::uint32_t live, std::span<const std::uint32_t> readers, bool only_last);
  // After hash(): the position from which on stores count.
  std::size_t base(int x) const { return base_.at(x); }

 private:
  struct History {
    std::vector<Store> stores;
    std::uint32_t born = 0;
    bool is_plain = false;
  };
  struct ThreadView {
    View now;       // what the thread may not read behind
    View acquired;  // what it will be once an acquiring fence comes
    View released;  // what its relaxed stores carry
    View light;     // what it was at the last light fence
    View due;       // what barriers brought since then
  };
  void insert(int x, std::size_t position, Store store);

  int thread_count_ = 0;
  int locations_ = 0;
  std::vector<History> histories_{kMaxLocations};
  ThreadView threads_[kMaxThreads];
  View fenced_;   // what sequentially consistent fences have told each other
  View atomics_;  // all ones at atomic locations
  View base_;
};

// Mixes a word into a hash.
inline std::uint64_t mix(std::uint64_t hash, std::uint64_t word) {
  hash = (hash ^ word) * 0x9E3779B97F4A7C15U;
  return hash ^ (hash >> 29);
}

}  // namespace weir::explored
