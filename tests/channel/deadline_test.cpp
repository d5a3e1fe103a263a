// Limits: late is not too early, late leaves nothing behind, and what comes in time is taken.
#include <thread>
#include <vector>

#include "any_channel.h"

namespace weir::test {
namespace {

template <class Kind>
struct Deadline : ::testing::Test {};
TYPED_TEST_SUITE(Deadline, Kinds, KindName);

TYPED_TEST(Deadline, a_push_without_room_is_late_and_leaves_nothing) {
  for_each_wait([]<Wait kWait>() {
    typename TypeParam::template Made<CommandRecord, kWait> made(2, 1);
    std::uint32_t count = 0;
    while (made.sink(0).try_push(command(0, count)) == Outcome::done) ++count;
    Limit limit = Limit::within(3'000'000);
    EXPECT_EQ(name_of(made.sink(0).push(command(0, 100), limit)), "late");
    EXPECT_GE(now_ns(), limit.deadline_ns);
    CommandRecord record;
    ASSERT_EQ(made.source().try_pop(record), Outcome::done);
    const std::vector<CommandRecord> three(3, command(0, count));
    limit = Limit::within(3'000'000);
    const Moved moved = made.sink(0).push_batch(three, limit);
    EXPECT_EQ(name_of(moved.outcome), "late");
    EXPECT_EQ(moved.count, 1U);
    EXPECT_GE(now_ns(), limit.deadline_ns);
    for (std::uint32_t i = 1; i <= count; ++i) {
      ASSERT_EQ(made.source().try_pop(record), Outcome::done);
      EXPECT_EQ(record.id, i);
    }
    EXPECT_EQ(made.source().try_pop(record), Outcome::empty);
  });
}

TYPED_TEST(Deadline, a_pop_of_nothing_is_late) {
  for_each_wait([]<Wait kWait>() {
    typename TypeParam::template Made<CommandRecord, kWait> made(2, 1);
    CommandRecord record;
    Limit limit = Limit::within(3'000'000);
    EXPECT_EQ(name_of(made.source().pop(record, limit)), "late");
    EXPECT_GE(now_ns(), limit.deadline_ns);
    limit = Limit::within(3'000'000);
    EXPECT_EQ(name_of(made.source().pop_batch(std::span(&record, 1), limit).outcome), "late");
    EXPECT_GE(now_ns(), limit.deadline_ns);
    // A deadline that has passed: what is there is still taken, and put.
    EXPECT_EQ(name_of(made.source().pop(record, Limit::until(1))), "late");
    EXPECT_EQ(name_of(made.sink(0).push(command(0, 5), Limit::until(1))), "done");
    EXPECT_EQ(name_of(made.source().pop(record, Limit::until(1))), "done");
    EXPECT_EQ(record.id, 5U);
  });
}

TYPED_TEST(Deadline, what_comes_in_time_is_taken) {
  for_each_wait([]<Wait kWait>() {
    typename TypeParam::template Made<CommandRecord, kWait> made(2, 1);
    constexpr std::uint32_t kCount = 50;
    std::jthread producer([&] {
      for (std::uint32_t i = 0; i < kCount; ++i) {
        // Now and then long enough for the consumer to sleep.
        if (i % 10 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
        made.sink(0).push(command(0, i), patience());
      }
    });
    CommandRecord record;
    for (std::uint32_t i = 0; i < kCount; ++i) {
      ASSERT_EQ(name_of(made.source().pop(record, patience())), "done");
      ASSERT_EQ(record.id, i);
      if (i % 17 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));  // and for the producer
    }
  });
}

// Many short deadlines against a partner that comes and goes: every command arrives once, whoever was late.
TYPED_TEST(Deadline, lateness_loses_nothing) {
  for_each_wait([]<Wait kWait>() {
    typename TypeParam::template Made<CommandRecord, kWait> made(4, 1);
    constexpr std::uint32_t kCount = 150;
    const Limit whole = patience();
    std::jthread producer([&] {
      for (std::uint32_t i = 0; i < kCount && !whole.is_past();)
        if (made.sink(0).push(command(0, i), Limit::within(i % 7 * 3000)) == Outcome::done) ++i;
    });
    CommandRecord record;
    std::uint32_t expected = 0;
    while (expected < kCount && !whole.is_past()) {
      if (made.source().pop(record, Limit::within(expected % 5 * 3000)) != Outcome::done) continue;
      ASSERT_EQ(record.id, expected);
      ++expected;
    }
    EXPECT_EQ(expected, kCount);
  });
}

}  // namespace
}  // namespace weir::test
