// The most urgent command first: a ring per level and a bit mask of the levels in use. Any number of producers, one
// consumer; first in, first out within a level. Each level has its own bound, so that a flood of normal commands leaves
// room for an urgent one.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

#include "channel/blocking.h"
#include "channel/mpsc.h"

namespace weir {

// 0 is the most urgent.
template <class T>
constexpr std::size_t priority_of(const T& item) noexcept {
  if constexpr (requires { item.priority; }) {
    return item.priority;
  } else if constexpr (requires { item.line.priority; }) {
    return item.line.priority;
  } else if constexpr (requires { item.record; }) {
    return priority_of(item.record);
  } else {
    return SIZE_MAX;  // the least urgent level
  }
}

// `kPatience`: how often a level must be found empty before its bit is cleared, because clearing costs the consumer a
// heavy_fence(), a microsecond or two.
template <class T, Wait kWait = Wait::spin_then_park, class Sync = System, std::size_t kLevels = 4,
          int kPatience = 1024>
class Priority {
  static_assert(kLevels >= 1 && kLevels <= 32);

 public:
  using Item = T;

  // `capacity` is per level.
  explicit Priority(std::size_t capacity) : Priority(capacity, std::make_index_sequence<kLevels>()) {}

  // Any thread. The item determines its level; levels beyond the last count as the last.
  Outcome try_push(const T& item) noexcept { return try_push(item, priority_of(item)); }
  Outcome try_push(const T& item, std::size_t level) noexcept {
    level = clamp(level);
    const Outcome outcome = levels_[level].ring.try_push(item);
    if (outcome == Outcome::done) notify_pushed(level);
    return outcome;
  }
  // In order, as far as there is room: stops at the first item whose level is full. Pushes runs of one level together.
  Moved try_push_batch(std::span<const T> items) noexcept {
    Moved all;
    while (all.count < items.size()) {
      const std::size_t level = clamp(priority_of(items[all.count]));
      std::size_t end = all.count + 1;
      while (end < items.size() && clamp(priority_of(items[end])) == level) ++end;
      const Moved moved = levels_[level].ring.try_push_batch(items.subspan(all.count, end - all.count));
      if (moved.count != 0) notify_pushed(level);
      all.count += moved.count;
      all.outcome = moved.outcome;
      if (moved.outcome != Outcome::done) break;
    }
    return all;
  }
  Outcome push(const T& item, Limit limit = Limit::forever()) noexcept { return push(item, priority_of(item), limit); }
  Outcome push(const T& item, std::size_t level, Limit limit) noexcept {
    level = clamp(level);
    return await<kWait, Sync>(levels_[level].room, limit, Outcome::full, [&] { return try_push(item, level); });
  }
  // One limit for all items; waits for the level of the first that has no room.
  Moved push_batch(std::span<const T> items, Limit limit = Limit::forever()) noexcept {
    Moved all = try_push_batch(items);
    while (all.outcome == Outcome::full && !limit.is_none()) {
      all.outcome = push(items[all.count], limit);
      if (all.outcome != Outcome::done) break;
      const Moved moved = try_push_batch(items.subspan(++all.count));
      all.count += moved.count;
      all.outcome = moved.outcome;
    }
    return all;
  }

  // For the consumer.
  Outcome try_pop(T& item) noexcept {
    const std::size_t level = most_urgent();
    if (level == kLevels) return outcome_when_empty();
    levels_[level].ring.try_pop(item);
    notify_popped(level, 1);
    return Outcome::done;
  }
  // Pops available commands, the most urgent first. Later arrivals may have to wait for the next batch.
  Moved try_pop_batch(std::span<T> items) noexcept {
    if (items.empty()) return {};
    std::size_t count = 0;
    while (count < items.size()) {
      const std::size_t level = most_urgent();
      if (level == kLevels) break;
      const Moved moved = levels_[level].ring.try_pop_batch(items.subspan(count));
      notify_popped(level, moved.count);
      count += moved.count;
    }
    return count != 0 ? Moved{count, Outcome::done} : Moved{0, outcome_when_empty()};
  }
  Outcome pop(T& item, Limit limit = Limit::forever()) noexcept {
    return await<kWait, Sync>(items_, limit, Outcome::empty, [&] { return try_pop(item); });
  }
  Moved pop_batch(std::span<T> items, Limit limit = Limit::forever()) noexcept {
    return weir::pop_batch<kWait, Sync>(*this, items_, items, limit);
  }

  // Any thread, any number of times. Pushes fail from now on; commands already pushed can still be popped.
  void close() noexcept {
    for (Level& level : levels_) level.ring.close();
    for (Level& level : levels_) level.room.notify_all();
    items_.notify_all();
  }
  bool is_closed() const noexcept { return levels_.back().ring.is_closed(); }
  std::size_t capacity() const noexcept { return levels_.front().ring.capacity(); }  // per level
  static constexpr std::size_t levels() noexcept { return kLevels; }

 private:
  struct Level {
    explicit Level(std::size_t capacity) : ring(capacity) {}
    Mpsc<T, Wait::spin, Sync> ring;  // never used for waiting, so nobody need be woken there
    Event<kWait, Sync> room;
    int fruitless = 0;  // times this level was empty while a less urgent one was not; for the consumer
  };

  template <std::size_t... kIndex>
  Priority(std::size_t capacity, std::index_sequence<kIndex...>)
      : levels_{Level((static_cast<void>(kIndex), capacity))...} {}

  static constexpr std::size_t clamp(std::size_t level) noexcept { return std::min(level, kLevels - 1); }
  static constexpr std::uint32_t bit(std::size_t level) noexcept { return std::uint32_t{1} << level; }

  // Called after publishing. While the level's bit is set, this only reads the mask, so that producers and the consumer
  // can all keep a copy of its line.
  void notify_pushed(std::size_t level) noexcept {
    Sync::light_fence();  // pairs with the heavy_fence() in retire(): that sees the command, or this sees its bit gone
    if ((used_.load(std::memory_order_relaxed) & bit(level)) == 0) [[unlikely]]
      used_.fetch_or(bit(level), std::memory_order_release);  // pairs with the acquire in most_urgent()
    items_.notify();
  }
  void notify_popped(std::size_t level, std::size_t count) noexcept {
    levels_[level].room.notify(static_cast<int>(count));
  }

  // kLevels: all are empty.
  std::size_t most_urgent() noexcept {
    std::uint32_t used = used_.load(std::memory_order_acquire);  // pairs with the release in notify_pushed()
    const std::uint32_t all = used;
    for (; used != 0; used &= used - 1) {
      const auto level = static_cast<std::size_t>(std::countr_zero(used));
      if (!levels_[level].ring.has_next()) continue;
      levels_[level].fruitless = 0;
      const std::uint32_t above = all & (bit(level) - 1);
      if (above == 0) [[likely]]
        return level;
      return retire(above, level);
    }
    return kLevels;
  }
  // Levels in `above` were empty while `level` was not. Clears the bits of those that have been empty for long; returns
  // the level to pop from.
  std::size_t retire(std::uint32_t above, std::size_t level) noexcept {
    std::uint32_t idle = 0;
    for (; above != 0; above &= above - 1) {
      const auto other = static_cast<std::size_t>(std::countr_zero(above));
      if (++levels_[other].fruitless < kPatience) continue;
      levels_[other].fruitless = 0;
      idle |= bit(other);
    }
    if (idle == 0) [[likely]]
      return level;
    used_.fetch_and(~idle, std::memory_order_relaxed);  // ordered by the fence
    Sync::heavy_fence();                                // pairs with the light_fence() in notify_pushed()
    for (; idle != 0; idle &= idle - 1) {
      const auto other = static_cast<std::size_t>(std::countr_zero(idle));
      if (!levels_[other].ring.has_next()) continue;
      used_.fetch_or(idle,
                     std::memory_order_relaxed);  // its producer may have seen the bit; later ones may stay, too
      return other;
    }
    return level;
  }
  // Nothing to pop: distinguishes `empty` from `closed`.
  Outcome outcome_when_empty() noexcept {
    if (!is_closed()) [[likely]]
      return Outcome::empty;
    // Not the mask: bits may lag behind commands pushed before closing. Setting them then wakes the consumer.
    const bool is_finished =
        std::all_of(levels_.begin(), levels_.end(), [](Level& level) { return level.ring.is_finished(); });
    return is_finished ? Outcome::closed : Outcome::empty;
  }

  std::array<Level, kLevels> levels_;
  alignas(kApart) typename Sync::template Atomic<std::uint32_t> used_{0};
  Event<kWait, Sync> items_;
};

}  // namespace weir
