#include "submit/sched/conductor.h"

#include <gtest/gtest.h>

#include <cmath>
#include <type_traits>

namespace weir::scheduler {
namespace {

constexpr std::int64_t kSlice = 100, kAgeing = 1000;
constexpr Settings kSettings{.slice_ns = kSlice, .ageing_ns = kAgeing};
constexpr Settings kNoAgeing{.slice_ns = kSlice, .ageing_ns = 0};

// It is asked at every event: it can own nothing that would have to be allocated then.
static_assert(std::is_trivially_copyable_v<Conductor>);

TEST(Conductor, seats_are_given_and_given_back) {
  Conductor conductor(policy_named("priority"), kSettings);
  for (int seat = 0; seat < kMaxClients; ++seat) EXPECT_EQ(conductor.join({}, seat), seat);
  EXPECT_EQ(conductor.join({}, 100), -1);
  EXPECT_EQ(conductor.clients(), kMaxClients);
  conductor.leave(17, 101);
  conductor.leave(17, 102);
  conductor.leave(-1, 102);
  conductor.leave(kMaxClients, 102);
  EXPECT_EQ(conductor.clients(), kMaxClients - 1);
  EXPECT_EQ(conductor.join({.priority = 4}, 103), 17);
  EXPECT_EQ(conductor.client(17).terms.priority, 4);
  EXPECT_EQ(conductor.client(17).used_ns, 0);
}

TEST(Conductor, every_policy_serves_a_full_table) {
  for (const Policy& policy : policies()) {
    Conductor conductor(policy, kSettings);
    for (int seat = 0; seat < kMaxClients; ++seat) conductor.join({.priority = seat % 20 - 10}, 0);
    conductor.set_active(~std::uint64_t{0}, 10);
    EXPECT_NE(conductor.running(), 0U) << policy.name;
    std::uint64_t ran = conductor.running();
    for (int i = 0; i < 1000 && conductor.next_change_ns() != kNever; ++i) {
      conductor.advance(conductor.next_change_ns());
      ran |= conductor.running();
    }
    EXPECT_EQ(ran, ~std::uint64_t{0}) << policy.name;
  }
}

TEST(Conductor, who_runs_beside_the_first_does_not_age) {
  for (const bool is_beside : {false, true}) {
    Conductor conductor(policy_named("priority"), kSettings);
    const int urgent = conductor.join({.priority = 10}, 0), other = conductor.join({.priority = -10}, 0);
    conductor.set_active(0b11, 0);
    conductor.set_beside(is_beside ? std::uint64_t{1} << other : 0);
    bool was_first = false;
    for (std::int64_t now = 0; now < 5 * kAgeing; now += kSlice / 2) {
      conductor.advance(now);
      was_first |= (conductor.running() & std::uint64_t{1} << urgent) == 0;
    }
    EXPECT_EQ(was_first, !is_beside);
    // It ages from the moment when it has to wait.
    conductor.set_beside(0);
    conductor.advance(5 * kAgeing + kAgeing / 2);
    if (is_beside) {
      EXPECT_NE(conductor.running() & std::uint64_t{1} << urgent, 0U);
    }
    conductor.advance(7 * kAgeing);
    if (is_beside) {
      EXPECT_EQ(conductor.running() & std::uint64_t{1} << urgent, 0U);
    }
  }
}

TEST(Conductor, bits_of_empty_seats_are_ignored) {
  Conductor conductor(policy_named("fifo"), kSettings);
  conductor.join({}, 0);
  conductor.set_active(~std::uint64_t{0}, 1);
  EXPECT_EQ(conductor.active(), 1U);
  EXPECT_EQ(conductor.running(), 1U);
  conductor.leave(0, 2);
  EXPECT_EQ(conductor.active(), 0U);
  EXPECT_EQ(conductor.running(), 0U);
  EXPECT_EQ(conductor.next_change_ns(), kNever);
}

TEST(Conductor, terms_out_of_range_are_taken_as_the_nearest_in_it) {
  Conductor conductor(policy_named("weighted_fair"), kSettings);
  conductor.join({.priority = 1000, .weight = 1e9, .deadline_ns = kNever}, 0);
  conductor.join({.priority = -1000, .weight = -1, .deadline_ns = -5}, 0);
  conductor.join({.weight = std::nan("")}, 0);
  EXPECT_EQ(conductor.client(0).terms.priority, kHighestPriority);
  EXPECT_EQ(conductor.client(0).terms.weight, kMaxWeight);
  EXPECT_EQ(conductor.client(0).terms.deadline_ns, kLongestDeadlineNs);
  EXPECT_EQ(conductor.client(1).terms.priority, kLowestPriority);
  EXPECT_EQ(conductor.client(1).terms.weight, kMinWeight);
  EXPECT_EQ(conductor.client(1).terms.deadline_ns, 0);
  EXPECT_EQ(conductor.client(2).terms.weight, 1);
}

TEST(Conductor, masks_name_who_is_waited_for_active_or_not) {
  Conductor conductor(policy_named("priority"), kNoAgeing);
  conductor.join({.priority = 0}, 0);
  conductor.join({.priority = 5}, 0);
  conductor.join({.priority = 5}, 0);
  EXPECT_EQ(conductor.yields_to(0), 0b110U);
  EXPECT_EQ(conductor.yields_to(1), 0U);
  EXPECT_EQ(conductor.yields_to(2), 0U);
  conductor.leave(1, 1);
  EXPECT_EQ(conductor.yields_to(0), 0b100U);
  conductor.set_active(0b001, 2);
  EXPECT_EQ(conductor.running(), 0b001U);
  conductor.set_active(0b101, 3);
  EXPECT_EQ(conductor.running(), 0b100U);
}

TEST(Conductor, time_is_charged_to_those_that_run_in_equal_parts) {
  Conductor conductor(policy_named("priority"), kNoAgeing);
  for (const int priority : {0, 5, 5}) conductor.join({.priority = priority}, 0);
  conductor.set_active(0b001, 1000);
  conductor.set_active(0b111, 1300);
  conductor.set_active(0b011, 1400);
  conductor.set_active(0b000, 1450);
  conductor.advance(9000);
  EXPECT_EQ(conductor.client(0).used_ns, 300);
  EXPECT_EQ(conductor.client(1).used_ns, 100);
  EXPECT_EQ(conductor.client(2).used_ns, 50);
}

TEST(Conductor, time_that_runs_backwards_stands_still) {
  Conductor conductor(policy_named("time_slice"), kSettings);
  conductor.join({}, 1000);
  conductor.set_active(1, 500);
  EXPECT_EQ(conductor.client(0).arrived_ns, 1000);
  conductor.advance(1010);
  conductor.advance(3);
  EXPECT_EQ(conductor.client(0).used_ns, 10);
}

TEST(Conductor, arrivals_are_as_told_within_what_is_possible) {
  Conductor conductor(policy_named("fifo"), kNoAgeing);
  for (int i = 0; i < 3; ++i) conductor.join({}, 1000);
  // Seen idle at 1000; one says that it came before, one that it will come.
  const std::int64_t arrived_ns[] = {1050, 5, 9999};
  conductor.set_active(0b111, 1100, arrived_ns);
  EXPECT_EQ(conductor.client(0).arrived_ns, 1050);
  EXPECT_EQ(conductor.client(1).arrived_ns, 1000);
  EXPECT_EQ(conductor.client(2).arrived_ns, 1100);
}

TEST(Conductor, a_later_arrival_of_one_that_is_active_is_a_new_request) {
  Conductor conductor(policy_named("fifo"), kNoAgeing);
  conductor.join({}, 0);
  conductor.join({}, 0);
  std::int64_t arrived_ns[] = {10, 20};
  conductor.set_active(0b11, 30, arrived_ns);
  EXPECT_EQ(conductor.running(), 0b01U);
  arrived_ns[0] = 40;
  conductor.set_active(0b11, 50, arrived_ns);
  EXPECT_EQ(conductor.running(), 0b10U);
  EXPECT_EQ(conductor.client(0).arrived_ns, 40);
}

TEST(Conductor, a_new_client_does_not_inherit_the_turn_of_its_seat) {
  Conductor conductor(policy_named("time_slice"), kNoAgeing);
  for (int i = 0; i < 3; ++i) conductor.join({}, 0);
  conductor.set_active(0b111, 0);
  conductor.advance(conductor.next_change_ns());
  EXPECT_EQ(conductor.running(), 0b010U);
  conductor.leave(1, kSlice + 10);
  EXPECT_EQ(conductor.running(), 0b100U) << "the next one around the table";
  EXPECT_EQ(conductor.join({}, kSlice + 20), 1);
  conductor.set_active(0b111, kSlice + 20);
  EXPECT_EQ(conductor.running(), 0b100U);
  EXPECT_EQ(conductor.next_change_ns(), 2 * kSlice + 10);
}

TEST(Conductor, a_turn_ends_when_its_client_leaves_though_nobody_takes_it) {
  Conductor conductor(policy_named("time_slice"), kNoAgeing);
  conductor.join({}, 0);
  conductor.join({}, 0);
  conductor.set_active(0b01, 0);
  conductor.leave(0, 10);
  EXPECT_EQ(conductor.join({}, 20), 0);
  conductor.set_active(0b11, 30);
  EXPECT_EQ(conductor.running(), 0b10U);
}

TEST(Conductor, one_that_idled_does_not_lose_what_it_owes) {
  Conductor conductor(policy_named("weighted_fair"), kNoAgeing);
  conductor.join({.weight = 0.1}, 0);
  conductor.join({}, 0);
  conductor.set_active(0b11, 0);
  conductor.advance(kSlice);
  EXPECT_EQ(conductor.running(), 0b10U);
  conductor.set_active(0b10, kSlice + 10);
  conductor.set_active(0b11, kSlice + 20);
  // Its slice was worth ten of the other's, whatever it does in between.
  for (int i = 0; i < 9; ++i) {
    conductor.advance(conductor.next_change_ns());
    EXPECT_EQ(conductor.running(), 0b10U) << i;
  }
}

TEST(Conductor, one_that_idled_gets_no_credit_for_it) {
  Conductor conductor(policy_named("weighted_fair"), kNoAgeing);
  conductor.join({}, 0);
  conductor.join({}, 0);
  conductor.set_active(0b01, 0);
  conductor.advance(100 * kSlice);
  conductor.set_active(0b11, 100 * kSlice);
  double used = 0;
  for (int i = 0; i < 20; ++i) conductor.advance(conductor.next_change_ns());
  used = conductor.client(1).used_ns;
  EXPECT_NEAR(used, 10 * kSlice, kSlice) << "from then on it gets half, no more";
}

TEST(Ageing, who_waited_too_long_comes_first_for_one_slice) {
  Conductor conductor(policy_named("priority"), kSettings);
  conductor.join({.priority = 5}, 0);
  conductor.join({.priority = 0}, 0);
  conductor.set_active(0b11, 0);
  EXPECT_EQ(conductor.next_change_ns(), kAgeing);
  conductor.advance(kAgeing);
  EXPECT_EQ(conductor.running(), 0b10U);
  EXPECT_EQ(conductor.aged(), 1);
  EXPECT_EQ(conductor.next_change_ns(), kAgeing + kSlice);
  conductor.advance(kAgeing + kSlice - 1);
  EXPECT_EQ(conductor.running(), 0b10U) << "other events do not end it";
  conductor.advance(kAgeing + kSlice);
  EXPECT_EQ(conductor.running(), 0b01U);
  EXPECT_EQ(conductor.aged(), -1);
  EXPECT_EQ(conductor.next_change_ns(), 2 * kAgeing + kSlice);
}

TEST(Ageing, ends_with_the_request) {
  Conductor conductor(policy_named("priority"), kSettings);
  conductor.join({.priority = 5}, 0);
  conductor.join({.priority = 0}, 0);
  conductor.set_active(0b11, 0);
  conductor.advance(kAgeing);
  conductor.set_active(0b01, kAgeing + 10);
  conductor.set_active(0b11, kAgeing + 20);
  EXPECT_EQ(conductor.running(), 0b01U);
}

TEST(Ageing, the_longest_waiting_comes_first) {
  Conductor conductor(policy_named("priority"), kSettings);
  for (const int priority : {5, 0, 1}) conductor.join({.priority = priority}, 0);
  conductor.set_active(0b101, 0);
  conductor.set_active(0b111, 1);
  conductor.advance(kAgeing + 50);
  EXPECT_EQ(conductor.aged(), 2);
  conductor.advance(conductor.next_change_ns());
  EXPECT_EQ(conductor.aged(), 1);
  conductor.advance(conductor.next_change_ns());
  EXPECT_EQ(conductor.aged(), -1);
}

TEST(Ageing, moments_of_being_first_do_not_stop_it) {
  Conductor conductor(policy_named("priority"), kSettings);
  conductor.join({.priority = 5}, 0);
  conductor.join({.priority = 0}, 0);
  std::int64_t now_ns = 0;
  while (now_ns < kAgeing) {
    conductor.set_active(0b11, now_ns);
    now_ns += 49;
    conductor.set_active(0b10, now_ns);
    now_ns += 1;
  }
  conductor.set_active(0b11, now_ns);
  EXPECT_EQ(conductor.running(), 0b10U);
}

TEST(Ageing, times_of_being_first_add_up) {
  Conductor conductor(policy_named("priority"), kSettings);
  conductor.join({.priority = 5}, 0);
  conductor.join({.priority = 0}, 0);
  std::int64_t now_ns = 0;
  while (now_ns < 20 * kAgeing) {
    conductor.set_active(0b11, now_ns);
    now_ns += 400;
    conductor.set_active(0b10, now_ns);
    now_ns += 60;
    EXPECT_EQ(conductor.aged(), -1) << now_ns;
  }
}

TEST(Ageing, what_it_had_of_its_slice_is_not_given_again) {
  Conductor conductor(policy_named("priority"), kSettings);
  conductor.join({.priority = 5}, 0);
  conductor.join({.priority = 0}, 0);
  conductor.set_active(0b10, 0);
  conductor.set_active(0b11, 60);
  conductor.advance(conductor.next_change_ns());
  EXPECT_EQ(conductor.aged(), 1);
  EXPECT_EQ(conductor.next_change_ns(), kAgeing + kSlice - 60);
}

TEST(Ageing, can_be_switched_off) {
  Conductor conductor(policy_named("priority"), kNoAgeing);
  conductor.join({.priority = 5}, 0);
  conductor.join({.priority = 0}, 0);
  conductor.set_active(0b11, 0);
  EXPECT_EQ(conductor.next_change_ns(), kNever);
  conductor.advance(1000 * kAgeing);
  EXPECT_EQ(conductor.running(), 0b01U);
}

TEST(Ageing, its_slices_do_not_count_against_a_share) {
  Conductor conductor(policy_named("weighted_fair"), kSettings);
  conductor.join({.weight = 100}, 0);
  conductor.join({.weight = 0.01}, 0);
  conductor.set_active(0b11, 0);
  while (conductor.client(1).used_ns < 50 * kSlice) conductor.advance(conductor.next_change_ns());
  // It gets a slice each time it has waited for kAgeing; its weight gave it one, or none.
  EXPECT_LE(conductor.client(1).virtual_ns, kSlice / 0.01);
}

}  // namespace
}  // namespace weir::scheduler
