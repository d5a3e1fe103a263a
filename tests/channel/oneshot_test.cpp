// One reply: set once, awaited with a limit, whoever goes away first.
#include "channel/oneshot.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

#include "any_channel.h"
#include "base/error.h"

namespace weir::test {
namespace {

using Replies = Oneshots<std::uint64_t>;

TEST(Oneshot, brings_one_reply) {
  Replies replies(2);
  for (std::uint64_t i = 0; i < 100; ++i) {
    auto pair = replies.make();
    ASSERT_TRUE(pair);
    std::uint64_t value = 0;
    EXPECT_EQ(pair->receiver.wait(value, Limit::none()), Outcome::empty);
    EXPECT_TRUE(pair->sender.set(i));
    EXPECT_FALSE(pair->sender.set(i + 1));
    EXPECT_EQ(pair->receiver.wait(value), Outcome::done);
    EXPECT_EQ(value, i);
    EXPECT_EQ(pair->receiver.wait(value), Outcome::closed);
  }
}

TEST(Oneshot, a_sender_that_is_dropped_closes_it) {
  Replies replies(1);
  auto pair = replies.make();
  {
    const auto dropped = std::move(pair->sender);
  }
  std::uint64_t value = 7;
  EXPECT_EQ(pair->receiver.wait(value), Outcome::closed);
  EXPECT_EQ(value, 7U);
  EXPECT_TRUE(replies.make());  // the slot is free again
}

TEST(Oneshot, a_receiver_that_is_dropped_frees_the_slot_at_once) {
  Replies replies(1);
  Replies::Sender old;
  {
    auto pair = replies.make();
    EXPECT_FALSE(replies.make());
    old = std::move(pair->sender);
  }
  auto next = replies.make();
  ASSERT_TRUE(next);
  EXPECT_FALSE(old.set(1));  // too late, and not for `next`
  std::uint64_t value = 0;
  EXPECT_EQ(next->receiver.wait(value, Limit::none()), Outcome::empty);
  EXPECT_TRUE(next->sender.set(2));
  EXPECT_EQ(next->receiver.wait(value), Outcome::done);
  EXPECT_EQ(value, 2U);
}

// A ticket is only a number: even used again, it reaches nobody but the one it was made for.
TEST(Oneshot, an_old_ticket_opens_nothing) {
  Replies replies(1);
  std::vector<Ticket> old;
  std::uint64_t value = 0;
  for (std::uint64_t i = 0; i < 50; ++i) {
    Ticket ticket = 0;
    ASSERT_EQ(replies.open(ticket), Outcome::done);
    ASSERT_NE(ticket, 0U);
    for (const Ticket spent : old) {
      ASSERT_NE(spent, ticket);
      ASSERT_FALSE(replies.set(spent, 666));
      replies.drop(spent);
      replies.give_up(spent);
      ASSERT_EQ(replies.wait(spent, value, Limit::none()), Outcome::closed);
    }
    if (i % 3 == 0) {
      replies.give_up(ticket);
    } else {
      ASSERT_TRUE(replies.set(ticket, i));
      ASSERT_EQ(replies.wait(ticket, value, Limit::none()), Outcome::done);
      ASSERT_EQ(value, i);
    }
    old.push_back(ticket);
  }
}

TEST(Oneshot, rejects_no_slots_and_too_many) {
  EXPECT_THROW(Replies(0), Error);
  EXPECT_THROW(Replies(65537), Error);
}

TEST(Oneshot, waits_for_a_slot_within_the_limit) {
  Replies replies(1);
  auto first = replies.make();
  const Limit limit = Limit::within(2'000'000);
  EXPECT_FALSE(replies.make(limit));
  EXPECT_TRUE(limit.is_past());
  std::jthread gives_up([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    first->receiver.give_up();
  });
  EXPECT_TRUE(replies.make(patience()));
}

// Both sides act at about the same moment, in every combination; slots go round and none is lost.
template <Wait kWait>
void race() {
  using Raced = Oneshots<std::uint64_t, kWait>;
  Raced replies(4);
  std::atomic<int> bad{0};
  std::vector<std::jthread> threads;
  for (int t = 0; t < 2; ++t) {
    threads.emplace_back([&, t] {
      Spsc<Ticket, kWait> tickets(8);
      std::jthread sender([&] {
        Ticket ticket = 0;
        for (std::uint64_t i = 0; tickets.pop(ticket, patience()) == Outcome::done; ++i) {
          for (std::uint64_t k = 0; k < i % 50; ++k) System::pause();
          if (i % 5 == 4) {
            replies.drop(ticket);
          } else {
            replies.set(ticket, ticket * 3);
          }
        }
      });
      for (std::uint64_t i = 0; i < 3000; ++i) {
        auto pair = replies.make(patience());
        if (!pair) {
          ++bad;
          break;
        }
        const Ticket ticket = pair->sender.release();
        if (tickets.push(ticket, patience()) != Outcome::done) ++bad;
        if ((i + static_cast<std::uint64_t>(t)) % 3 == 0) continue;  // gives up at once
        std::uint64_t value = 0;
        const Outcome outcome = pair->receiver.wait(value, i % 3 == 1 ? Limit::within(500) : patience());
        if (outcome == Outcome::done ? value != ticket * 3 : outcome == Outcome::closed ? i % 5 != 4 : i % 3 != 1)
          ++bad;
      }
      tickets.close();
    });
  }
  threads.clear();
  EXPECT_EQ(bad, 0);
  std::vector<typename Raced::Pair> all;
  while (auto pair = replies.make()) all.push_back(std::move(*pair));
  EXPECT_EQ(all.size(), 4U);
}

TEST(Oneshot, both_sides_at_once) {
  for_each_wait([]<Wait kWait>() { race<kWait>(); });
}

}  // namespace
}  // namespace weir::test
