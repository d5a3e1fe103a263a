// Many producers, many consumers: a ring in which both sides claim positions by one compare-and-swap. The stamp in a
// cell decides whose turn it is: position = the producer of that position, position + 1 = its consumer.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include "channel/blocking.h"
#include "channel/cells.h"

namespace weir {

template <class T, Wait kWait = Wait::spin_then_park, class Sync = System>
class Mpmc : public Blocking<Mpmc<T, kWait, Sync>, T, kWait, Sync, PassOn::yes> {
 public:
  // At least two cells: with one, "published" and "free for the next" would be the same stamp.
  explicit Mpmc(std::size_t capacity) : cells_(std::max<std::size_t>(2, ring_capacity(capacity))) {
    Sync::prepare();
    for (std::uint64_t i = 0; i < cells_.size(); ++i) cells_.set_stamp(cells_.at(i), i, std::memory_order_relaxed);
  }

  // Any thread.
  Outcome try_push(const T& item) noexcept {
    const Claim claim = claim_positions(tail_, 0, 1);
    if (claim.count == 0) [[unlikely]]
      return (claim.first & kClosed) != 0 ? Outcome::closed : Outcome::full;
    write(*claim.cell, claim.first, item);
    this->notify_pushed(1);
    return Outcome::done;
  }
  // Pushes as many as fit, contiguously and in order; none if the channel is closed.
  Moved try_push_batch(std::span<const T> items) noexcept {
    if (items.empty()) return {};
    const Claim claim = claim_positions(tail_, 0, items.size());
    if (claim.count == 0) return {0, (claim.first & kClosed) != 0 ? Outcome::closed : Outcome::full};
    for (std::size_t i = 0; i < claim.count; ++i) write(cells_.at(claim.first + i), claim.first + i, items[i]);
    this->notify_pushed(claim.count);
    return {claim.count, claim.count == items.size() ? Outcome::done : Outcome::full};
  }
  Outcome try_pop(T& item) noexcept {
    const Claim claim = claim_positions(head_, 1, 1);
    if (claim.count == 0) return outcome_when_empty(claim.first);
    read(*claim.cell, claim.first, item);
    this->notify_popped(1);
    return Outcome::done;
  }
  // Pops available commands in order, as many as fit in `items`.
  Moved try_pop_batch(std::span<T> items) noexcept {
    if (items.empty()) return {};
    const Claim claim = claim_positions(head_, 1, items.size());
    if (claim.count == 0) return {0, outcome_when_empty(claim.first)};
    for (std::size_t i = 0; i < claim.count; ++i) read(cells_.at(claim.first + i), claim.first + i, items[i]);
    this->notify_popped(claim.count);
    return {claim.count, Outcome::done};
  }

  // Any thread, any number of times. Pushes fail from now on; commands already pushed can still be popped.
  void close() noexcept {
    tail_.fetch_or(kClosed, std::memory_order_relaxed);  // publishes nothing but the tail itself
    is_closing_.store(true, std::memory_order_relaxed);  // a hint to check the tail; ordered by wake_all()'s fence
    this->wake_all();
  }
  bool is_closed() const noexcept { return (tail_.load(std::memory_order_relaxed) & kClosed) != 0; }
  std::size_t capacity() const noexcept { return cells_.size(); }

 private:
  // Part of the tail, so that no position can be claimed after closing: the number of commands left to pop is exact.
  static constexpr std::uint64_t kClosed = std::uint64_t{1} << 63;
  using Index = typename Sync::template Atomic<std::uint64_t>;
  using Cell = typename Cells<T, Sync>::Cell;

  struct Claim {
    std::uint64_t first;  // the index itself if nothing was claimed
    std::size_t count;
    Cell* cell;  // of the first
  };
  // Claims up to `wanted` positions whose cells have the stamp position + `turn`: 0 for the tail, 1 for the head. Only
  // the thread that claims such a cell can change it, so the stamps still hold when the exchange succeeds.
  Claim claim_positions(Index& index, std::uint64_t turn, std::size_t wanted) noexcept {
    std::uint64_t first = index.load(std::memory_order_relaxed);
    for (;;) {
      if ((first & kClosed) != 0) [[unlikely]]
        return {first, 0, nullptr};
      // Relaxed, with one fence after a successful claim: an acquiring load would wait for earlier releases on arm64
      // (throughput of one producer and one consumer 7 M/s with, 30-68 M/s without; Neoverse-V1, 2026-11).
      Cell& cell = cells_.at(first);
      const std::uint64_t stamp = cells_.stamp(cell, Sync::kScan);
      if (stamp != first + turn) {
        if (static_cast<std::int64_t>(stamp - (first + turn)) < 0) return {first, 0, nullptr};
        first = index.load(std::memory_order_relaxed);  // others went ahead
        continue;
      }
      std::size_t count = 1;
      while (count < wanted && cells_.stamp(cells_.at(first + count), Sync::kScan) == first + count + turn) ++count;
      if (index.compare_exchange_weak(first, first + count, std::memory_order_relaxed)) {
        Sync::acquire_fence();  // pairs with the releases in write() and read()
        return {first, count, &cell};
      }
    }
  }
  void write(Cell& cell, std::uint64_t position, const T& item) noexcept {
    cells_.write(cell, item);
    cells_.set_stamp(cell, position + 1, std::memory_order_release);  // pairs with claim_positions() of the head
  }
  void read(Cell& cell, std::uint64_t position, T& item) noexcept {
    cells_.read(cell, item);
    // Pairs with claim_positions() of the tail.
    cells_.set_stamp(cell, position + cells_.size(), std::memory_order_release);
  }
  // Nothing to pop at `head`: distinguishes `empty` from `closed`.
  Outcome outcome_when_empty(std::uint64_t head) const noexcept {
    // Not the tail: polling consumers would keep taking its line away from the producers.
    if (!is_closing_.load(std::memory_order_relaxed)) [[likely]]
      return Outcome::empty;
    return tail_.load(std::memory_order_relaxed) == (kClosed | head) ? Outcome::closed : Outcome::empty;
  }

  alignas(kApart) Cells<T, Sync> cells_;                                    // read by all
  alignas(kApart) typename Sync::template Atomic<bool> is_closing_{false};  // read by consumers, written once
  alignas(kApart) Index tail_{0};
  alignas(kApart) Index head_{0};
};

}  // namespace weir
