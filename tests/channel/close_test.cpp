// Closing: who sleeps is woken, who pushed in time is heard, and who dies holds nobody up.
#include <atomic>
#include <stdexcept>
#include <thread>
#include <vector>

#include "any_channel.h"

namespace weir::test {
namespace {

template <class Kind>
struct Closing : ::testing::Test {};
TYPED_TEST_SUITE(Closing, Kinds, KindName);

// Long enough that a thread which is going to sleep mostly does. Nothing depends on it.
void let_them_sleep() { std::this_thread::sleep_for(std::chrono::milliseconds(2)); }

TYPED_TEST(Closing, wakes_consumers) {
  for_each_wait([]<Wait kWait>() {
    typename TypeParam::template Made<CommandRecord, kWait> made(4, 1);
    const int consumers = std::min(3, TypeParam::kConsumers);
    std::vector<Outcome> outcomes(static_cast<std::size_t>(consumers), Outcome::done);
    std::vector<std::jthread> threads;
    for (int i = 0; i < consumers; ++i) {
      threads.emplace_back([&, i] {
        CommandRecord record;
        outcomes[static_cast<std::size_t>(i)] = made.source().pop(record, patience());
      });
    }
    let_them_sleep();
    made.channel.close();
    threads.clear();
    for (const Outcome outcome : outcomes) EXPECT_EQ(name_of(outcome), "closed");
  });
}

TYPED_TEST(Closing, wakes_producers) {
  for_each_wait([]<Wait kWait>() {
    const int producers = std::min(3, TypeParam::kProducers);
    typename TypeParam::template Made<CommandRecord, kWait> made(2, producers);
    for (int i = 0; i < producers; ++i) {
      while (made.sink(i).try_push(command(i, 0)) == Outcome::done) {
      }
    }
    std::vector<Outcome> outcomes(static_cast<std::size_t>(producers), Outcome::done);
    std::vector<std::jthread> threads;
    for (int i = 0; i < producers; ++i) {
      threads.emplace_back([&, i] {
        const std::vector<CommandRecord> three(3, command(i, 1));
        outcomes[static_cast<std::size_t>(i)] =
            i == 1 ? made.sink(i).push_batch(three, patience()).outcome : made.sink(i).push(three[0], patience());
      });
    }
    let_them_sleep();
    made.channel.close();
    threads.clear();
    for (const Outcome outcome : outcomes) EXPECT_EQ(name_of(outcome), "closed");
  });
}

// Closed in the middle of everything: what `done` was said of is popped, and nothing else.
TYPED_TEST(Closing, loses_nothing_that_was_done) {
  for_each_wait([]<Wait kWait>() {
    const int producers = std::min(3, TypeParam::kProducers), consumers = std::min(2, TypeParam::kConsumers);
    for (int round = 0; round < 60; ++round) {
      typename TypeParam::template Made<CommandRecord, kWait> made(round % 2 == 0 ? 4 : 64, producers);
      std::atomic<std::uint64_t> pushed{0}, popped{0};
      std::atomic<int> bad{0};
      std::vector<std::jthread> threads;
      for (int p = 0; p < producers; ++p) {
        threads.emplace_back([&, p] {
          for (std::uint32_t i = 0;; ++i) {
            std::uint64_t done = 0;
            Outcome outcome = Outcome::done;
            if (i % 3 == 0) {
              const std::vector<CommandRecord> batch(5, command(p, i));
              const Moved moved = made.sink(p).push_batch(batch, patience());
              done = moved.count;
              outcome = moved.outcome;
            } else {
              outcome = made.sink(p).push(command(p, i), patience());
              done = outcome == Outcome::done ? 1 : 0;
            }
            pushed += done;
            if (outcome == Outcome::closed) return;
            if (outcome != Outcome::done) {
              ++bad;
              return;
            }
          }
        });
      }
      for (int c = 0; c < consumers; ++c) {
        threads.emplace_back([&] {
          CommandRecord record;
          for (;;) {
            const Outcome outcome = made.source().pop(record, patience());
            if (outcome == Outcome::closed) return;
            if (outcome != Outcome::done || !is_whole(record)) {
              ++bad;
              return;
            }
            ++popped;
          }
        });
      }
      for (int i = 0; i < round * 20; ++i) System::pause();
      if (round % 3 == 0) std::this_thread::yield();
      made.channel.close();
      threads.clear();
      ASSERT_EQ(bad, 0) << "round " << round;
      ASSERT_EQ(pushed, popped) << "round " << round;
      CommandRecord record;
      ASSERT_EQ(made.source().try_pop(record), Outcome::closed);
    }
  });
}

TYPED_TEST(Closing, a_consumer_that_dies_holds_nobody_up) {
  for_each_wait([]<Wait kWait>() {
    typename TypeParam::template Made<CommandRecord, kWait> made(4, 1);
    std::jthread consumer([&] {
      try {
        const CloseOnExit closer(made.channel);
        CommandRecord record;
        for (int i = 0; i < 10; ++i) made.source().pop(record, patience());
        throw std::runtime_error("the consumer dies");
      } catch (const std::runtime_error&) {
      }
    });
    Outcome outcome = Outcome::done;
    for (std::uint32_t i = 0; i < 1000 && outcome == Outcome::done; ++i)
      outcome = made.sink(0).push(command(0, i), patience());
    EXPECT_EQ(name_of(outcome), "closed");
  });
}

// A fence that interrupts every core of the process is for the moment of closing, not for every pop after it.
struct CountingSystem : System {
  static inline int heavy_fences = 0;
  static void heavy_fence() noexcept {
    ++heavy_fences;
    System::heavy_fence();
  }
};

TEST(ClosedSpsc, costs_one_heavy_fence) {
  Spsc<CommandRecord, Wait::spin, CountingSystem> channel(4);
  CommandRecord record;
  ASSERT_EQ(channel.try_push(command(0, 1)), Outcome::done);
  channel.close();
  EXPECT_EQ(channel.try_push(command(0, 2)), Outcome::closed);
  EXPECT_EQ(channel.try_pop(record), Outcome::done);
  CountingSystem::heavy_fences = 0;
  for (int i = 0; i < 10; ++i) EXPECT_EQ(channel.try_pop(record), Outcome::closed);
  EXPECT_TRUE(channel.is_finished());
  EXPECT_EQ(CountingSystem::heavy_fences, 1);
}

}  // namespace
}  // namespace weir::test
