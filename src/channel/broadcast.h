// Every consumer sees every command, from any number of producers. What happens when a consumer is a whole ring behind
// is its own choice: it holds producers up, or it is told exactly how many commands it missed. Nothing is lost
// silently.
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

// What a consumer does that is a whole ring behind.
enum class Behind : std::uint8_t {
  blocks,  // producers find the channel full until it has caught up or left
  misses,  // it is overwritten; the next pop says `missed`, and how many. Such a consumer can hold nobody up.
};

template <class T, Wait kWait = Wait::spin_then_park, class Sync = System>
class Broadcast {
  // In the tail, so that no position can be claimed behind the closing: what is left to pop is exact.
  static constexpr std::uint64_t kClosed = std::uint64_t{1} << 63;
  static constexpr std::uint64_t kNobody = UINT64_MAX;

  using Cell = SharedCell<T, Sync>;
  using Index = typename Sync::template Atomic<std::uint64_t>;
  // Where a consumer that blocks says how far it is.
  struct alignas(kApart) Place {
    Index cursor{kNobody};
    typename Sync::template Atomic<bool> is_taken{false};
  };

 public:
  using Item = T;

  // `most_blocking`: how many consumers that block there can be at once. Others are not counted.
  explicit Broadcast(std::size_t capacity, std::size_t most_blocking = 16)
      : mask_(ring_capacity(capacity) - 1),
        cells_(new Cell[mask_ + 1]),
        place_count_(most_blocking),
        places_(new Place[most_blocking]) {
    Sync::prepare();
  }

  // Any thread. Without consumers, commands go to nobody: there is no one who could miss them.
  Outcome try_push(const T& item) noexcept {
    const Claim claim = claim_positions(1);
    if (claim.count == 0) [[unlikely]]
      return claim.outcome;
    publish(claim.first, item);
    pushed();
    return Outcome::done;
  }
  // Pushes as many as there is room for, in order, and next to each other up to a ring of them; none where the channel
  // is closed.
  Moved try_push_batch(std::span<const T> items) noexcept {
    Moved moved;
    while (moved.count < items.size()) {
      const Claim claim = claim_positions(items.size() - moved.count);
      moved.outcome = claim.outcome;
      if (claim.count == 0) break;
      for (std::size_t i = 0; i < claim.count; ++i) publish(claim.first + i, items[moved.count + i]);
      moved.count += claim.count;
      pushed();
    }
    return moved;
  }
  Outcome push(const T& item, Limit limit = Limit::forever()) noexcept {
    return await<kWait, Sync>(room_, limit, Outcome::full, [&] { return try_push(item); });
  }
  Moved push_batch(std::span<const T> items, Limit limit = Limit::forever()) noexcept {
    return weir::push_batch<kWait, Sync>(*this, room_, items, limit);
  }

  // The reading end: one thread at a time. Sees what is pushed from now on; leaves when it is destroyed, and the
  // channel outlives it.
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

    // `missed`: nothing was popped, missed() says how many commands are gone, and the next pop goes on with the oldest
    // that is still there.
    Outcome try_pop(T& item) noexcept {
      const Outcome outcome = read(item);
      if (outcome == Outcome::done) advance(1);
      return outcome;
    }
    // What is there, in order, as far as it fits in `items`. `missed` comes alone, as for try_pop.
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

    std::uint64_t missed() const noexcept { return missed_; }  // told of last
    std::uint64_t missed_in_all() const noexcept { return missed_in_all_; }

   private:
    friend Broadcast;
    explicit Subscriber(Broadcast& channel) noexcept : channel_(&channel) {}

    // Reads the command that is `ahead` of the next one; position_ stays where it is unless commands were missed.
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
      // Overwritten. What was read before this one counts first; the next call comes here again.
      if (ahead == 0) skip(holds);
      return Outcome::missed;
    }
    // Goes on with the oldest command that is still there, now that this cell holds the one before `holds`.
    void skip(std::uint64_t holds) noexcept {
      const std::uint64_t tail = channel_->tail_.load(std::memory_order_relaxed) & ~kClosed;
      // What comes a ring behind the tail is overwritten next. A tail read here may be older than the stamp.
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
        place_->is_taken.store(false, std::memory_order_release);  // pairs with the acquire in subscribe()
        channel_->room_.notify_all();
      }
      place_ = nullptr;
    }

    Broadcast* channel_ = nullptr;
    Place* place_ = nullptr;  // nullptr: it misses what it is too slow for
    std::uint64_t position_ = 0;
    std::uint64_t missed_ = 0, missed_in_all_ = 0;
  };

  Subscriber subscribe(Behind behind) {
    Subscriber subscriber(*this);
    if (behind == Behind::blocks) {
      subscriber.place_ = &take_place();
      auto& cursor = subscriber.place_->cursor;
      // Holds producers up from here on, if they do not know it yet: they may have been a ring ahead before this was
      // seen, so where we begin is read once more behind the fence.
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

  // Any thread, any number of times. Pushes fail from now on; what was pushed can still be popped.
  void close() noexcept {
    tail_.fetch_or(kClosed, std::memory_order_relaxed);  // the tail itself is all that is told
    items_.notify_all();
    room_.notify_all();
  }
  bool is_closed() const noexcept { return (tail_.load(std::memory_order_relaxed) & kClosed) != 0; }
  std::size_t capacity() const noexcept { return mask_ + 1; }

 private:
  struct Claim {
    std::uint64_t first = 0;
    std::size_t count = 0;
    Outcome outcome = Outcome::done;  // done: all that were wanted
  };

  Cell& at(std::uint64_t position) const noexcept { return cells_[position & mask_]; }
  std::uint64_t position_of_tail() const noexcept { return tail_.load(std::memory_order_relaxed) & ~kClosed; }

  Place& take_place() {
    for (std::size_t i = 0; i < place_count_; ++i) {
      bool is_taken = false;
      // Pairs with the release in leave(): what the last one read is behind us.
      if (places_[i].is_taken.compare_exchange_strong(is_taken, true, std::memory_order_acquire)) return places_[i];
    }
    reject("a broadcast has no place for another consumer that blocks", "Make it with a larger `most_blocking`.");
  }

  Claim claim_positions(std::size_t wanted) noexcept {
    std::uint64_t tail = tail_.load(std::memory_order_relaxed);
    for (;;) {
      if ((tail & kClosed) != 0) return {0, 0, Outcome::closed};
      std::uint64_t gate = gate_seen_.load(Sync::kScan);  // pairs with the release below
      if (gate > tail) {                                  // a tail from before that gate: others went ahead
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
        Sync::acquire_fence();  // behind the loads of gate_seen_ and stamps: those before us have left these cells
        return {tail, count, count == wanted ? Outcome::done : Outcome::full};
      }
    }
  }
  // Whether what stood in this cell a ring ago is complete: its producer may be slower than all consumers.
  bool is_written(std::uint64_t position) const noexcept {
    const std::uint64_t before = position < capacity() ? 0 : position - capacity() + 1;
    return at(position).stamp(Sync::kScan) == before;  // pairs with the release in SharedCell::write()
  }
  // How far the slowest consumer that blocks is; never more than `tail`, which was read before.
  std::uint64_t slowest(std::uint64_t tail) noexcept {
    Sync::light_fence();  // pairs with the heavy_fence() in subscribe(): who is not seen here begins at `tail` or later
    std::uint64_t gate = tail;
    for (std::size_t i = 0; i < place_count_; ++i) gate = std::min(gate, places_[i].cursor.load(Sync::kScan));
    Sync::acquire_fence();  // pairs with the releases of the cursors
    return gate;
  }
  void publish(std::uint64_t position, const T& item) noexcept { at(position).write(position, item); }
  void pushed() noexcept {
    items_.notify_all();
    room_.notify_all();  // a producer may wait for this very cell, a ring later
  }

  const std::uint64_t mask_;
  const std::unique_ptr<Cell[]> cells_;
  const std::size_t place_count_;
  const std::unique_ptr<Place[]> places_;
  alignas(kApart) Index tail_{0};
  Index gate_seen_{0};  // no newer than the slowest consumer that blocks
  Event<kWait, Sync> items_, room_;
};

}  // namespace weir
