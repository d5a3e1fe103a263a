// A ring per producer behind one consumer.
#include "channel/lanes.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <thread>
#include <vector>

#include "base/error.h"
#include "channel/command_record.h"

namespace weir {
namespace {

constexpr std::int64_t kPatienceNs = 200'000'000'000;  // a test that waits longer has failed

CommandRecord record(std::uint32_t id, std::uint16_t stream = 0) { return make_synchronize(stream, id); }

TEST(Lanes, commands_of_one_producer_keep_their_order) {
  Lanes<CommandRecord> lanes(8, 2);
  for (std::uint32_t i = 0; i < 3; ++i) {
    ASSERT_EQ(lanes.producer(0).try_push(record(i, 0)), Outcome::done);
    ASSERT_EQ(lanes.producer(1).try_push(record(i, 1)), Outcome::done);
  }
  std::uint32_t expected[2] = {0, 0};
  CommandRecord popped;
  for (int i = 0; i < 6; ++i) {
    ASSERT_EQ(lanes.try_pop(popped), Outcome::done);
    EXPECT_EQ(popped.id, expected[popped.stream]++);
  }
  EXPECT_EQ(lanes.try_pop(popped), Outcome::empty);
}

TEST(Lanes, a_full_lane_leaves_the_others_alone) {
  Lanes<CommandRecord> lanes(2, 2);
  EXPECT_EQ(lanes.producer(0).try_push(record(0)), Outcome::done);
  EXPECT_EQ(lanes.producer(0).try_push(record(1)), Outcome::done);
  EXPECT_EQ(lanes.producer(0).try_push(record(2)), Outcome::full);
  EXPECT_EQ(lanes.producer(0).push(record(2), Limit::within(1'000'000)), Outcome::late);
  EXPECT_EQ(lanes.producer(1).try_push(record(0)), Outcome::done);
}

TEST(Lanes, a_busy_lane_does_not_starve_the_others) {
  Lanes<CommandRecord> lanes(1024, 2);
  for (std::uint32_t i = 0; i < 1000; ++i) ASSERT_EQ(lanes.producer(0).try_push(record(i, 0)), Outcome::done);
  ASSERT_EQ(lanes.producer(1).try_push(record(7, 1)), Outcome::done);
  CommandRecord popped;
  int before = 0;
  while (lanes.try_pop(popped) == Outcome::done && popped.stream == 0) ++before;
  EXPECT_EQ(popped.stream, 1);
  EXPECT_LE(before, 16);
}

TEST(Lanes, batches_come_from_all_lanes) {
  Lanes<CommandRecord> lanes(64, 3);
  std::vector<CommandRecord> batch(20);
  for (std::uint32_t i = 0; i < batch.size(); ++i) batch[i] = record(i);
  for (std::size_t lane = 0; lane < 3; ++lane)
    EXPECT_EQ(lanes.producer(lane).try_push_batch(batch).count, batch.size());
  std::vector<CommandRecord> popped(50);
  EXPECT_EQ(lanes.try_pop_batch(popped).count, 50U);
  EXPECT_EQ(lanes.try_pop_batch(popped).count, 10U);
  EXPECT_EQ(lanes.try_pop_batch(popped).outcome, Outcome::empty);
}

TEST(Lanes, closing_drains_and_then_says_so) {
  Lanes<CommandRecord> lanes(8, 2);
  ASSERT_EQ(lanes.producer(1).try_push(record(5)), Outcome::done);
  lanes.close();
  EXPECT_EQ(lanes.producer(0).try_push(record(6)), Outcome::closed);
  EXPECT_EQ(lanes.producer(1).push(record(6)), Outcome::closed);
  CommandRecord popped;
  ASSERT_EQ(lanes.pop(popped), Outcome::done);
  EXPECT_EQ(popped.id, 5U);
  EXPECT_EQ(lanes.pop(popped), Outcome::closed);
  EXPECT_TRUE(lanes.is_closed());
}

TEST(Lanes, needs_a_lane) { EXPECT_THROW(Lanes<CommandRecord>(8, 0), Error); }

template <Wait kWait>
void nothing_is_lost(std::size_t capacity, int producers, std::uint32_t each, bool closes_early) {
  Lanes<CommandRecord, kWait> lanes(capacity, static_cast<std::size_t>(producers));
  std::vector<std::uint32_t> pushed(static_cast<std::size_t>(producers), 0), next(pushed);
  const Limit limit = Limit::within(kPatienceNs);
  bool in_order = true;
  Outcome end = Outcome::done;
  std::uint64_t popped = 0;
  {
    std::vector<std::jthread> threads;
    for (int p = 0; p < producers; ++p) {
      threads.emplace_back([&, p] {
        auto& lane = lanes.producer(static_cast<std::size_t>(p));
        for (std::uint32_t i = 0; i < each; ++i) {
          if (lane.push(record(i, static_cast<std::uint16_t>(p)), limit) != Outcome::done) break;
          ++pushed[static_cast<std::size_t>(p)];
        }
      });
    }
    std::jthread consumer([&] {
      CommandRecord command;
      while ((end = lanes.pop(command, limit)) == Outcome::done) {
        in_order = in_order && command.id == next[command.stream]++;
        ++popped;
        if (closes_early && popped == each) lanes.close();
      }
    });
    for (auto& thread : threads) thread.join();
    lanes.close();
  }
  EXPECT_EQ(end, Outcome::closed);
  EXPECT_TRUE(in_order);
  // Also where closing raced with pushes: what was pushed is what was popped.
  EXPECT_EQ(pushed, next);
  if (!closes_early) {
    EXPECT_EQ(popped, static_cast<std::uint64_t>(each) * static_cast<std::uint64_t>(producers));
  }
}

TEST(Lanes, nothing_is_lost_spinning) { nothing_is_lost<Wait::spin>(16, 3, 20'000, false); }
TEST(Lanes, nothing_is_lost_parking) { nothing_is_lost<Wait::park>(4, 4, 2'000, false); }
TEST(Lanes, nothing_is_lost_by_default) { nothing_is_lost<Wait::spin_then_park>(4, 4, 20'000, false); }
TEST(Lanes, closing_loses_nothing_that_was_pushed) {
  for (int i = 0; i < 20; ++i) nothing_is_lost<Wait::spin_then_park>(8, 3, 300, true);
}

}  // namespace
}  // namespace weir
