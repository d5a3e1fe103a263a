// Where idle threads of the cpu device sleep, and how they are woken without a lock. Knows nothing of what they wait
// for.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/relax.h"

namespace weir::cpu {

// One round of a spin. Yields now and then, because there may be more threads than cores.
inline void spin(unsigned round) noexcept {
  if (round % 64 == 63) {
    yield_core();
  } else {
    pause_core();
  }
}

// Work must be published by a sequentially consistent store or read-modify-write, and `has_work` must check for it by
// sequentially consistent loads: then either the sleeper sees the work or the ringer sees the sleeper.
class Bell {
 public:
  // Sleeps until the next ring, unless there is work already. May return spuriously.
  template <class HasWork>
  void sleep_unless(HasWork&& has_work) noexcept {
    sleepers_.fetch_add(1, std::memory_order_seq_cst);  // pairs with the load of sleepers_ in ring()
    const std::uint32_t rings = rings_.load(std::memory_order_seq_cst);
    if (!has_work()) rings_.wait(rings, std::memory_order_acquire);  // pairs with the fetch_add in ring()
    sleepers_.fetch_sub(1, std::memory_order_seq_cst);
  }

  // Wakes up to `count` sleepers; costs one load if there are none.
  void ring(std::uint64_t count) noexcept {
    const std::uint32_t sleepers = sleepers_.load(std::memory_order_seq_cst);  // pairs with sleep_unless()
    if (sleepers == 0 || count == 0) return;
    rings_.fetch_add(1, std::memory_order_seq_cst);  // pairs with the wait in sleep_unless()
    if (count >= sleepers) {
      rings_.notify_all();
    } else {
      for (std::uint64_t i = 0; i < count; ++i) rings_.notify_one();
    }
  }
  void ring_all() noexcept { ring(UINT64_MAX); }

 private:
  alignas(64) std::atomic<std::uint32_t> sleepers_{0};
  alignas(64) std::atomic<std::uint32_t> rings_{0};
};

// Lets one thread at a time through without blocking the others: a thread that finds it taken leaves a mark, and the
// holder runs the body again. So every change is followed by a pass that sees it, on one thread or another.
class Turnstile {
 public:
  template <class Body>
  void pass(Body&& body) noexcept {
    // Release: the holder sees the changes made before this call. Pairs with the load and the exchange below.
    if (marks_.fetch_add(1, std::memory_order_acq_rel) != 0) return;
    std::uint32_t seen;
    do {
      seen = marks_.load(std::memory_order_acquire);  // pairs with the fetch_add of threads that left a mark
      body();
      // Pairs with the fetch_add of the next holder, which continues with this thread's plain fields.
    } while (!marks_.compare_exchange_strong(seen, 0, std::memory_order_acq_rel));
  }

 private:
  std::atomic<std::uint32_t> marks_{0};
};

}  // namespace weir::cpu
