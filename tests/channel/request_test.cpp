// Requests: one limit for everything, late replies fall, and a server that dies is heard of.
#include "channel/request.h"

#include <gtest/gtest.h>

#include <atomic>
#include <stdexcept>
#include <thread>
#include <vector>

#include "any_channel.h"

namespace weir::test {
namespace {

using Channel = Mpsc<Request<>>;
using Calls = Requests<Channel>;

TEST(Request, brings_the_result_back) {
  Channel channel(8);
  Calls calls(channel, 4);
  std::jthread thread([&] {
    const Calls::Server server(calls);
    Calls::Taken taken;
    while (calls.take(taken, patience()) == Outcome::done) {
      EXPECT_TRUE(is_whole(taken.record()));
      EXPECT_TRUE(taken.reply(taken.record().id * 10U));
    }
  });
  std::uint64_t result = 0;
  for (std::uint32_t i = 0; i < 1000; ++i) {
    ASSERT_EQ(name_of(calls.call(command(3, i), result, patience())), "done");
    ASSERT_EQ(result, i * 10U);
  }
  calls.close();
  EXPECT_EQ(name_of(calls.call(command(3, 0), result, patience())), "closed");
}

// Nobody serves: the queue is full, and the limit covers the waiting for room.
TEST(Request, a_full_queue_is_late_not_for_ever) {
  Channel channel(2);
  Calls calls(channel, 8);
  std::uint64_t result = 0;
  Calls::Pending first, second, third;
  ASSERT_EQ(calls.send(command(0, 1), first, Limit::none()), Outcome::done);
  ASSERT_EQ(calls.send(command(0, 2), second, Limit::none()), Outcome::done);
  EXPECT_EQ(calls.send(command(0, 3), third, Limit::none()), Outcome::full);
  const Limit limit = Limit::within(2'000'000);
  EXPECT_EQ(name_of(calls.call(command(0, 3), result, limit)), "late");
  EXPECT_TRUE(limit.is_past());
  // Room came too late for it: it was never sent.
  Calls::Taken taken;
  for (std::uint32_t i = 1; i <= 2; ++i) {
    ASSERT_EQ(calls.take(taken, Limit::none()), Outcome::done);
    EXPECT_EQ(taken.record().id, i);
  }
  EXPECT_EQ(calls.take(taken, Limit::none()), Outcome::empty);
}

TEST(Request, too_many_in_flight_are_late_too) {
  Channel channel(16);
  Calls calls(channel, 2);
  Calls::Pending first, second;
  std::uint64_t result = 0;
  ASSERT_EQ(calls.send(command(0, 1), first, Limit::none()), Outcome::done);
  ASSERT_EQ(calls.send(command(0, 2), second, Limit::none()), Outcome::done);
  EXPECT_EQ(name_of(calls.call(command(0, 3), result, Limit::within(1'000'000))), "late");
  first.give_up();  // nobody need answer for its slot to serve again
  Calls::Pending third;
  EXPECT_EQ(calls.send(command(0, 3), third, Limit::none()), Outcome::done);
}

TEST(Request, a_late_reply_falls_and_reaches_nobody_else) {
  Channel channel(8);
  Calls calls(channel, 1);  // one slot, so that the next request has the same one
  std::uint64_t result = 0;
  Calls::Taken late, next;
  EXPECT_EQ(name_of(calls.call(command(0, 1), result, Limit::within(1'000'000))), "late");
  ASSERT_EQ(calls.take(late, Limit::none()), Outcome::done);
  Calls::Pending pending;
  ASSERT_EQ(calls.send(command(0, 2), pending, Limit::none()), Outcome::done);
  EXPECT_FALSE(late.reply(111));
  EXPECT_EQ(pending.wait(result, Limit::none()), Outcome::empty);
  ASSERT_EQ(calls.take(next, Limit::none()), Outcome::done);
  EXPECT_TRUE(next.reply(222));
  EXPECT_EQ(pending.wait(result, Limit::none()), Outcome::done);
  EXPECT_EQ(result, 222U);
}

TEST(Request, a_command_that_is_let_go_is_closed) {
  Channel channel(8);
  Calls calls(channel);
  Calls::Pending pending;
  ASSERT_EQ(calls.send(command(0, 1), pending, Limit::none()), Outcome::done);
  {
    Calls::Taken taken;
    ASSERT_EQ(calls.take(taken, Limit::none()), Outcome::done);
  }
  std::uint64_t result = 0;
  EXPECT_EQ(name_of(pending.wait(result, patience())), "closed");
}

template <class Carried>
void dies() {
  Carried channel(4);
  using Dying = Requests<Carried>;
  Dying calls(channel, 16);
  std::atomic<int> closed{0}, done{0}, other{0};
  std::vector<std::jthread> clients;
  std::jthread server([&] {
    try {
      const typename Dying::Server serving(calls);
      typename Dying::Taken taken;
      for (int i = 0; i < 20; ++i) {
        if (calls.take(taken, patience()) != Outcome::done) ++other;
        taken.reply(1);
      }
      if (calls.take(taken, patience()) != Outcome::done) ++other;
      throw std::runtime_error("dies with a command in its hands");
    } catch (const std::runtime_error&) {
    }
  });
  const int count = std::is_same_v<Carried, Spsc<Request<>>> ? 1 : 4;
  for (int c = 0; c < count; ++c) {
    clients.emplace_back([&, c] {
      std::uint64_t result = 0;
      for (std::uint32_t i = 0;; ++i) {
        const Outcome outcome = calls.call(command(c, i), result, patience());
        if (outcome == Outcome::done) {
          ++done;
          continue;
        }
        ++(outcome == Outcome::closed ? closed : other);
        return;
      }
    });
  }
  clients.clear();
  EXPECT_EQ(done, 20);
  EXPECT_EQ(closed, count);
  EXPECT_EQ(other, 0);
}

TEST(Request, a_server_that_dies_is_heard_of_by_all) {
  for (int i = 0; i < 20; ++i) {
    dies<Mpsc<Request<>>>();
    dies<Mpmc<Request<>>>();
    dies<Spsc<Request<>>>();
    dies<MutexDeque<Request<>>>();
    dies<Priority<Request<>>>();
  }
}

// Clients that give up at random, a server that dawdles at random: whatever is delivered is the right one's.
template <Wait kWait>
void impatient() {
  using Carried = Mpsc<Request<>, kWait>;
  using Impatient = Requests<Carried, std::uint64_t, kWait>;
  Carried channel(8);
  Impatient calls(channel, 4);
  std::atomic<int> wrong{0}, done{0}, late{0}, refused{0};
  std::jthread server([&] {
    const typename Impatient::Server serving(calls);
    typename Impatient::Taken taken;
    for (std::uint64_t n = 0; calls.take(taken, patience()) == Outcome::done; ++n) {
      if (n % 16 == 0) std::this_thread::sleep_for(std::chrono::microseconds(n % 200));
      const auto& record = taken.record();
      if (!taken.reply(std::uint64_t{record.stream} << 32 | record.id)) ++refused;
    }
  });
  {
    std::vector<std::jthread> clients;
    for (int c = 0; c < 3; ++c) {
      clients.emplace_back([&, c] {
        for (std::uint32_t i = 0; i < 1500; ++i) {
          std::uint64_t result = 0;
          const Outcome outcome =
              calls.call(command(c, i), result, i % 2 == 0 ? Limit::within(i % 64 * 500) : patience());
          if (outcome == Outcome::done) {
            ++done;
            if (result != (static_cast<std::uint64_t>(c) << 32 | i)) ++wrong;
          } else if (outcome == Outcome::late && i % 2 == 0) {
            ++late;
          } else {
            ++wrong;
          }
        }
      });
    }
  }
  calls.close();
  server.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(done + late, 4500);
  EXPECT_GE(done, 2250);
  EXPECT_LE(refused, late);
}

TEST(Request, impatient_clients_get_their_own_results_or_none) {
  for_each_wait([]<Wait kWait>() { impatient<kWait>(); });
}

}  // namespace
}  // namespace weir::test
