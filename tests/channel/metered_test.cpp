// What is counted is what happened.
#include "channel/metered.h"

#include <gtest/gtest.h>

#include <set>
#include <thread>
#include <vector>

#include "any_channel.h"

namespace weir::test {
namespace {

TEST(Metered, counts_each_end) {
  Metered<Mpsc<CommandRecord>> channel(4U);
  CommandRecord record;
  EXPECT_EQ(channel.try_pop(record), Outcome::empty);
  for (std::uint32_t i = 0; i < 4; ++i) EXPECT_EQ(channel.try_push(command(0, i)), Outcome::done);
  EXPECT_EQ(channel.try_push(command(0, 4)), Outcome::full);
  EXPECT_EQ(channel.push(command(0, 4), Limit::within(1000)), Outcome::late);
  ChannelCounts counts = channel.snapshot();
  EXPECT_EQ(counts.pushes, 4U);
  EXPECT_EQ(counts.pops, 0U);
  EXPECT_EQ(counts.depth(), 4U);
  EXPECT_EQ(counts.deepest, 4U);
  EXPECT_EQ(counts.full, 2U);
  EXPECT_EQ(counts.empty, 1U);
  EXPECT_EQ(counts.push_waits, 1U);
  EXPECT_EQ(counts.late, 1U);
  std::vector<CommandRecord> records(3);
  EXPECT_EQ(channel.try_pop_batch(records).count, 3U);
  EXPECT_EQ(channel.push_batch(records).count, 3U);
  channel.close();
  EXPECT_EQ(channel.try_push(command(0, 4)), Outcome::closed);
  while (channel.pop(record) == Outcome::done) {
  }
  counts = channel.snapshot();
  EXPECT_EQ(counts.pushes, 7U);
  EXPECT_EQ(counts.pops, 7U);
  EXPECT_EQ(counts.push_closed, 1U);
  EXPECT_EQ(counts.pop_closed, 1U);
  EXPECT_EQ(counts.pop_waits, 0U);
}

TEST(Metered, sees_how_deep_it_was) {
  Metered<Spsc<CommandRecord>> channel(64U);
  CommandRecord record;
  for (std::uint32_t depth : {3U, 17U, 5U}) {
    for (std::uint32_t i = 0; i < depth; ++i) ASSERT_EQ(channel.try_push(command(0, i)), Outcome::done);
    for (std::uint32_t i = 0; i < depth; ++i) ASSERT_EQ(channel.try_pop(record), Outcome::done);
  }
  EXPECT_EQ(channel.snapshot().deepest, 17U);
  EXPECT_EQ(channel.snapshot().depth(), 0U);
}

TEST(Metered, adds_up_over_threads_that_come_and_go) {
  Metered<Mpmc<CommandRecord>> channel(16U);
  std::uint64_t pops = 0;
  for (int round = 0; round < 5; ++round) {
    std::vector<std::jthread> threads;
    for (int t = 0; t < 4; ++t) {
      threads.emplace_back([&, t] {
        CommandRecord record;
        for (std::uint32_t i = 0; i < 500; ++i) {
          if (t % 2 == 0) {
            EXPECT_EQ(channel.push(command(t, i), patience()), Outcome::done);
          } else {
            EXPECT_EQ(channel.pop(record, patience()), Outcome::done);
          }
        }
      });
    }
    // Asked while they run: the pops that are counted are never more than everything that was pushed.
    const ChannelCounts counts = channel.snapshot();
    EXPECT_GE(counts.pops, pops);
    EXPECT_LE(counts.pops, 5000U);
    pops = counts.pops;
  }
  EXPECT_EQ(channel.snapshot().pushes, 5000U);
  EXPECT_EQ(channel.snapshot().pops, 5000U);
  EXPECT_LE(channel.snapshot().deepest, 5000U);
}

TEST(ThreadSlot, is_each_living_threads_own_and_used_again) {
  const int own = thread_slot();
  EXPECT_EQ(thread_slot(), own);
  const int before = thread_slots_used();
  std::set<int> seen;
  for (int i = 0; i < 100; ++i) {
    std::jthread([&] {
      EXPECT_NE(thread_slot(), own);
      seen.insert(thread_slot());
    }).join();
  }
  EXPECT_LE(static_cast<int>(seen.size()), 2);
  EXPECT_LE(thread_slots_used(), before + 2);
}

// More threads than slots: the rest share, and nothing is miscounted.
TEST(ThreadSlot, runs_out_gracefully) {
  Metered<Mpmc<std::uint64_t>> channel(1U << 14);
  constexpr int kThreads = kThreadSlots + 20;
  std::atomic<int> here{0};
  std::vector<std::jthread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&] {
      thread_slot();
      ++here;
      while (here != kThreads) std::this_thread::yield();  // all alive at once
      for (int i = 0; i < 100; ++i) EXPECT_EQ(channel.try_push(1), Outcome::done);
    });
  }
  threads.clear();
  EXPECT_EQ(channel.snapshot().pushes, 100U * kThreads);
}

}  // namespace
}  // namespace weir::test
