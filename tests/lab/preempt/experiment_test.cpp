// When requests are due, and what there is by name.
#include "lab/preempt/experiment.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "base/error.h"

namespace weir::preempt {
namespace {

TEST(DueTimes, are_the_same_for_a_seed_and_others_for_another) {
  ExperimentPlan plan;
  const auto due = due_times(plan);
  EXPECT_EQ(due, due_times(plan));
  EXPECT_EQ(due.size(), 1000u);
  EXPECT_TRUE(std::is_sorted(due.begin(), due.end()));
  EXPECT_GE(due.front(), 0);
  // More requests begin as fewer do.
  plan.requests = 1500;
  const auto more = due_times(plan);
  EXPECT_TRUE(std::equal(due.begin(), due.end(), more.begin()));
  plan.seed = 2;
  EXPECT_NE(due_times(plan), more);
  plan.requests = 0;
  EXPECT_TRUE(due_times(plan).empty());
}

TEST(DueTimes, are_exponential) {
  ExperimentPlan plan;
  plan.requests = 100'000;
  plan.interval_ns = 1'000'000;
  for (const std::uint64_t seed : {1u, 2u, 77u}) {
    plan.seed = seed;
    const auto due = due_times(plan);
    std::vector<double> gaps;
    double sum = 0, squares = 0, products = 0;
    for (std::size_t i = 1; i < due.size(); ++i) {
      const double gap = static_cast<double>(due[i] - due[i - 1]) / 1e6;
      if (!gaps.empty()) products += (gap - 1) * (gaps.back() - 1);
      gaps.push_back(gap);
      sum += gap;
      squares += gap * gap;
    }
    const double n = static_cast<double>(gaps.size()), mean = sum / n;
    // Five standard errors: that of the mean is 1/sqrt(n), that of the variance sqrt(8/n), that of neighbours'
    // 1/sqrt(n).
    EXPECT_NEAR(mean, 1, 5 / std::sqrt(n)) << seed;
    EXPECT_NEAR(squares / n - mean * mean, 1, 5 * std::sqrt(8 / n)) << seed;
    EXPECT_NEAR(products / n, 0, 5 / std::sqrt(n)) << seed;
    // Kolmogorov and Smirnov's distance; 1.95 sqrt(n) is exceeded once in a thousand.
    std::sort(gaps.begin(), gaps.end());
    double distance = 0;
    for (std::size_t i = 0; i < gaps.size(); ++i)
      distance = std::max(distance, std::abs(1 - std::exp(-gaps[i]) - static_cast<double>(i) / n));
    EXPECT_LT(distance, 1.95 / std::sqrt(n)) << seed;
  }
}

TEST(Mechanisms, have_names_of_their_own_and_are_found_by_them) {
  std::set<std::string_view> names;
  for (const Mechanism& each : mechanisms()) {
    EXPECT_TRUE(names.insert(each.name).second) << each.name;
    EXPECT_FALSE(each.summary.empty()) << each.name;
    EXPECT_EQ(&mechanism_named(each.name), &each);
    ASSERT_NE(each.offered, nullptr) << each.name;
    ASSERT_NE(each.observe, nullptr) << each.name;
  }
  for (const char* name : {"none", "queues", "priority", "launch_gate", "cooperative_flag", "partition", "time_slice"})
    EXPECT_TRUE(names.contains(name)) << name;
  try {
    mechanism_named("priorty");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.fault, Fault::input);
    EXPECT_EQ(error.hint, "Did you mean 'priority'?");
  }
}

TEST(Victims, are_found_by_name) {
  for (const VictimKind kind : {VictimKind::waves, VictimKind::persistent, VictimKind::memory})
    EXPECT_EQ(victim_kind_named(name_of(kind)), kind);
  EXPECT_EQ(victim_kind_named("wave"), std::nullopt);
}

}  // namespace
}  // namespace weir::preempt
