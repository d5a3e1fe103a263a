// A channel that counts its traffic. Each thread counts in a cache line of its own, so that nothing is shared on the
// hot path; readers add the counts up.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

#include "channel/blocking.h"
#include "channel/system.h"
#include "channel/thread_slot.h"

namespace weir {

// Since the channel was created. While threads run, each number is correct, but they are not from the same moment.
struct ChannelCounts {
  std::uint64_t pushes = 0, pops = 0;           // commands
  std::uint64_t full = 0, empty = 0;            // attempts that found the channel full, or empty
  std::uint64_t push_waits = 0, pop_waits = 0;  // calls that had to wait, with any outcome
  std::uint64_t push_closed = 0, pop_closed = 0;
  std::uint64_t late = 0;  // waits that ended at their deadline
  // The largest number of commands seen in the channel: sampled when full, at each of a thread's first kLookEvery
  // pushes, then at every kLookEvery-th. Between two samples it may have been deeper.
  std::uint64_t deepest = 0;
  static constexpr std::uint64_t kLookEvery = 32;

  std::uint64_t depth() const noexcept { return pushes > pops ? pushes - pops : 0; }
};

// Same functions and guarantees as `Channel`.
template <class Channel>
class Metered {
 public:
  using Item = typename Channel::Item;

  template <class... Arguments>
  explicit Metered(Arguments&&... arguments) : channel_(std::forward<Arguments>(arguments)...) {}

  Outcome try_push(const Item& item) noexcept { return pushed(channel_.try_push(item)); }
  Moved try_push_batch(std::span<const Item> items) noexcept { return pushed(channel_.try_push_batch(items)); }
  Outcome push(const Item& item, Limit limit = Limit::forever()) noexcept {
    const Outcome outcome = try_push(item);
    if (outcome != Outcome::full || limit.is_none()) [[likely]]
      return outcome;
    add(&Counts::push_waits, 1);
    return pushed(channel_.push(item, limit));
  }
  Moved push_batch(std::span<const Item> items, Limit limit = Limit::forever()) noexcept {
    const Moved first = try_push_batch(items);
    if (first.outcome != Outcome::full || limit.is_none()) return first;
    add(&Counts::push_waits, 1);
    const Moved rest = pushed(channel_.push_batch(items.subspan(first.count), limit));
    return {first.count + rest.count, rest.outcome};
  }

  Outcome try_pop(Item& item) noexcept { return popped(channel_.try_pop(item)); }
  Moved try_pop_batch(std::span<Item> items) noexcept { return popped(channel_.try_pop_batch(items)); }
  Outcome pop(Item& item, Limit limit = Limit::forever()) noexcept {
    const Outcome outcome = try_pop(item);
    if (outcome != Outcome::empty || limit.is_none()) [[likely]]
      return outcome;
    add(&Counts::pop_waits, 1);
    return popped(channel_.pop(item, limit));
  }
  Moved pop_batch(std::span<Item> items, Limit limit = Limit::forever()) noexcept {
    const Moved moved = try_pop_batch(items);
    if (moved.outcome != Outcome::empty || limit.is_none()) return moved;
    add(&Counts::pop_waits, 1);
    return popped(channel_.pop_batch(items, limit));
  }

  void close() noexcept { channel_.close(); }
  bool is_closed() const noexcept { return channel_.is_closed(); }
  std::size_t capacity() const noexcept { return channel_.capacity(); }
  Channel& channel() noexcept { return channel_; }  // direct use of it is not counted

  // Any thread, any time.
  ChannelCounts snapshot() const noexcept {
    ChannelCounts all;
    for (const Counts& counts : in_use()) {
      all.pops += get(counts.pops);
      all.pushes += get(counts.pushes);
      all.full += get(counts.full);
      all.empty += get(counts.empty);
      all.push_waits += get(counts.push_waits);
      all.pop_waits += get(counts.pop_waits);
      all.push_closed += get(counts.push_closed);
      all.pop_closed += get(counts.pop_closed);
      all.late += get(counts.late);
      all.deepest = std::max(all.deepest, get(counts.deepest));
    }
    return all;
  }

 private:
  using Count = std::atomic<std::uint64_t>;
  struct alignas(kApart) Counts {
    Count pushes{0}, pops{0}, full{0}, empty{0}, push_waits{0}, pop_waits{0}, push_closed{0}, pop_closed{0}, late{0},
        deepest{0};
  };

  static std::uint64_t get(const Count& count) noexcept { return count.load(std::memory_order_relaxed); }
  std::span<const Counts> in_use() const noexcept {
    return std::span(counts_).first(static_cast<std::size_t>(std::min(thread_slots_used(), kThreadSlots + 1)));
  }

  // Returns the new value. The line belongs to one thread, so no locked instruction is needed.
  std::uint64_t add(Count Counts::* which, std::uint64_t more) noexcept {
    const int slot = thread_slot();
    Count& count = counts_[static_cast<std::size_t>(slot)].*which;
    if (slot == kThreadSlots) [[unlikely]]
      return count.fetch_add(more, std::memory_order_relaxed) + more;
    const std::uint64_t sum = count.load(std::memory_order_relaxed) + more;
    // Relaxed, because it orders nothing: a release here would wait for the command's own line (one producer, one
    // consumer: 22 M/s instead of 36; Neoverse-V1, 2026-11).
    count.store(sum, std::memory_order_relaxed);
    return sum;
  }
  void look(std::uint64_t at_least) noexcept {
    std::uint64_t depth = at_least;
    if (depth == 0) {
      std::uint64_t pops = 0, pushes = 0;
      for (const Counts& counts : in_use()) {
        pops += get(counts.pops);
        pushes += get(counts.pushes);
      }
      depth = pushes > pops ? pushes - pops : 0;
    }
    Count& deepest = counts_[static_cast<std::size_t>(thread_slot())].deepest;
    std::uint64_t before = get(deepest);
    while (before < depth && !deepest.compare_exchange_weak(before, depth, std::memory_order_relaxed)) {
    }
  }
  void count_pushed(std::uint64_t count, Outcome outcome) noexcept {
    if (count != 0) {
      const std::uint64_t sum = add(&Counts::pushes, count);
      constexpr std::uint64_t kEvery = ChannelCounts::kLookEvery;
      if (sum <= kEvery || sum / kEvery != (sum - count) / kEvery) look(0);
    }
    if (outcome == Outcome::done) [[likely]]
      return;
    if (outcome == Outcome::full) {
      add(&Counts::full, 1);
      look(channel_.capacity());
    } else {
      add(outcome == Outcome::late ? &Counts::late : &Counts::push_closed, 1);
    }
  }
  void count_popped(std::uint64_t count, Outcome outcome) noexcept {
    if (count != 0) add(&Counts::pops, count);
    if (outcome == Outcome::done) [[likely]]
      return;
    add(outcome == Outcome::empty ? &Counts::empty : outcome == Outcome::late ? &Counts::late : &Counts::pop_closed, 1);
  }
  Outcome pushed(Outcome outcome) noexcept {
    count_pushed(outcome == Outcome::done ? 1 : 0, outcome);
    return outcome;
  }
  Moved pushed(const Moved& moved) noexcept {
    count_pushed(moved.count, moved.outcome);
    return moved;
  }
  Outcome popped(Outcome outcome) noexcept {
    count_popped(outcome == Outcome::done ? 1 : 0, outcome);
    return outcome;
  }
  Moved popped(const Moved& moved) noexcept {
    count_popped(moved.count, moved.outcome);
    return moved;
  }

  Channel channel_;
  std::array<Counts, kThreadSlots + 1> counts_{};  // the last one is for threads that share
};

}  // namespace weir
