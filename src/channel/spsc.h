// One producer, one consumer: a ring whose cells carry their own stamps, so that a command of one cache line crosses in
// one transfer and no index is shared on the hot path.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include "channel/single_consumer.h"

namespace weir {

template <class T, Wait kWait = Wait::spin_then_park, class Sync = System>
class Spsc : public SingleConsumer<Spsc<T, kWait, Sync>, T, kWait, Sync> {
  using Consumer = SingleConsumer<Spsc, T, kWait, Sync>;
  friend Consumer;

 public:
  explicit Spsc(std::size_t capacity) : Consumer(capacity) {}

  // For the producer.
  Outcome try_push(const T& item) noexcept {
    if (room(1) == 0) return is_closed() ? Outcome::closed : Outcome::full;
    const std::uint64_t tail = this->tail();
    if (!announce(tail, 1)) return Outcome::closed;
    this->publish(tail, item);
    this->notify_pushed(1);
    return Outcome::done;
  }
  // Pushes as many as fit, in order; none if the channel is closed.
  Moved try_push_batch(std::span<const T> items) noexcept {
    const std::size_t count = room(items.size());
    if (count != 0) {
      const std::uint64_t tail = this->tail();
      if (!announce(tail, count)) return {0, Outcome::closed};
      this->publish(tail, items.first(count));
      this->notify_pushed(count);
    }
    if (count == items.size()) return {count, Outcome::done};
    return {count, is_closed() ? Outcome::closed : Outcome::full};
  }

  // Any thread, any number of times. Pushes fail from now on; commands already pushed can still be popped.
  void close() noexcept {
    closed_.store(true, std::memory_order_relaxed);  // ordered by the fences of announce() and outcome_when_empty()
    this->wake_all();
  }
  bool is_closed() const noexcept { return closed_.load(std::memory_order_relaxed); }

 private:
  // No copy of its own: a second store for each push costs (a push of a reference takes 10.5 ns with it, 8.0 without;
  // Neoverse-V1, 2026-11).
  std::uint64_t tail() const noexcept { return announced_.load(std::memory_order_relaxed); }  // for the producer
  std::size_t room(std::size_t wanted) noexcept {
    const std::uint64_t tail = this->tail();
    std::uint64_t free = head_seen_ + this->capacity() - tail;
    if (free < wanted) {
      head_seen_ = this->head();
      free = head_seen_ + this->capacity() - tail;
    }
    return std::min<std::size_t>(wanted, free);
  }
  // Announces pushes before checking whether the channel is closed. A consumer that finds the channel closed and empty
  // then knows whether more will arrive: no completed push is ever lost.
  bool announce(std::uint64_t tail, std::size_t count) noexcept {
    announced_.store(tail + count, std::memory_order_relaxed);  // ordered by the fence
    Sync::light_fence();                                        // pairs with the heavy_fence() in outcome_when_empty()
    if (!is_closed()) [[likely]]
      return true;
    announced_.store(tail, std::memory_order_relaxed);  // nothing is published with it
    this->notify_pushed(1);                             // the consumer may sleep until it learns the outcome
    return false;
  }
  // Nothing to pop: distinguishes `empty` from `closed`.
  Outcome outcome_when_empty() noexcept {
    if (!is_closed()) [[likely]]
      return Outcome::empty;
    if (is_drained_) return Outcome::closed;
    Sync::heavy_fence();  // pairs with the light_fence() in announce()
    is_drained_ = announced_.load(std::memory_order_relaxed) == this->next();
    return is_drained_ ? Outcome::closed : Outcome::empty;
  }

  alignas(kApart) typename Sync::template Atomic<bool> closed_{false};  // read by both, written once
  // For the consumer: nothing will arrive any more. Set once, so that only one pop of a closed channel pays for the
  // heavy fence (356 ns each without this; Neoverse-V1, 2026-11).
  bool is_drained_ = false;
  alignas(kApart) std::uint64_t head_seen_ = 0;  // for the producer
  typename Sync::template Atomic<std::uint64_t> announced_{0};  // positions before this one are taken or being written
};

}  // namespace weir
