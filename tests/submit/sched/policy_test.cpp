// What each policy decides, one situation at a time.
#include "submit/sched/policy.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <set>

#include "base/error.h"
#include "support/message_of.h"

namespace weir::scheduler {
namespace {

constexpr std::int64_t kMs = 1'000'000;

Client active(std::int64_t arrived_ns, Terms terms = {}, double virtual_ns = 0) {
  return {
      .terms = terms, .is_active = true, .arrived_ns = arrived_ns, .first_ns = arrived_ns, .virtual_ns = virtual_ns};
}

Client idle(Terms terms = {}, double virtual_ns = 0) { return {.terms = terms, .virtual_ns = virtual_ns}; }

Ranking ranking_of(std::string_view policy, std::span<const Client> clients, std::int64_t now_ns, Turn turn = {}) {
  return policy_named(policy).rank({.clients = clients, .now_ns = now_ns, .turn = turn});
}

std::vector<int> ranks_of(const Ranking& ranking, std::size_t count) {
  return {ranking.ranks.begin(), ranking.ranks.begin() + static_cast<std::ptrdiff_t>(count)};
}

TEST(Policies, are_found_by_their_names) {
  std::set<std::string_view> names;
  for (const Policy& policy : policies()) {
    EXPECT_EQ(&policy_named(policy.name), &policy);
    EXPECT_FALSE(policy.summary.empty());
    EXPECT_TRUE(names.insert(policy.name).second) << policy.name;
  }
  EXPECT_EQ(names,
            (std::set<std::string_view>{"fifo", "priority", "weighted_fair", "earliest_deadline", "time_slice"}));
  EXPECT_EQ(message_of([] { policy_named("priorty"); }),
            "there is no scheduling policy 'priorty' | Did you mean 'priority'?");
}

TEST(Policies, terms_out_of_range_are_rejected_with_their_name) {
  check(Terms{});
  check(Terms{.priority = kHighestPriority, .weight = kMaxWeight, .deadline_ns = kLongestDeadlineNs});
  check(Terms{.priority = kLowestPriority, .weight = kMinWeight, .deadline_ns = 0});
  EXPECT_NE(message_of([] { check(Terms{.priority = 11}); }).find("priority 11: priorities go from -10 to 10"),
            std::string::npos);
  EXPECT_NE(message_of([] { check(Terms{.priority = -11}); }).find("priority -11"), std::string::npos);
  EXPECT_NE(message_of([] { check(Terms{.weight = 0}); }).find("weight 0: weights go from 0.01 to 100"),
            std::string::npos);
  EXPECT_NE(message_of([] { check(Terms{.weight = std::nan("")}); }).find("weight nan"), std::string::npos);
  EXPECT_NE(message_of([] { check(Terms{.weight = std::numeric_limits<double>::infinity()}); }).find("weight inf"),
            std::string::npos);
  EXPECT_NE(message_of([] { check(Terms{.deadline_ns = -1}); }).find("deadline -1 ns"), std::string::npos);
  EXPECT_NE(message_of([] { check(Terms{.deadline_ns = kNever}); }).find("deadline"), std::string::npos);
}

TEST(Policies, settings_out_of_range_are_rejected_with_their_name) {
  check(Settings{});
  check(Settings{.slice_ns = kShortestSliceNs, .ageing_ns = 0});
  EXPECT_NE(message_of([] { check(Settings{.slice_ns = 0}); }).find("slice 0 ns: slices go from 10.0 us to 10.0 s"),
            std::string::npos)
      << message_of([] { check(Settings{.slice_ns = 0}); });
  EXPECT_NE(message_of([] { check(Settings{.ageing_ns = -1}); }).find("ageing -1 ns"), std::string::npos);
  EXPECT_NE(message_of([] { check(Settings{.ageing_ns = kNever}); }).find("ageing"), std::string::npos);
}

TEST(Fifo, requests_go_in_the_order_of_their_arrival) {
  const std::array clients = {active(30), active(10), idle(), active(20), idle()};
  EXPECT_EQ(ranks_of(ranking_of("fifo", clients, 40), 5), (std::vector{2, 0, 3, 1, 3}));
}

TEST(Priority, the_highest_goes_first_and_equals_share) {
  const std::array clients = {active(0, {.priority = 0}), active(0, {.priority = 10}), active(0, {.priority = 10}),
                              active(0, {.priority = -10})};
  const Ranking ranking = ranking_of("priority", clients, 5);
  EXPECT_EQ(ranking.ranks[1], ranking.ranks[2]);
  EXPECT_LT(ranking.ranks[1], ranking.ranks[0]);
  EXPECT_LT(ranking.ranks[0], ranking.ranks[3]);
  EXPECT_EQ(ranking.asks_again_ns, kNever);
}

TEST(Priority, does_not_depend_on_who_is_active) {
  std::array clients = {active(0, {.priority = 3}), active(0, {.priority = 7}), idle({.priority = 5})};
  const auto before = ranking_of("priority", clients, 5).ranks;
  for (Client& client : clients) client.is_active = !client.is_active;
  EXPECT_EQ(ranking_of("priority", clients, 9).ranks, before);
}

TEST(EarliestDeadline, counts_from_arrival_and_those_without_one_come_last) {
  const std::array clients = {active(0, {.deadline_ns = 100}), active(50, {.deadline_ns = 20}), active(0), active(60)};
  EXPECT_EQ(ranks_of(ranking_of("earliest_deadline", clients, 60), 4), (std::vector{1, 0, 2, 2}));
}

TEST(EarliestDeadline, who_is_idle_is_placed_as_if_it_arrived_now) {
  const std::array clients = {active(0, {.deadline_ns = 100}), idle({.deadline_ns = 30}), idle({.deadline_ns = 50})};
  EXPECT_EQ(ranks_of(ranking_of("earliest_deadline", clients, 60), 3), (std::vector{1, 0, 2}));
}

TEST(WeightedFair, the_least_virtual_time_has_the_turn_for_a_slice) {
  const std::array clients = {active(0, {}, 300), active(0, {}, 100), active(0, {}, 200)};
  const Ranking ranking = ranking_of("weighted_fair", clients, 1000);
  EXPECT_EQ(ranks_of(ranking, 3), (std::vector{2, 0, 1}));
  EXPECT_EQ(ranking.turn.seat, 1);
  EXPECT_EQ(ranking.turn.until_ns, 1000 + Settings{}.slice_ns);
  EXPECT_EQ(ranking.asks_again_ns, ranking.turn.until_ns);
}

TEST(WeightedFair, a_turn_is_kept_to_its_end_and_renewed_where_it_is_due) {
  const std::array clients = {active(0, {}, 300), active(0, {}, 100)};
  const Ranking kept = ranking_of("weighted_fair", clients, 1000, {0, 1001});
  EXPECT_EQ(ranks_of(kept, 2), (std::vector{0, 1}));
  EXPECT_EQ(kept.asks_again_ns, 1001);
  const Ranking renewed = ranking_of("weighted_fair", clients, 1001, {1, 1001});
  EXPECT_EQ(renewed.turn.seat, 1);
  EXPECT_EQ(renewed.turn.until_ns, 1001 + Settings{}.slice_ns);
}

TEST(WeightedFair, a_turn_ends_with_its_request) {
  const std::array clients = {idle({}, 50), active(0, {}, 100)};
  const Ranking ranking = ranking_of("weighted_fair", clients, 1000, {0, 5000});
  EXPECT_EQ(ranking.turn.seat, 1);
  EXPECT_EQ(ranks_of(ranking, 2), (std::vector{1, 0}));
}

TEST(WeightedFair, equals_go_to_who_had_no_turn_then_to_who_waits_longest) {
  const std::array clients = {active(0, {}, 100), active(20, {}, 100), active(10, {}, 100)};
  const Ranking ranking = ranking_of("weighted_fair", clients, 1000, {0, 900});
  EXPECT_EQ(ranks_of(ranking, 3), (std::vector{2, 1, 0}));
}

TEST(WeightedFair, one_that_is_alone_past_its_turn_lets_a_newcomer_pass_at_once) {
  const std::array clients = {active(0, {}, 5000), idle({}, 100), idle({}, 9000)};
  const Ranking ranking = ranking_of("weighted_fair", clients, 1000, {0, 900});
  EXPECT_EQ(ranking.asks_again_ns, kNever);
  EXPECT_EQ(ranks_of(ranking, 3), (std::vector{1, 0, 2})) << "the third has used more than it";
}

TEST(WeightedFair, who_is_idle_does_not_pass_those_that_wait) {
  const std::array clients = {active(0, {}, 900), active(0, {}, 500), idle({}, 100)};
  EXPECT_EQ(ranks_of(ranking_of("weighted_fair", clients, 1000, {0, 2000}), 3), (std::vector{0, 1, 2}));
}

TEST(TimeSlice, turns_go_around_and_weights_make_them_longer) {
  const std::array clients = {active(0), active(0), idle(), active(0, {.weight = 2.5})};
  Turn turn;
  std::vector<int> order;
  for (std::int64_t now_ns = 0; order.size() < 6; now_ns = turn.until_ns) {
    const Ranking ranking = ranking_of("time_slice", clients, now_ns, turn);
    EXPECT_EQ(ranking.ranks[static_cast<std::size_t>(ranking.turn.seat)], 0);
    EXPECT_EQ(ranking.turn.until_ns - now_ns, ranking.turn.seat == 3 ? 5 * kMs : 2 * kMs);
    order.push_back(ranking.turn.seat);
    turn = ranking.turn;
  }
  EXPECT_EQ(order, (std::vector{0, 1, 3, 0, 1, 3}));
}

TEST(TimeSlice, ranks_go_around_the_table_so_that_the_next_one_need_not_be_told) {
  const std::array clients = {active(0), idle(), active(0), active(0)};
  const Ranking ranking = ranking_of("time_slice", clients, 10, {2, 50});
  EXPECT_LT(ranking.ranks[2], ranking.ranks[3]);
  EXPECT_LT(ranking.ranks[3], ranking.ranks[0]);
  EXPECT_LT(ranking.ranks[0], ranking.ranks[1]);
}

TEST(TimeSlice, one_that_is_alone_past_its_turn_lets_a_newcomer_pass_at_once) {
  const std::array clients = {idle(), active(0), idle()};
  const Ranking ranking = ranking_of("time_slice", clients, 1000, {1, 900});
  EXPECT_EQ(ranking.turn.seat, 1);
  EXPECT_EQ(ranking.asks_again_ns, kNever);
  EXPECT_LT(ranking.ranks[0], ranking.ranks[1]);
  EXPECT_LT(ranking.ranks[2], ranking.ranks[1]);
}

}  // namespace
}  // namespace weir::scheduler
