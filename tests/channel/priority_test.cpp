// The most urgent first, first in first out within a level, and no level is forgotten.
#include "channel/priority.h"

#include <gtest/gtest.h>

#include <array>
#include <thread>
#include <vector>

#include "any_channel.h"

namespace weir::test {
namespace {

CommandRecord urgent(std::size_t level, std::uint32_t id, int producer = 0) {
  CommandRecord record = command(producer, id);
  record.priority = static_cast<std::uint8_t>(level);
  return record;
}

TEST(Priority, the_most_urgent_first) {
  Priority<CommandRecord> channel(8);
  for (const std::size_t level : {3U, 1U, 2U, 0U, 3U, 0U, 1U, 2U})
    ASSERT_EQ(channel.try_push(urgent(level, static_cast<std::uint32_t>(level))), Outcome::done);
  CommandRecord record;
  for (const std::uint32_t level : {0U, 0U, 1U, 1U, 2U, 2U, 3U, 3U}) {
    ASSERT_EQ(channel.try_pop(record), Outcome::done);
    EXPECT_EQ(record.id, level);
  }
  EXPECT_EQ(channel.try_pop(record), Outcome::empty);
}

TEST(Priority, an_urgent_one_overtakes_those_that_are_there) {
  Priority<CommandRecord> channel(1024);
  for (std::uint32_t i = 0; i < 1000; ++i) ASSERT_EQ(channel.try_push(urgent(2, i)), Outcome::done);
  CommandRecord record;
  for (std::uint32_t i = 0; i < 5; ++i) {
    ASSERT_EQ(channel.try_pop(record), Outcome::done);
    EXPECT_EQ(record.id, i);
  }
  ASSERT_EQ(channel.try_push(urgent(0, 7777)), Outcome::done);
  ASSERT_EQ(channel.try_pop(record), Outcome::done);
  EXPECT_EQ(record.id, 7777U);
  ASSERT_EQ(channel.try_pop(record), Outcome::done);
  EXPECT_EQ(record.id, 5U);
}

TEST(Priority, levels_are_bounded_each_for_itself) {
  Priority<CommandRecord, Wait::spin_then_park, System, 8> channel(2);
  for (std::size_t level = 0; level < 8; ++level) {
    EXPECT_EQ(channel.try_push(urgent(level, 1)), Outcome::done);
    EXPECT_EQ(channel.try_push(urgent(level, 2)), Outcome::done);
    EXPECT_EQ(channel.try_push(urgent(level, 3)), Outcome::full);
  }
  CommandRecord record;
  for (std::size_t level = 0; level < 8; ++level) {
    for (std::uint32_t i = 1; i <= 2; ++i) {
      ASSERT_EQ(channel.try_pop(record), Outcome::done);
      EXPECT_EQ(record.priority, level);
      EXPECT_EQ(record.id, i);
    }
  }
}

TEST(Priority, a_level_may_be_said_and_the_last_takes_all_beyond) {
  Priority<std::uint64_t> channel(4);
  ASSERT_EQ(channel.try_push(1), Outcome::done);  // says nothing: the least urgent
  ASSERT_EQ(channel.try_push(2, 100), Outcome::done);
  ASSERT_EQ(channel.try_push(3, 1), Outcome::done);
  ASSERT_EQ(channel.push(4, 0, patience()), Outcome::done);
  std::uint64_t item = 0;
  for (const std::uint64_t expected : {4U, 3U, 1U, 2U}) {
    ASSERT_EQ(channel.try_pop(item), Outcome::done);
    EXPECT_EQ(item, expected);
  }
}

TEST(Priority, batches_keep_the_order_of_each_level) {
  Priority<CommandRecord> channel(4);
  std::vector<CommandRecord> in, out(16);
  for (const std::size_t level : {2U, 2U, 0U, 2U, 1U, 2U, 2U, 0U})
    in.push_back(urgent(level, static_cast<std::uint32_t>(in.size())));
  Moved moved = channel.try_push_batch(in);
  EXPECT_EQ(moved.count, 6U);  // the fifth of level 2 finds no room, and what is behind it stays behind
  EXPECT_EQ(moved.outcome, Outcome::full);
  moved = channel.try_pop_batch(out);
  ASSERT_EQ(moved.count, 6U);
  const std::array<std::uint32_t, 6> expected{2, 4, 0, 1, 3, 5};
  for (std::size_t i = 0; i < expected.size(); ++i) EXPECT_EQ(out[i].id, expected[i]);
}

TEST(Priority, a_batch_waits_for_the_level_that_is_full) {
  for_each_wait([]<Wait kWait>() {
    Priority<CommandRecord, kWait> channel(2);
    std::vector<CommandRecord> in;
    for (std::uint32_t i = 0; i < 60; ++i) in.push_back(urgent(i % 3 == 0 ? 0 : 3, i));
    std::jthread producer([&] {
      const Moved moved = channel.push_batch(in, patience());
      EXPECT_EQ(name_of(moved.outcome), "done");
      EXPECT_EQ(moved.count, in.size());
    });
    CommandRecord record;
    std::array<std::int64_t, 4> last{-1, -1, -1, -1};
    for (std::size_t i = 0; i < in.size(); ++i) {
      ASSERT_EQ(name_of(channel.pop(record, patience())), "done");
      ASSERT_GT(record.id, last[record.priority]);
      last[record.priority] = record.id;
    }
  });
}

// Long enough for bits to be taken away and set again: a level that was idle for thousands of pops is seen at once.
TEST(Priority, a_level_that_was_idle_for_long_is_seen_at_once) {
  Priority<CommandRecord, Wait::spin_then_park, System, 8> channel(16);
  CommandRecord record;
  for (std::size_t level = 0; level < 8; ++level) {
    ASSERT_EQ(channel.try_push(urgent(level, 0)), Outcome::done);
    ASSERT_EQ(channel.try_pop(record), Outcome::done);
  }
  for (std::uint32_t i = 0; i < 9000; ++i) {
    ASSERT_EQ(channel.try_push(urgent(7, i)), Outcome::done);
    const bool has_urgent = i % 1500 == 1499;
    if (has_urgent) {
      ASSERT_EQ(channel.try_push(urgent(i / 1500 % 7, 1'000'000 + i)), Outcome::done);
    }
    ASSERT_EQ(channel.try_pop(record), Outcome::done);
    EXPECT_EQ(record.id, has_urgent ? 1'000'000 + i : i);
    if (has_urgent) {
      ASSERT_EQ(channel.try_pop(record), Outcome::done);
    }
  }
}

// Producers on all levels against a consumer that takes bits away: nothing is lost, each producer's level is in order.
TEST(Priority, many_producers_on_many_levels) {
  for_each_wait([]<Wait kWait>() {
    Priority<CommandRecord, kWait> channel(16);
    constexpr std::uint32_t kEach = 5000;
    constexpr int kProducers = 3;
    std::vector<std::jthread> producers;
    for (int p = 0; p < kProducers; ++p) {
      producers.emplace_back([&, p] {
        // Mostly the last level, so that the others are idle for long and come back.
        for (std::uint32_t i = 0; i < kEach; ++i) {
          const std::size_t level = i % 700 == 699 ? i / 700 % 3 : 3;
          ASSERT_EQ(name_of(channel.push(urgent(level, i, p), patience())), "done");
        }
      });
    }
    std::array<std::array<std::int64_t, 4>, kProducers> last;
    for (auto& levels : last) levels.fill(-1);
    CommandRecord record;
    for (std::uint32_t i = 0; i < kProducers * kEach; ++i) {
      ASSERT_EQ(name_of(channel.pop(record, patience())), "done");
      std::int64_t& before = last[record.stream][record.priority];
      ASSERT_LT(before, std::int64_t{record.id});
      before = record.id;
    }
    EXPECT_EQ(channel.try_pop(record), Outcome::empty);
  });
}

}  // namespace
}  // namespace weir::test
