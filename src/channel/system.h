// The machine as channels see it: atomics, fences, sleeping and waking. Channels take it as a parameter, so that a test
// can substitute an explorer of interleavings and run the same code.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "base/relax.h"

namespace weir {

// Two cache lines: neighbours on adjacent lines disturb each other if a prefetcher fetches lines in pairs.
inline constexpr std::size_t kApart = 128;
inline constexpr std::size_t kLineBytes = 64;

struct System {
  template <class T>
  using Atomic = std::atomic<T>;

  // Words of a cell that are stamped by one thread and read by another.
  static std::uint64_t load(const std::uint64_t& word, std::memory_order order) noexcept {
    return std::atomic_ref(const_cast<std::uint64_t&>(word)).load(order);
  }
  static void store(std::uint64_t& word, std::uint64_t value, std::memory_order order) noexcept {
    std::atomic_ref(word).store(value, order);
  }

  // Contents are plain memory; an explorer needs to know which thread accesses them when.
  static void note_read(const void*, std::size_t /*bytes*/) noexcept {}
  static void note_write(const void*, std::size_t /*bytes*/) noexcept {}

#if defined(__SANITIZE_THREAD__)
  // ThreadSanitizer does not support fences (gcc reports that as an error), so loads acquire individually there.
  static constexpr std::memory_order kScan = std::memory_order_acquire;
  static constexpr std::memory_order kSpread = std::memory_order_release;
  static constexpr std::memory_order kLightRelease = std::memory_order_release;
  static void acquire_fence() noexcept {}
  static void release_fence() noexcept {}
  static void full_fence() noexcept { tsan_fence_.fetch_add(1, std::memory_order_seq_cst); }
#else
  // The order of loads that an acquire_fence() follows.
  static constexpr std::memory_order kScan = std::memory_order_relaxed;
  // The order of stores that follow a release_fence().
  static constexpr std::memory_order kSpread = std::memory_order_relaxed;
  // The order of stores that a free light_fence() precedes.
  static constexpr std::memory_order kLightRelease = std::memory_order_relaxed;
  static void acquire_fence() noexcept { std::atomic_thread_fence(std::memory_order_acquire); }
  static void release_fence() noexcept { std::atomic_thread_fence(std::memory_order_release); }
  static void full_fence() noexcept { std::atomic_thread_fence(std::memory_order_seq_cst); }
#endif

  // A pair of fences for "write mine, read yours" on both sides: if one thread calls light_fence() between its write
  // and its read, and the other heavy_fence(), at least one of them sees the other's write. The light one costs nothing
  // if the kernel can make every running thread pass a barrier (membarrier(2)): the heavy side, which is about to
  // sleep, pays for both.
  static void light_fence() noexcept {
    if (has_membarrier_.load(std::memory_order_relaxed)) [[likely]] {
      std::atomic_signal_fence(std::memory_order_seq_cst);
    } else {
      full_fence();
    }
  }
  static void heavy_fence() noexcept;
  // Whether light_fence() orders only the compiler. Never changes after prepare().
  static bool is_light_fence_free() noexcept { return has_membarrier_.load(std::memory_order_relaxed); }
  // Call before the first channel is used: asks the kernel for what heavy_fence() needs.
  static void prepare() noexcept;

  // Sleeps while the word has that value, at most until `deadline_ns` on the clock of now_ns(); false: it has passed.
  // May return spuriously.
  static bool wait(std::atomic<std::uint32_t>& word, std::uint32_t value, std::int64_t deadline_ns) noexcept;
  static void wake(std::atomic<std::uint32_t>& word, int threads) noexcept;

  // Called the `spins`-th time in a row that nothing has changed.
  static void relax(int spins) noexcept { weir::relax(spins); }
  // Counts up, and then repeats the last values, so that the clock is still checked.
  static constexpr int next_spin(int spins) noexcept { return spins < (1 << 20) ? spins + 1 : spins - 15; }
  static void pause() noexcept { pause_core(); }

  static constexpr int kSpinsBeforePark = 300;  // pauses, then yields: some tens of microseconds

 private:
  static inline std::atomic<bool> has_membarrier_{false};
  static inline std::atomic<std::uint32_t> tsan_fence_{0};
};

}  // namespace weir
