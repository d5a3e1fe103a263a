// Every consumer sees every command, from any number of producers. A consumer chooses what happens when it is a whole
// ring behind: it blocks producers, or it learns exactly how many commands it missed. Nothing is lost silently.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>

#include "base/error.h"
#include "channel/blocking.h"
#include "channel/cells.h"
#include "channel/shared_cell.h"

namespace weir {

// What happens to a consumer that is a whole ring behind.
enum class LagPolicy : std::uint8_t {
  blocks,  // the channel is full for producers until it has caught up or left
  misses,  // its commands are overwritten; the next pop returns `missed`, with the number. It never blocks producers.
};

template <class T, Wait kWait = Wait::spin_then_park, class Sync = System>
class Broadcast {
  // Part of the tail, so that no position can be claimed after closing: the number of commands left to pop is exact.
  static constexpr std::uint64_t kClosed = std::uint64_t{1} << 63;
  static constexpr std::uint64_t kNobody = UINT64_MAX;

  using Cell = SharedCell<T, Sync>;
  using Index = typename Sync::template Atomic<std::uint64_t>;
  // A blocking consumer's published position.
  struct alignas(kApart) Place {
    Index cursor{kNobody};
    typename Sync::template Atomic<bool> is_taken{false};
  };

 public:
  using Item = T;

  // `max_blocking`: how many blocking consumers can exist at once. Others are not limited.
  explicit Broadcast(std::size_t capacity, std::size_t max_blocking = 16)
      : mask_(ring_capacity(capacity) - 1),
        cells_(new Cell[mask_ + 1]),
        place_count_(max_blocking),
        places_(new Place[max_blocking]) {
    Sync::prepare();
  }

  // Any thread. Without consumers, commands are discarded: nobody can miss them.
  Outcome try_push(const T& item) noexcept {
    const Claim claim = claim_positions(1);
    if (claim.count == 0) [[unlikely]]
      return claim.outcome;
    publish(claim.first, item);
    notify_pushed();
    return Outcome::done;
  }
  // Pushes as many as fit, in order, and contiguously up to a ring of them; none if the channel is closed.
  Moved try_push_batch(std::span<const T> items) noexcept {
    Moved moved;
    while (moved.count < items.size()) {
      const Claim claim = claim_positions(items.size() - moved.count);
      moved.outcome = claim.outcome;
      if (claim.count == 0) break;
      for (std::size_t i = 0; i < claim.count; ++i) publish(claim.first + i, items[moved.count + i]);
      moved.count += claim.count;
      notify_pushed();
    }
    return moved;
  }
  Outcome push(const T& item, Limit limit = Limit::forever()) noexcept {
    return await<kWait, Sync>(room_, limit, Outcome::full, [&] { return try_push(item); });
  }
  Moved push_batch(std::span<const T> items, Limit limit = Limit::forever()) noexcept {
    return weir::push_batch<kWait, Sync>(*this, room_, items, limit);
  }

  // The reading end: one thread at a time. Sees commands pushed from now on; unsubscribes when destroyed. The channel
  // must outlive it.
  class Subscriber {
   public:
    using Item = T;

    Subscriber(Subscriber&& other) noexcept { *this = std::move(other); }
    Subscriber& operator=(Subscriber&& other) noexcept {
      leave();
      channel_ = std::exchange(other.channel_, nullptr);
      place_ = std::exchange(other.place_, nullptr);
      position_ = other.position_;
      missed_ = other.missed_;
      missed_in_all_ = other.missed_in_all_;
      return *this;
    }
    ~Subscriber() { leave(); }

    // `missed`: nothing was popped, missed() returns the number of lost commands, and the next pop continues with the
    // oldest one still available.
    Outcome try_pop(T& item) noexcept {
      const Outcome outcome = read(item);
      if (outcome == Outcome::done) advance(1);
      return outcome;
    }
    // Pops available commands in order, as many as fit in `items`. `missed` comes alone, as in try_pop.
    Moved try_pop_batch(std::span<T> items) noexcept {
      if (items.empty()) return {};
      std::size_t count = 0;
      Outcome outcome = Outcome::done;
      while (count < items.size() && (outcome = read(items[count], count)) == Outcome::done) ++count;
      if (count == 0) return {0, outcome};
      advance(count);
      return {count, Outcome::done};
    }
    Outcome pop(T& item, Limit limit = Limit::forever()) noexcept {
      return await<kWait, Sync>(channel_->items_, limit, Outcome::empty, [&] { return try_pop(item); });
    }
    Moved pop_batch(std::span<T> items, Limit limit = Limit::forever()) noexcept {
      return weir::pop_batch<kWait, Sync>(*this, channel_->items_, items, limit);
    }

    std::uint64_t missed() const noexcept { return missed_; }  // as last reported
    std::uint64_t missed_in_all() const noexcept { return missed_in_all_; }

   private:
    friend Broadcast;
    explicit Subscriber(Broadcast& channel) noexcept : channel_(&channel) {}

    // Reads the command `ahead` positions after the next one; position_ changes only if commands were missed.
    Outcome read(T& item, std::size_t ahead = 0) noexcept {
      const std::uint64_t position = position_ + ahead;
      const Cell& cell = channel_->at(position);
      std::uint64_t stamp = cell.stamp(std::memory_order_acquire);  // pairs with the release in SharedCell::write()
      if (stamp == position + 1) [[likely]] {
        if (place_ != nullptr) {
          cell.read(item);
          return Outcome::done;
        }
        if (cell.read_if(position, item)) [[likely]]
          return Outcome::done;
        stamp = cell.stamp(std::memory_order_relaxed);
      }
      const std::uint64_t holds = stamp & ~Cell::kBusy;
      if (holds <= position + 1) {
        return channel_->tail_.load(std::memory_order_relaxed) == (kClosed | position) ? Outcome::closed
                                                                                       : Outcome::empty;
      }
      // Overwritten. Commands read before this one are returned first; the next call gets here again.
      if (ahead == 0) skip(holds);
      return Outcome::missed;
    }
    // Continues with the oldest command still available, now that this cell holds the one before `holds`.
    void skip(std::uint64_t holds) noexcept {
      const std::uint64_t tail = channel_->tail_.load(std::memory_order_relaxed) & ~kClosed;
      // The command a ring before the tail is overwritten next. The tail read here may be older than the stamp.
      const std::uint64_t oldest = std::max(tail, holds) - channel_->capacity();
      missed_ = oldest - position_;
      missed_in_all_ += missed_;
      position_ = oldest;
    }
    void advance(std::size_t count) noexcept {
      position_ += count;
      if (place_ == nullptr) return;
      place_->cursor.store(position_, std::memory_order_release);  // pairs with the fence in slowest()
      channel_->room_.notify(static_cast<int>(count));
    }
    void leave() noexcept {
      if (place_ != nullptr) {
        place_->cursor.store(kNobody, std::memory_order_release);  // pairs with the fence in slowest()
        place_->is_taken.store(false, std::memory_order_release);  // pairs with the acquire in take_place()
        channel_->room_.notify_all();
      }
      place_ = nullptr;
    }

    Broadcast* channel_ = nullptr;
    Place* place_ = nullptr;  // nullptr: it misses commands when it is too slow
    std::uint64_t position_ = 0;
    std::uint64_t missed_ = 0, missed_in_all_ = 0;
  };

  Subscriber subscribe(LagPolicy behind) {
    Subscriber subscriber(*this);
    if (behind == LagPolicy::blocks) {
      subscriber.place_ = &take_place();
      auto& cursor = subscriber.place_->cursor;
      // Blocks producers from here on, unless they have not seen it yet: they may have been a ring ahead before, so the
      // starting position is read again after the fence.
      cursor.store(position_of_tail(), std::memory_order_release);
      Sync::heavy_fence();  // pairs with the light_fence() in slowest()
      subscriber.position_ = position_of_tail();
      cursor.store(subscriber.position_, std::memory_order_release);  // pairs with the fence in slowest()
      room_.notify_all();
    } else {
      subscriber.position_ = position_of_tail();
    }
    return subscriber;
  }

  // Any thread, any number of times. Pushes fail from now on; commands already pushed can still be popped.
  void close() noexcept {
    tail_.fetch_or(kClosed, std::memory_order_relaxed);  // publishes nothing but the tail itself
    items_.notify_all();
    room_.notify_all();
  }
  bool is_closed() const noexcept { return (tail_.load(std::memory_order_relaxed) & kClosed) != 0; }
  std::size_t capacity() const noexcept { return mask_ + 1; }

 private:
  struct Claim {
    std::uint64_t first = 0;
    std::size_t count = 0;
    Outcome outcome = Outcome::done;  // done: all that were requested
  };

  Cell& at(std::uint64_t position) const noexcept { return cells_[position & mask_]; }
  std::uint64_t position_of_tail() const noexcept { return tail_.load(std::memory_order_relaxed) & ~kClosed; }

  Place& take_place() {
    for (std::size_t i = 0; i < place_count_; ++i) {
      bool is_taken = false;
      // Pairs with the release in leave(): the previous consumer has finished reading.
      if (places_[i].is_taken.compare_exchange_strong(is_taken, true, std::memory_order_acquire)) return places_[i];
    }
    reject("a broadcast has no place for another consumer that blocks", "Make it with a larger `max_blocking`.");
  }

  Claim claim_positions(std::size_t wanted) noexcept {
    std::uint64_t tail = tail_.load(std::memory_order_relaxed);
    for (;;) {
      if ((tail & kClosed) != 0) return {0, 0, Outcome::closed};
      std::uint64_t gate = gate_seen_.load(Sync::kScan);  // pairs with the release below
      if (gate > tail) {                                  // the tail was read before that gate: others went ahead
        tail = tail_.load(std::memory_order_relaxed);
        continue;
      }
      if (tail - gate + wanted > capacity()) {
        gate = slowest(tail);
        gate_seen_.store(gate, std::memory_order_release);  // passes on what slowest() acquired
      }
      if (tail - gate >= capacity()) return {0, 0, Outcome::full};
      const std::size_t room = std::min<std::size_t>(wanted, capacity() - (tail - gate));
      std::size_t count = 0;
      while (count < room && is_written(tail + count)) ++count;
      if (count == 0) {
        const std::uint64_t now = tail_.load(std::memory_order_relaxed);
        if (now == tail) return {0, 0, Outcome::full};
        tail = now;
        continue;
      }
      if (tail_.compare_exchange_weak(tail, tail + count, std::memory_order_relaxed)) {
        Sync::acquire_fence();  // after the loads of gate_seen_ and stamps: earlier users have left these cells
        return {tail, count, count == wanted ? Outcome::done : Outcome::full};
      }
    }
  }
  // Whether the command of a ring ago in this cell is complete: its producer may be slower than all consumers.
  bool is_written(std::uint64_t position) const noexcept {
    const std::uint64_t before = position < capacity() ? 0 : position - capacity() + 1;
    return at(position).stamp(Sync::kScan) == before;  // pairs with the release in SharedCell::write()
  }
  // The position of the slowest blocking consumer; never more than `tail`, which was read before.
  std::uint64_t slowest(std::uint64_t tail) noexcept {
    Sync::light_fence();  // pairs with the heavy_fence() in subscribe(): consumers not seen start at `tail` or later
    std::uint64_t gate = tail;
    for (std::size_t i = 0; i < place_count_; ++i) gate = std::min(gate, places_[i].cursor.load(Sync::kScan));
    Sync::acquire_fence();  // pairs with the releases of the cursors
    return gate;
  }
  void publish(std::uint64_t position, const T& item) noexcept { at(position).write(position, item); }
  void notify_pushed() noexcept {
    items_.notify_all();
    room_.notify_all();  // a producer may be waiting for this cell, a ring later
  }

  const std::uint64_t mask_;
  const std::unique_ptr<Cell[]> cells_;
  const std::size_t place_count_;
  const std::unique_ptr<Place[]> places_;
  alignas(kApart) Index tail_{0};
  Index gate_seen_{0};  // no newer than the slowest blocking consumer
  Event<kWait, Sync> items_, room_;
};

}  // namespace weir
