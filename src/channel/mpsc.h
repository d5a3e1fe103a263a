// Many producers, one consumer: a ring in which producers claim positions by one compare-and-swap and publish through
// the stamp in the cell. Commands are popped in the order in which their positions were claimed.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include "channel/single_consumer.h"

namespace weir {

template <class T, Wait kWait = Wait::spin_then_park, class Sync = System>
class Mpsc : public SingleConsumer<Mpsc<T, kWait, Sync>, T, kWait, Sync> {
  using Consumer = SingleConsumer<Mpsc, T, kWait, Sync>;
  friend Consumer;

 public:
  explicit Mpsc(std::size_t capacity) : Consumer(capacity) {}

  // Any thread.
  Outcome try_push(const T& item) noexcept {
    const Claim claim = claim_positions(1);
    if (claim.outcome != Outcome::done) [[unlikely]]
      return claim.outcome;
    this->publish(claim.first, item);
    this->notify_pushed(1);
    return Outcome::done;
  }
  // Pushes as many as fit, contiguously and in order; none if the channel is closed.
  Moved try_push_batch(std::span<const T> items) noexcept {
    if (items.empty()) return {};
    const Claim claim = claim_positions(items.size());
    if (claim.count == 0) return {0, claim.outcome};
    this->publish(claim.first, items.first(claim.count));
    this->notify_pushed(claim.count);
    return {claim.count, claim.outcome};
  }

  // Any thread, any number of times. Pushes fail from now on; commands already pushed can still be popped.
  void close() noexcept {
    tail_.fetch_or(kClosed, std::memory_order_relaxed);  // publishes nothing but the tail itself
    is_closing_.store(true, std::memory_order_relaxed);  // a hint to check the tail; ordered by wake_all()'s fence
    this->wake_all();
  }
  bool is_closed() const noexcept { return (tail_.load(std::memory_order_relaxed) & kClosed) != 0; }

 private:
  // Part of the tail, so that no position can be claimed after closing: the number of commands left to pop is exact.
  static constexpr std::uint64_t kClosed = std::uint64_t{1} << 63;

  struct Claim {
    std::uint64_t first = 0;
    std::size_t count = 0;
    Outcome outcome = Outcome::done;  // done: all that were requested
  };
  Claim claim_positions(std::size_t wanted) noexcept {
    std::uint64_t tail = tail_.load(std::memory_order_relaxed);
    for (;;) {
      if ((tail & kClosed) != 0) return {0, 0, Outcome::closed};
      std::uint64_t head = head_seen_.load(Sync::kScan);  // pairs with the release below
      if (head <= tail && tail - head + wanted > this->capacity()) {
        head = this->head();
        head_seen_.store(head, std::memory_order_release);  // passes on what head() acquired
      }
      if (head > tail) {  // the tail was read before that head: others went ahead
        tail = tail_.load(std::memory_order_relaxed);
        continue;
      }
      const std::uint64_t used = tail - head;
      // More than full: the head was read before that tail. The caller decides whether to wait for a newer one.
      if (used >= this->capacity()) return {0, 0, Outcome::full};
      const std::size_t count = std::min<std::size_t>(wanted, this->capacity() - used);
      if (tail_.compare_exchange_weak(tail, tail + count, std::memory_order_relaxed)) {
        Sync::acquire_fence();  // after the load of head_seen_: the consumer has left these cells
        return {tail, count, count == wanted ? Outcome::done : Outcome::full};
      }
    }
  }
  // Nothing to pop: distinguishes `empty` from `closed`.
  Outcome outcome_when_empty() const noexcept {
    // Not the tail: a polling consumer would keep taking its line away from the producers (round trip 412 ns instead of
    // 280; Neoverse-V1, 2026-11).
    if (!is_closing_.load(std::memory_order_relaxed)) [[likely]]
      return Outcome::empty;
    const std::uint64_t tail = tail_.load(std::memory_order_relaxed);
    return tail == (kClosed | this->next()) ? Outcome::closed : Outcome::empty;
  }

  using Index = typename Sync::template Atomic<std::uint64_t>;
  alignas(kApart) typename Sync::template Atomic<bool> is_closing_{false};  // read by the consumer, written once
  alignas(kApart) Index tail_{0};
  Index head_seen_{0};  // no newer than the head; producers read this first, since the consumer writes the head's line
};

}  // namespace weir
