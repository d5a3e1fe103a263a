// The reading end of a ring with one consumer, shared by spsc and mpsc. A cell is published by its stamp (position + 1)
// and released by the head alone, so the consumer never writes to a cell, and its line changes hands once per command.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include "channel/blocking.h"
#include "channel/cells.h"

namespace weir {

// `Self` has outcome_when_empty(), which distinguishes `empty` from `closed`.
template <class Self, class T, Wait kWait, class Sync>
class SingleConsumer : public Blocking<Self, T, kWait, Sync> {
 public:
  Outcome try_pop(T& item) noexcept {
    const std::uint64_t next = this->next();
    if (available(next) == 0) return self().outcome_when_empty();
    cells_.read(cells_.at(next), item);
    release(next + 1, 1);
    return Outcome::done;
  }
  Moved try_pop_batch(std::span<T> items) noexcept {
    return take(items.size(), [&](std::size_t i, const auto& cell) { cells_.read(cell, items[i]); });
  }
  // Calls `visit` with each command in place, at most `most` of them; their cells are released together afterwards.
  template <class Visit>
  Moved consume(std::size_t most, Visit&& visit) noexcept {
    return take(most, [&](std::size_t, const auto& cell) { visit(cells_.item(cell)); });
  }
  // For the consumer: whether a pop would succeed. Touches no line of the producers except that of the next cell.
  bool has_next() noexcept { return available(next()) != 0; }
  // For the consumer: whether the channel is closed and everything has been popped.
  bool is_finished() noexcept { return available(next()) == 0 && self().outcome_when_empty() == Outcome::closed; }
  std::size_t capacity() const noexcept { return cells_.size(); }

 protected:
  explicit SingleConsumer(std::size_t capacity) : cells_(ring_capacity(capacity)) { Sync::prepare(); }

  Cells<T, Sync>& cells() noexcept { return cells_; }
  // The next position to pop. For the consumer only. It has no copy of its own: a second store for each pop costs
  // (push and pop 11.3 ns with it, 10.5 without; Xeon, 2026-11).
  std::uint64_t next() const noexcept { return head_.load(std::memory_order_relaxed); }
  // For producers: fills a cell that the caller has claimed, and publishes it.
  void publish(std::uint64_t position, const T& item) noexcept {
    auto& cell = cells_.at(position);
    cells_.write(cell, item);
    cells_.set_stamp(cell, position + 1, std::memory_order_release);  // pairs with the fence in available()
  }
  // The same for several consecutive items, published in runs: the stamp of a run's first cell, which is written last,
  // contains the number of the others, and nobody reads their stamps. Those are written anyway, without order: then
  // whole lines are written, which need not be fetched first (batches of 1000: 151 M/s without, 300 with; Neoverse-V1,
  // 2026-11), and the next round finds a stamp of this one.
  void publish(std::uint64_t position, std::span<const T> items) noexcept {
    while (!items.empty()) {
      const std::size_t count = std::min(items.size(), kLongestRun);
      for (std::size_t i = 1; i < count; ++i) {
        auto& cell = cells_.at(position + i);
        cells_.write(cell, items[i]);
        cells_.set_stamp(cell, position + i + 1, std::memory_order_relaxed);
      }
      auto& cell = cells_.at(position);
      cells_.write(cell, items[0]);
      const std::uint64_t more = static_cast<std::uint64_t>(count - 1) << kPositionBits;
      // Pairs with the fence in available().
      cells_.set_stamp(cell, ((position + 1) & kPositionMask) | more, std::memory_order_release);
      position += count;
      items = items.subspan(count);
    }
  }
  // Cells before this one belong to the producers again. Any thread.
  std::uint64_t head() const noexcept { return head_.load(std::memory_order_acquire); }  // pairs with release()

 private:
  // A stamp: the position, and the number of further cells published with this one.
  static constexpr int kPositionBits = 48, kRunBits = 16;
  static constexpr std::uint64_t kPositionMask = (std::uint64_t{1} << kPositionBits) - 1;
  static constexpr std::size_t kLongestRun = 64;  // the consumer waits for all of a run

  // Limit of a scan: commands already found are processed before looking for more.
  static constexpr std::uint64_t kFarthest = 8;

  Self& self() noexcept { return static_cast<Self&>(*this); }

  // Calls take_one(i, cell) for up to `most` cells.
  template <class TakeOne>
  Moved take(std::size_t most, TakeOne&& take_one) noexcept {
    std::size_t done = 0;
    for (std::uint64_t next = this->next(); done < most;) {
      const std::uint64_t count = std::min<std::uint64_t>(available(next), most - done);
      if (count == 0) break;
      for (std::uint64_t i = 0; i < count; ++i) take_one(done + i, cells_.at(next + i));
      next += count;
      release(next, count);
      done += count;
    }
    if (done != 0 || most == 0) return {done, Outcome::done};
    return {0, self().outcome_when_empty()};
  }

  // The number of commands known to be available; looks for more only if there are none.
  std::uint64_t available(std::uint64_t next) noexcept {
    if (ready_ != next) [[likely]]
      return ready_ - next;
    // Several loads are in flight at once, ordered by one fence; an acquire for each would wait each time.
    std::uint64_t position = next;
    while (position - next < kFarthest) {
      const std::uint64_t stamp = cells_.stamp(cells_.at(position), Sync::kScan);
      // Alone, as most are: then the next address does not wait for this stamp.
      if (stamp == position + 1) {
        ++position;
        continue;
      }
      if (((stamp ^ (position + 1)) << kRunBits) != 0) break;
      position += 1 + (stamp >> kPositionBits);
    }
    if (position == next) return 0;
    Sync::acquire_fence();  // pairs with the release of the stamp by the producer
    ready_ = position;
    return ready_ - next;
  }
  void release(std::uint64_t next, std::uint64_t count) noexcept {
    head_.store(next, std::memory_order_release);  // pairs with the acquire in head()
    this->notify_popped(count);
  }

  alignas(kApart) Cells<T, Sync> cells_;  // read by all
  alignas(kApart) typename Sync::template Atomic<std::uint64_t> head_{0};
  std::uint64_t ready_ = 0;  // cells before this one are known to be published
};

}  // namespace weir
