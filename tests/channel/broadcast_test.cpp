// Every consumer sees every command, or is told exactly how many it missed.
#include "channel/broadcast.h"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <optional>
#include <thread>
#include <vector>

#include "any_channel.h"
#include "base/error.h"

namespace weir::test {
namespace {

TEST(Broadcast, every_consumer_sees_every_command) {
  Broadcast<CommandRecord> channel(8);
  auto first = channel.subscribe(LagPolicy::blocks), second = channel.subscribe(LagPolicy::blocks);
  auto third = channel.subscribe(LagPolicy::misses);
  CommandRecord record;
  for (std::uint32_t i = 0; i < 100; ++i) {
    ASSERT_EQ(channel.try_push(command(0, i)), Outcome::done);
    for (auto* const subscriber : {&first, &second, &third}) {
      ASSERT_EQ(subscriber->try_pop(record), Outcome::done);
      ASSERT_EQ(record.id, i);
      ASSERT_TRUE(is_whole(record));
      ASSERT_EQ(subscriber->try_pop(record), Outcome::empty);
    }
  }
}

TEST(Broadcast, a_consumer_sees_what_is_pushed_after_it_came) {
  Broadcast<CommandRecord> channel(8);
  for (std::uint32_t i = 0; i < 21; ++i) ASSERT_EQ(channel.try_push(command(0, i)), Outcome::done);
  for (const LagPolicy behind : {LagPolicy::blocks, LagPolicy::misses}) {
    auto subscriber = channel.subscribe(behind);
    CommandRecord record;
    EXPECT_EQ(subscriber.try_pop(record), Outcome::empty);
    ASSERT_EQ(channel.try_push(command(0, 100)), Outcome::done);
    EXPECT_EQ(subscriber.try_pop(record), Outcome::done);
    EXPECT_EQ(record.id, 100U);
  }
}

TEST(Broadcast, the_slowest_that_blocks_decides_and_one_that_leaves_no_longer_does) {
  Broadcast<CommandRecord> channel(4);
  auto fast = channel.subscribe(LagPolicy::blocks);
  std::optional slow(channel.subscribe(LagPolicy::blocks));
  CommandRecord record;
  for (std::uint32_t i = 0; i < 4; ++i) {
    ASSERT_EQ(channel.try_push(command(0, i)), Outcome::done);
    ASSERT_EQ(fast.try_pop(record), Outcome::done);
  }
  EXPECT_EQ(channel.try_push(command(0, 4)), Outcome::full);
  ASSERT_EQ(slow->try_pop(record), Outcome::done);
  EXPECT_EQ(channel.try_push(command(0, 4)), Outcome::done);
  EXPECT_EQ(channel.try_push(command(0, 5)), Outcome::full);
  slow.reset();
  for (std::uint32_t i = 5; i < 8; ++i) EXPECT_EQ(channel.try_push(command(0, i)), Outcome::done);
  EXPECT_EQ(channel.try_push(command(0, 8)), Outcome::full);  // now `fast` is the slowest
  for (std::uint32_t i = 4; i < 8; ++i) {
    ASSERT_EQ(fast.try_pop(record), Outcome::done);
    EXPECT_EQ(record.id, i);
  }
}

TEST(Broadcast, who_misses_is_told_exactly_and_goes_on_with_the_oldest) {
  Broadcast<CommandRecord> channel(4);
  auto subscriber = channel.subscribe(LagPolicy::misses);
  CommandRecord record;
  std::uint32_t next = 0;
  for (const std::uint32_t pushes : {1U, 4U, 5U, 11U, 4U, 123U, 6U}) {
    for (std::uint32_t i = 0; i < pushes; ++i) ASSERT_EQ(channel.try_push(command(0, next + i)), Outcome::done);
    if (pushes > 4) {
      ASSERT_EQ(name_of(subscriber.try_pop(record)), "missed");
      EXPECT_EQ(subscriber.missed(), pushes - 4);
    }
    for (std::uint32_t i = pushes > 4 ? pushes - 4 : 0; i < pushes; ++i) {
      ASSERT_EQ(subscriber.try_pop(record), Outcome::done);
      EXPECT_EQ(record.id, next + i);
    }
    EXPECT_EQ(subscriber.try_pop(record), Outcome::empty);
    next += pushes;
  }
  EXPECT_EQ(subscriber.missed_in_all(), 1U + 7 + 119 + 2);
}

TEST(Broadcast, batches_stop_where_something_was_missed) {
  Broadcast<std::uint64_t> channel(4);
  auto subscriber = channel.subscribe(LagPolicy::misses);
  std::array<std::uint64_t, 10> in{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}, out{};
  Moved moved = channel.try_push_batch(in);  // more than a ring: nobody blocks
  EXPECT_EQ(moved.count, 10U);
  EXPECT_EQ(moved.outcome, Outcome::done);
  moved = subscriber.try_pop_batch(out);
  EXPECT_EQ(moved.count, 0U);
  EXPECT_EQ(name_of(moved.outcome), "missed");
  EXPECT_EQ(subscriber.missed(), 6U);
  moved = subscriber.try_pop_batch(out);
  EXPECT_EQ(moved.count, 4U);
  EXPECT_EQ(out[0], 6U);
  EXPECT_EQ(out[3], 9U);
  moved = subscriber.try_pop_batch(out);
  EXPECT_EQ(moved.outcome, Outcome::empty);
}

TEST(Broadcast, has_as_many_places_as_it_was_made_with) {
  Broadcast<CommandRecord> channel(4, 2);
  std::optional first(channel.subscribe(LagPolicy::blocks));
  const auto second = channel.subscribe(LagPolicy::blocks);
  EXPECT_THROW(channel.subscribe(LagPolicy::blocks), Error);
  const auto others = {channel.subscribe(LagPolicy::misses), channel.subscribe(LagPolicy::misses)};
  EXPECT_EQ(others.size(), 2U);
  first.reset();
  EXPECT_NO_THROW(channel.subscribe(LagPolicy::blocks));
}

TEST(Broadcast, closed_is_said_when_everything_was_seen) {
  Broadcast<CommandRecord> channel(2);
  auto blocking = channel.subscribe(LagPolicy::blocks), missing = channel.subscribe(LagPolicy::misses);
  ASSERT_EQ(channel.try_push(command(0, 1)), Outcome::done);
  channel.close();
  auto late = channel.subscribe(LagPolicy::blocks);
  CommandRecord record;
  EXPECT_EQ(late.try_pop(record), Outcome::closed);
  for (auto* const subscriber : {&blocking, &missing}) {
    EXPECT_EQ(subscriber->try_pop(record), Outcome::done);
    EXPECT_EQ(subscriber->try_pop(record), Outcome::closed);
  }
}

TEST(Broadcast, moves_with_what_it_holds) {
  Broadcast<CommandRecord> channel(2);
  auto first = channel.subscribe(LagPolicy::blocks);
  ASSERT_EQ(channel.try_push(command(0, 1)), Outcome::done);
  auto second = std::move(first);
  ASSERT_EQ(channel.try_push(command(0, 2)), Outcome::done);
  EXPECT_EQ(channel.try_push(command(0, 3)), Outcome::full);
  second = channel.subscribe(LagPolicy::misses);  // the place is given back
  EXPECT_EQ(channel.try_push(command(0, 3)), Outcome::done);
}

// Words that must belong together, in several lines.
struct Wide {
  std::uint64_t producer, sequence;
  std::array<std::uint64_t, 20> copies;
};

// Producers of different speeds, consumers of both kinds that come, go and dawdle. Each sees every producer's commands
// in order; what it popped and what it missed are all there were.
template <Wait kWait>
void crowd(int producers) {
  constexpr std::uint64_t kEach = 800;
  Broadcast<Wide, kWait> channel(16);
  std::atomic<int> bad{0};
  std::atomic<bool> is_over{false};
  std::vector<std::jthread> consumers, threads;
  const auto check = [&](const Wide& item, std::vector<std::uint64_t>& last) {
    if (item.producer >= last.size() || item.sequence < last[item.producer]) ++bad;
    for (const std::uint64_t copy : item.copies)
      if (copy != item.sequence * 1000 + item.producer) ++bad;
    last[item.producer % last.size()] = item.sequence + 1;
  };
  for (int c = 0; c < 3; ++c) {
    const LagPolicy behind = c == 0 ? LagPolicy::blocks : LagPolicy::misses;
    consumers.emplace_back([&, c, behind, subscriber = channel.subscribe(behind)]() mutable {
      std::vector<std::uint64_t> last(static_cast<std::size_t>(producers));
      std::uint64_t seen = 0;
      std::vector<Wide> items(c == 2 ? 5 : 1);
      for (;;) {
        const Moved moved = subscriber.pop_batch(items, patience());
        if (moved.outcome == Outcome::closed) break;
        if (moved.outcome == Outcome::missed) {
          seen += subscriber.missed();
          if (subscriber.missed() == 0 || behind == LagPolicy::blocks) ++bad;
          continue;
        }
        if (moved.outcome != Outcome::done) {
          ++bad;
          return;
        }
        for (std::size_t i = 0; i < moved.count; ++i) check(items[i], last);
        seen += moved.count;
        if (c == 2 && seen % 64 == 0) std::this_thread::yield();
      }
      if (seen != kEach * static_cast<std::uint64_t>(producers)) ++bad;
    });
  }
  // One that comes and goes: what it sees has no gaps but those that it is told of.
  threads.emplace_back([&] {
    for (int i = 0; !is_over; ++i) {
      auto subscriber = channel.subscribe(i % 2 == 0 ? LagPolicy::blocks : LagPolicy::misses);
      std::vector<std::uint64_t> last(static_cast<std::size_t>(producers));
      Wide item;
      for (int k = 0; k < i % 40; ++k)
        if (subscriber.try_pop(item) == Outcome::done) check(item, last);
    }
  });
  {
    std::vector<std::jthread> pushing;
    for (int p = 0; p < producers; ++p) {
      pushing.emplace_back([&, p] {
        for (std::uint64_t i = 0; i < kEach; ++i) {
          Wide item{static_cast<std::uint64_t>(p), i, {}};
          item.copies.fill(i * 1000 + static_cast<std::uint64_t>(p));
          if (channel.push(item, patience()) != Outcome::done) ++bad;
        }
      });
    }
  }
  is_over = true;
  channel.close();
  threads.clear();
  consumers.clear();
  EXPECT_EQ(bad, 0) << producers << " producers";
}

TEST(Broadcast, crowds_come_and_go) {
  for_each_wait([]<Wait kWait>() {
    for (const int producers : {1, 3}) crowd<kWait>(producers);
  });
}

// Without anyone who blocks, producers overtake each other by a whole ring: none writes into a cell that another one
// still writes to.
TEST(Broadcast, producers_that_lap_each_other_tear_nothing) {
  for_each_wait([]<Wait kWait>() {
    Broadcast<Wide, kWait> channel(2);
    auto subscriber = channel.subscribe(LagPolicy::misses);
    std::atomic<int> bad{0};
    std::jthread consumer([&] {
      Wide item;
      std::uint64_t seen = 0;
      for (Outcome outcome = Outcome::done; outcome != Outcome::closed;) {
        outcome = subscriber.pop(item, patience());
        if (outcome == Outcome::late) {
          ++bad;
          break;
        }
        if (outcome == Outcome::missed) seen += subscriber.missed();
        if (outcome != Outcome::done) continue;
        ++seen;
        for (const std::uint64_t copy : item.copies)
          if (copy != item.sequence * 1000 + item.producer) ++bad;
      }
      if (seen != 6000) ++bad;
    });
    {
      std::vector<std::jthread> producers;
      for (std::uint64_t p = 0; p < 3; ++p) {
        producers.emplace_back([&, p] {
          for (std::uint64_t i = 0; i < 2000; ++i) {
            Wide item{p, i, {}};
            item.copies.fill(i * 1000 + p);
            if (channel.push(item, patience()) != Outcome::done) ++bad;
          }
        });
      }
    }
    channel.close();
    consumer.join();
    EXPECT_EQ(bad, 0);
  });
}

TEST(Broadcast, one_that_blocks_and_dies_lets_producers_go) {
  for_each_wait([]<Wait kWait>() {
    Broadcast<CommandRecord, kWait> channel(4);
    std::jthread consumer([subscriber = channel.subscribe(LagPolicy::blocks)]() mutable {
      CommandRecord record;
      for (int i = 0; i < 10; ++i) subscriber.pop(record, patience());
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
      const auto dies_here = std::move(subscriber);
    });
    Outcome outcome = Outcome::done;
    const Limit limit = patience();
    for (std::uint32_t i = 0; i < 100 && outcome == Outcome::done; ++i) outcome = channel.push(command(0, i), limit);
    EXPECT_EQ(name_of(outcome), "done");
    EXPECT_FALSE(limit.is_past());
  });
}

}  // namespace
}  // namespace weir::test
