// Rounds of processes: every side once a round, in an order that changes, until enough, out of budget or stopped.
#include "run/rounds.h"

#include <gtest/gtest.h>

#include <map>
#include <set>
#include <thread>

namespace weir {
namespace {

std::atomic<bool> is_stopped{false};

TEST(Rounds, every_side_runs_once_in_each_round_in_changing_order) {
  std::vector<std::vector<std::size_t>> order(20);
  const auto run = [&](std::size_t side, std::size_t round) {
    order[round].push_back(side);
    return true;
  };
  const RoundsOutcome outcome = run_rounds({.sides = 4, .max_rounds = 20}, {.run = run}, is_stopped);
  EXPECT_EQ(outcome.end, RoundsEnd::rounds);
  EXPECT_EQ(outcome.rounds, 20U);
  std::set<std::vector<std::size_t>> orders;
  std::map<std::size_t, int> first;
  for (const auto& round : order) {
    EXPECT_EQ(std::set(round.begin(), round.end()), (std::set<std::size_t>{0, 1, 2, 3}));
    orders.insert(round);
    ++first[round[0]];
  }
  EXPECT_GT(orders.size(), 5U);
  EXPECT_EQ(first.size(), 4U);  // every side has been first
}

TEST(Rounds, the_order_follows_from_seed_and_round) {
  EXPECT_EQ(order_of_round(16, 7, 3), order_of_round(16, 7, 3));
  EXPECT_NE(order_of_round(16, 7, 3), order_of_round(16, 8, 3));
  EXPECT_NE(order_of_round(16, 7, 3), order_of_round(16, 7, 4));
}

TEST(Rounds, it_stops_when_there_is_enough_but_not_before_the_fewest) {
  std::size_t asked = 0;
  const RoundsControl control{.run = [](std::size_t, std::size_t) { return true; },
                              .is_enough =
                                  [&](std::size_t rounds) {
                                    ++asked;
                                    return rounds >= 2;
                                  }};
  const RoundsOutcome outcome = run_rounds({.sides = 2, .min_rounds = 5, .max_rounds = 9}, control, is_stopped);
  EXPECT_EQ(outcome.end, RoundsEnd::enough);
  EXPECT_EQ(outcome.rounds, 5U);
  EXPECT_EQ(asked, 1U);
}

TEST(Rounds, no_round_begins_that_would_exceed_the_budget) {
  const auto run = [](std::size_t, std::size_t) {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    return true;
  };
  const RoundsOutcome outcome = run_rounds({.max_rounds = 1000, .budget_ns = 1}, {.run = run}, is_stopped);
  EXPECT_EQ(outcome.end, RoundsEnd::budget);
  EXPECT_EQ(outcome.rounds, 1U);  // the first round always runs
}

TEST(Rounds, a_side_can_leave) {
  std::map<std::size_t, int> count;
  const RoundsControl control{.run =
                                  [&](std::size_t side, std::size_t) {
                                    ++count[side];
                                    return true;
                                  },
                              .wants = [](std::size_t side, std::size_t round) { return side == 0 || round < 2; }};
  EXPECT_EQ(run_rounds({.sides = 2, .max_rounds = 6}, control, is_stopped).rounds, 6U);
  EXPECT_EQ(count[0], 6);
  EXPECT_EQ(count[1], 2);
}

TEST(Rounds, an_interrupted_round_does_not_count) {
  int left = 5;
  const RoundsOutcome outcome = run_rounds({.sides = 2, .max_rounds = 9},
                                           {.run = [&](std::size_t, std::size_t) { return --left > 0; }}, is_stopped);
  EXPECT_EQ(outcome.end, RoundsEnd::interrupted);
  EXPECT_EQ(outcome.rounds, 2U);
  const std::atomic<bool> stop{true};
  EXPECT_EQ(run_rounds({}, {.run = [](std::size_t, std::size_t) { return true; }}, stop).end, RoundsEnd::interrupted);
}

}  // namespace
}  // namespace weir
