#include "submit/sched/bound.h"

#include <gtest/gtest.h>

namespace weir::testing {
namespace {

using namespace weir::scheduler;

bool may(const char* policy, const Terms& terms, const Terms& other) {
  return may_yield(policy_named(policy), {}, terms, other);
}

TEST(Bound, under_priority_only_the_lower_one_makes_way) {
  EXPECT_FALSE(may("priority", {.priority = 10}, {.priority = 0}));
  EXPECT_TRUE(may("priority", {.priority = 0}, {.priority = 10}));
  EXPECT_FALSE(may("priority", {.priority = 3}, {.priority = 3})) << "equals share the device";
}

TEST(Bound, where_turns_are_taken_everybody_makes_way) {
  for (const char* policy : {"fifo", "weighted_fair", "time_slice"}) {
    EXPECT_TRUE(may(policy, {.weight = 100}, {.weight = 0.01})) << policy;
    EXPECT_TRUE(may(policy, {.weight = 0.01}, {.weight = 100})) << policy;
  }
}

TEST(Bound, a_later_deadline_may_come_first_but_none_never_does) {
  const Terms close{.deadline_ns = 1'000'000}, far{.deadline_ns = 1'000'000'000}, none{};
  EXPECT_TRUE(may("earliest_deadline", close, far)) << "that one may have arrived long before";
  EXPECT_TRUE(may("earliest_deadline", far, close));
  EXPECT_FALSE(may("earliest_deadline", far, none));
  EXPECT_TRUE(may("earliest_deadline", none, far));
}

}  // namespace
}  // namespace weir::testing
