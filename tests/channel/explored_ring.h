// A program around one channel, for the explorer: producers push, consumers pop, somebody closes; and what must be true
// of it whatever happens.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "channel/blocking.h"
#include "channel/explored.h"

namespace weir::explored {

struct Item {
  std::uint32_t producer, number;
  std::uint64_t check;
};
inline Item make_item(std::uint32_t producer, std::uint32_t number) {
  return {producer, number, ~(std::uint64_t{producer} << 32U | number)};
}

struct Plan {
  int producers = 1;
  int consumers = 1;
  std::uint32_t pushes = 2;       // of each producer
  std::uint32_t more_pushes = 0;  // of the first one
  std::uint32_t pops = 0;         // of each consumer, tries or commands; 0: until closed
  std::size_t capacity = 1;
  std::size_t batch = 0;         // 0: one by one
  bool closes_last = true;       // the producer that is done last closes (with several, by a count)
  bool consumer_closes = false;  // the first consumer closes at first, then pops what is left
  bool has_closer = false;       // a thread of its own closes, at any time
  bool has_deadline = false;     // pushes and pops may be late
  bool only_tries = false;       // producers do not wait
};

template <class Channel>
class RingScenario : public Scenario {
 public:
  explicit RingScenario(const Plan& plan) : plan_(plan), channel_(plan.capacity) {}

  int threads() const override { return plan_.producers + plan_.consumers + (plan_.has_closer ? 1 : 0); }

  void run(int thread) override {
    if (thread < plan_.producers) {
      produce(static_cast<std::uint32_t>(thread));
    } else if (thread < plan_.producers + plan_.consumers) {
      consume(thread - plan_.producers);
    } else {
      channel_.close();
    }
  }

  void judge() override {
    std::array<std::array<int, 8>, 4> times{};
    for (int c = 0; c < plan_.consumers; ++c) {
      std::array<std::int64_t, 4> last{-1, -1, -1, -1};
      for (int i = 0; i < popped_count_[index(c)]; ++i) {
        const Item& item = popped_[index(c)][index(i)];
        const Item whole = make_item(item.producer, item.number);
        if (item.check != whole.check || item.producer >= 4 || item.number >= 8) return fail("contents are not whole");
        ++times[item.producer][item.number];
        if (item.number <= last[item.producer]) return fail("commands of one producer overtook each other");
        last[item.producer] = item.number;
      }
    }
    for (int p = 0; p < plan_.producers; ++p) {
      for (std::uint32_t n = 0; n < pushes_of(static_cast<std::uint32_t>(p)); ++n) {
        const int count = times[index(p)][n];
        const bool was_done = is_done_[index(p)][n];
        if (!was_done && count != 0) return fail("something was popped whose push failed");
        if (count > 1) return fail("something was popped twice");
        if (was_done && count == 0 && drains()) return fail("a push was done and never popped");
      }
    }
  }

 private:
  static std::size_t index(int i) { return static_cast<std::size_t>(i); }
  bool drains() const {
    return plan_.pops == 0 || (!plan_.has_deadline && plan_.pops * index(plan_.consumers) >= total());
  }
  std::uint32_t pushes_of(std::uint32_t producer) const {
    return plan_.pushes + (producer == 0 ? plan_.more_pushes : 0);
  }
  std::size_t total() const { return plan_.pushes * index(plan_.producers) + plan_.more_pushes; }
  // Never past on a clock, but the explorer lets it pass whenever it likes.
  Limit limit() const { return plan_.has_deadline ? Limit::until(INT64_MAX - 1) : Limit::forever(); }

  void produce(std::uint32_t producer) {
    if (plan_.batch != 0) {
      produce_batches(producer);
    } else {
      for (std::uint32_t n = 0; n < pushes_of(producer); ++n) {
        settle();
        const Outcome outcome = channel_.push(make_item(producer, n), plan_.only_tries ? Limit::none() : limit());
        is_done_[producer][n] = outcome == Outcome::done;
        if (outcome == Outcome::done) check_room(1);
        if (outcome == Outcome::closed) {
          if (!closes()) fail("closed, and nobody closed it");
          break;
        }
        if (outcome == Outcome::full && !plan_.only_tries) fail("full, from a push that waits");
        if (outcome == Outcome::late && !plan_.has_deadline) fail("late without a deadline");
      }
    }
    if (plan_.closes_last && producers_left_.fetch_sub(1, std::memory_order_acq_rel) == 1) channel_.close();
  }
  void produce_batches(std::uint32_t producer) {
    std::array<Item, 8> items;
    for (std::uint32_t first = 0; first < pushes_of(producer);) {
      const std::size_t wanted = std::min<std::size_t>(plan_.batch, pushes_of(producer) - first);
      for (std::uint32_t i = 0; i < wanted; ++i) items[i] = make_item(producer, first + i);
      const Moved moved = channel_.push_batch(std::span<const Item>(items.data(), wanted), limit());
      for (std::uint32_t i = 0; i < moved.count; ++i) is_done_[producer][first + i] = true;
      check_room(moved.count);
      if (moved.outcome == Outcome::done && moved.count != wanted) fail("a batch is done, and not all was pushed");
      if (moved.outcome == Outcome::closed) break;
      first += static_cast<std::uint32_t>(wanted);
    }
  }

  void consume(int consumer) {
    if (plan_.consumer_closes && consumer == 0) channel_.close();
    for (std::uint32_t n = 0; plan_.pops == 0 || n < plan_.pops;) {
      settle();
      ++pops_begun_;
      std::array<Item, 8> items{};
      Moved moved{1, Outcome::done};
      if (plan_.batch != 0) {
        pops_begun_ += static_cast<int>(plan_.batch) - 1;
        moved = channel_.pop_batch(std::span<Item>(items.data(), plan_.batch), limit());
        pops_begun_ -= static_cast<int>(plan_.batch - moved.count);
      } else {
        moved.outcome = channel_.pop(items[0], limit());
      }
      n += std::max<std::uint32_t>(1, static_cast<std::uint32_t>(moved.count));
      if (moved.outcome == Outcome::late && plan_.has_deadline) {
        if (plan_.batch == 0) --pops_begun_;
        continue;
      }
      if (moved.outcome != Outcome::done) {
        if (moved.outcome != Outcome::closed || !closes()) fail("a pop ended as it must not");
        break;
      }
      for (std::size_t i = 0; i < moved.count; ++i) {
        if (popped_count_[index(consumer)] == 8) fail("more was popped than pushed");
        popped_[index(consumer)][index(popped_count_[index(consumer)]++)] = items[i];
      }
    }
  }

  bool closes() const { return plan_.closes_last || plan_.consumer_closes || plan_.has_closer; }
  // Steps are in an order in which what was read had been written, so this holds at any time.
  void check_room(std::size_t count) {
    pushed_ += static_cast<int>(count);
    if (pushed_ > pops_begun_ + static_cast<int>(channel_.capacity())) fail("more is in the channel than it can hold");
  }

  const Plan plan_;
  Channel channel_;
  Explored::Atomic<std::uint32_t> producers_left_{static_cast<std::uint32_t>(plan_.producers)};
  std::array<std::array<bool, 8>, 4> is_done_{};
  std::array<std::array<Item, 8>, 4> popped_{};
  std::array<int, 4> popped_count_{};
  int pushed_ = 0;
  int pops_begun_ = 0;  // done or under way
};

}  // namespace weir::explored
