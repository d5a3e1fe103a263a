// Many producers, one consumer, and a ring for each producer: the cheapest possible push, because producers share
// nothing. The price: commands keep their order within a producer, but not between producers.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "base/error.h"
#include "channel/blocking.h"
#include "channel/spsc.h"

namespace weir {

template <class T, Wait kWait = Wait::spin_then_park, class Sync = System>
class Lanes {
 public:
  using Item = T;

  // The pushing end of one lane: one thread at a time.
  class Producer {
   public:
    using Item = T;

    explicit Producer(Event<kWait, Sync>& items, std::size_t capacity) : ring_(capacity), items_(items) {}

    Outcome try_push(const T& item) noexcept {
      const Outcome outcome = ring_.try_push(item);
      if (outcome != Outcome::full) [[likely]]
        items_.notify();  // even if closed: the consumer may sleep until it learns the outcome
      return outcome;
    }
    Moved try_push_batch(std::span<const T> items) noexcept {
      const Moved moved = ring_.try_push_batch(items);
      if (moved.count != 0 || moved.outcome == Outcome::closed) items_.notify();
      return moved;
    }
    Outcome push(const T& item, Limit limit = Limit::forever()) noexcept {
      return await<kWait, Sync>(room_, limit, Outcome::full, [&] { return try_push(item); });
    }
    Moved push_batch(std::span<const T> items, Limit limit = Limit::forever()) noexcept {
      return weir::push_batch<kWait, Sync>(*this, room_, items, limit);
    }

   private:
    friend Lanes;
    Spsc<T, Wait::spin, Sync> ring_;
    Event<kWait, Sync>& items_;
    Event<kWait, Sync> room_;
  };

  // `capacity` is per lane.
  explicit Lanes(std::size_t capacity, std::size_t lanes) {
    if (lanes == 0) reject("a channel without a lane has no producer", "Use one lane per producer.");
    for (std::size_t i = 0; i < lanes; ++i) lanes_.push_back(std::make_unique<Producer>(items_, capacity));
  }

  Producer& producer(std::size_t lane) noexcept { return *lanes_[lane]; }
  std::size_t lanes() const noexcept { return lanes_.size(); }

  // For the consumer. A lane keeps its turn for up to kTurn commands, so that no other waits forever.
  Outcome try_pop(T& item) noexcept {
    std::size_t closed = 0;
    for (std::size_t tried = 0; tried < lanes_.size(); ++tried) {
      Producer& lane = *lanes_[current_];
      const Outcome outcome = lane.ring_.try_pop(item);
      if (outcome == Outcome::done) {
        lane.room_.notify();
        if (++taken_ == kTurn) next_lane();
        return outcome;
      }
      closed += outcome == Outcome::closed ? 1 : 0;
      next_lane();
    }
    return closed == lanes_.size() ? Outcome::closed : Outcome::empty;
  }
  Moved try_pop_batch(std::span<T> items) noexcept {
    return take(items.size(), [&](auto& ring, std::size_t done) { return ring.try_pop_batch(items.subspan(done)); });
  }
  // Calls `visit` with each command in place, at most `most` of them.
  template <class Visit>
  Moved consume(std::size_t most, Visit&& visit) noexcept {
    return take(most, [&](auto& ring, std::size_t done) { return ring.consume(most - done, visit); });
  }
  Outcome pop(T& item, Limit limit = Limit::forever()) noexcept {
    return await<kWait, Sync>(items_, limit, Outcome::empty, [&] { return try_pop(item); });
  }
  Moved pop_batch(std::span<T> items, Limit limit = Limit::forever()) noexcept {
    return weir::pop_batch<kWait, Sync>(*this, items_, items, limit);
  }

  // Any thread, any number of times. Pushes fail from now on; commands already pushed can still be popped.
  void close() noexcept {
    for (const auto& lane : lanes_) {
      lane->ring_.close();
      lane->room_.notify_all();
    }
    items_.notify_all();
  }
  bool is_closed() const noexcept { return lanes_.front()->ring_.is_closed(); }
  std::size_t capacity() const noexcept { return lanes_.front()->ring_.capacity(); }

 private:
  static constexpr std::size_t kTurn = 16;

  // Visits each lane once: take_from(ring, done) takes what it can from one.
  template <class TakeFrom>
  Moved take(std::size_t most, TakeFrom&& take_from) noexcept {
    std::size_t done = 0, closed = 0;
    for (std::size_t tried = 0; tried < lanes_.size() && done < most; ++tried) {
      Producer& lane = *lanes_[current_];
      const Moved moved = take_from(lane.ring_, done);
      if (moved.count != 0) lane.room_.notify();
      done += moved.count;
      closed += moved.outcome == Outcome::closed ? 1 : 0;
      next_lane();
    }
    if (done != 0 || most == 0) return {done, Outcome::done};
    return {0, closed == lanes_.size() ? Outcome::closed : Outcome::empty};
  }
  void next_lane() noexcept {
    current_ = current_ + 1 == lanes_.size() ? 0 : current_ + 1;
    taken_ = 0;
  }

  Event<kWait, Sync> items_;
  std::vector<std::unique_ptr<Producer>> lanes_;
  std::size_t current_ = 0, taken_ = 0;  // for the consumer
};

}  // namespace weir
