#include "lab/preempt/curve.h"

#include <gtest/gtest.h>

#include <numeric>

#include "lab/preempt/synthetic.h"
#include "measure/statistics.h"

namespace weir::preempt {
namespace {

using namespace testing;

std::vector<double> counting(std::size_t count) {
  std::vector<double> values(count);
  std::iota(values.begin(), values.end(), 1.0);
  return values;
}

TEST(PreemptQuantiles, are_those_of_the_statistics) {
  const std::vector<double> values = counting(1000);
  const Quantiles found = quantiles_of(values, 1);
  EXPECT_EQ(found.count, 1000U);
  EXPECT_DOUBLE_EQ(*found.p50_ns, quantile(values, 0.5));
  EXPECT_DOUBLE_EQ(*found.p90_ns, quantile(values, 0.9));
  EXPECT_DOUBLE_EQ(*found.p99_ns, quantile(values, 0.99));
  EXPECT_DOUBLE_EQ(*found.p999_ns, quantile(values, 0.999));
  EXPECT_DOUBLE_EQ(*found.max_ns, 1000);
  EXPECT_DOUBLE_EQ(*found.mean_ns, 500.5);
}

TEST(PreemptQuantiles, are_not_given_where_too_few_requests_carry_them) {
  EXPECT_FALSE(quantiles_of(counting(999), 1).p999_ns);
  EXPECT_TRUE(quantiles_of(counting(999), 1).p99_ns);
  EXPECT_FALSE(quantiles_of(counting(99), 1).p99_ns);
  EXPECT_TRUE(quantiles_of(counting(100), 1).p99_ns);
  EXPECT_FALSE(quantiles_of(counting(9), 1).p90_ns);
  EXPECT_TRUE(quantiles_of(counting(1), 1).p50_ns);
  EXPECT_FALSE(quantiles_of({}, 1).p50_ns);
  EXPECT_FALSE(quantiles_of({}, 1).max_ns);
}

TEST(PreemptQuantiles, intervals_hold_the_value_and_are_wider_where_waits_follow_each_other) {
  SplitMix random(3);
  std::vector<double> independent, together;
  double level = 0;
  for (int i = 0; i < 1000; ++i) {
    independent.push_back(100 + 100 * random.fraction());
    if (i % 50 == 0) level = 100 * random.fraction();  // behind one kernel all wait alike
    together.push_back(100 + level + random.fraction());
  }
  const Quantiles one = quantiles_of(independent, 1), other = quantiles_of(together, 1);
  ASSERT_TRUE(one.p50_interval_ns && other.p50_interval_ns && one.p99_interval_ns);
  EXPECT_LE(one.p50_interval_ns->low, *one.p50_ns);
  EXPECT_GE(one.p50_interval_ns->high, *one.p50_ns);
  EXPECT_LE(one.p99_interval_ns->low, *one.p99_ns);
  EXPECT_GE(one.p99_interval_ns->high, *one.p99_ns);
  EXPECT_GT(other.p50_interval_ns->high - other.p50_interval_ns->low,
            2 * (one.p50_interval_ns->high - one.p50_interval_ns->low));
  EXPECT_FALSE(quantiles_of(counting(150), 1).p99_interval_ns);  // p99 it has
}

TEST(PreemptPoint, is_timed_from_when_the_request_was_due) {
  Observation seen;
  seen.requests = {{1000, 1500, 4000, 9000}, {2000, 2600, kNoTime, 3000}, {3000, 3100, 3200, kNoTime}};
  const Point point = point_of({}, seen, ExperimentPlan{});
  EXPECT_EQ(point.to_start.count, 2U);
  EXPECT_DOUBLE_EQ(*point.to_start.max_ns, 3000);
  EXPECT_EQ(point.to_end.count, 2U);
  EXPECT_DOUBLE_EQ(*point.to_end.max_ns, 8000);
  EXPECT_DOUBLE_EQ(*point.late.max_ns, 600);
}

TEST(PreemptPoint, knows_a_queue_that_only_gets_longer) {
  const auto overloaded = [](int requests, const std::function<double(int, SplitMix&)>& latency) {
    return point_of({}, observed(requests, latency), ExperimentPlan{}).is_overloaded;
  };
  // One every 3 ms.
  EXPECT_TRUE(overloaded(200, [](int i, SplitMix&) { return 1e6 * i; }));
  EXPECT_TRUE(overloaded(200, [](int i, SplitMix& random) { return 1e6 * i + 2e7 * random.fraction(); }));
  // Fills at first and stays then, waits at random, has too few to tell, or gets slower without a queue.
  EXPECT_FALSE(overloaded(200, [](int i, SplitMix&) { return 1e6 * std::min(i, 30); }));
  EXPECT_FALSE(overloaded(200, [](int, SplitMix& random) { return 1e6 * random.fraction(); }));
  EXPECT_FALSE(overloaded(30, [](int i, SplitMix&) { return 1e6 * i; }));
  EXPECT_FALSE(overloaded(200, [](int i, SplitMix&) { return 1e4 + 1e3 * i; }));
}

TEST(PreemptAlone, that_holds_still_is_not_flagged) {
  const Alone alone = quiet_alone();
  ASSERT_TRUE(alone.drift);
  EXPECT_LT(*alone.drift, 0.05);
  EXPECT_FALSE(alone.has_drifted);
  EXPECT_EQ(alone.to_end.count, 1200U);
}

TEST(PreemptAlone, that_drifts_is_flagged) {
  const auto around = [](double middle) {
    return [middle](int, SplitMix& random) { return middle * (0.95 + 0.1 * random.fraction()); };
  };
  const Alone alone = alone_of(
      {observed(200, around(10'000), 1), observed(200, around(10'300), 2), observed(200, around(14'000), 3)}, 1);
  EXPECT_NEAR(*alone.drift, 0.36, 0.02);  // with the 1 us to its end: 15.0 over 11.0
  EXPECT_TRUE(alone.has_drifted);
  const Findings findings = conclude(plan_of({}), alone, {}, {});
  ASSERT_FALSE(findings.warnings.empty());
  EXPECT_NE(findings.warnings[0].find("numbers against alone are doubtful"), std::string::npos);
}

TEST(PreemptAlone, that_differs_within_20_percent_or_within_noise_is_not_flagged) {
  const auto exactly = [](double ns) { return [ns](int, SplitMix&) { return ns; }; };
  EXPECT_FALSE(alone_of({observed(200, exactly(9'000)), observed(200, exactly(10'900))}, 1).has_drifted);
  // Two modes: medians of few requests jump from one to the other.
  const auto torn = [](int, SplitMix& random) { return random.fraction() < 0.5 ? 10'000.0 : 20'000.0; };
  const Alone noisy = alone_of({observed(41, torn, 4), observed(41, torn, 9), observed(41, torn, 12)}, 1);
  EXPECT_FALSE(noisy.has_drifted);
}

TEST(PreemptAlone, of_one_repeat_says_nothing_of_drift) {
  const auto latency = [](int, SplitMix&) { return 5000.0; };
  EXPECT_FALSE(alone_of({observed(20, latency)}, 1).drift);
  EXPECT_FALSE(alone_of({}, 1).to_end.p50_ns);
}

TEST(PreemptConclude, compares_with_alone_and_with_the_victim_undisturbed) {
  const Findings findings = usual_findings();
  const Point& flagged = findings.curves[2].points[3];
  ASSERT_TRUE(flagged.against_alone && flagged.victim_loss);
  EXPECT_NEAR(*flagged.victim_loss, 0.15, 1e-9);
  EXPECT_NEAR(*flagged.against_alone, *flagged.to_end.p99_ns / *findings.alone.to_end.p99_ns, 1e-9);
  EXPECT_TRUE(findings.failures.empty());
}

TEST(PreemptConclude, gives_nothing_where_there_is_nothing_to_compare_with) {
  std::vector<Curve> curves = {curve_of(kNone, 8, 10'000)};
  curves[0].points[0].observation.victim_blocks = 0;
  const Findings findings = conclude(plan_of(lengths()), alone_of({}, 1), undisturbed(lengths()), curves);
  EXPECT_FALSE(findings.curves[0].points[0].victim_loss);
  EXPECT_TRUE(findings.curves[0].points[1].victim_loss);
  EXPECT_FALSE(findings.curves[0].points[1].against_alone);
}

TEST(PreemptConclude, says_each_doubt_once_and_where_it_is_worst) {
  std::vector<Curve> curves = {curve_of(kNone, 8, 10'000)};
  for (Point& point : curves[0].points) point.observation.block_ns *= 2;
  curves[0].points[2].observation.block_ns *= 2;
  const Findings findings = conclude(plan_of(lengths()), quiet_alone(), undisturbed(lengths()), curves);
  ASSERT_EQ(findings.warnings.size(), 1U);
  EXPECT_NE(findings.warnings[0].find("took 4.00 ms instead of 1.00 ms (and 3 more like this)"), std::string::npos)
      << findings.warnings[0];
}

TEST(PreemptConclude, a_victim_whose_own_speed_differs_makes_losses_doubtful) {
  std::vector<Undisturbed> twice = undisturbed(lengths()), later = undisturbed(lengths());
  later[1].observation.victim_blocks = 1500;
  twice.insert(twice.end(), later.begin(), later.end());
  const Findings findings = conclude(plan_of(lengths()), quiet_alone(), twice, {curve_of(kNone, 8, 10'000)});
  ASSERT_EQ(findings.warnings.size(), 1U);
  EXPECT_NE(findings.warnings[0].find("4 waves of 100 us blocks: its own throughput differed by 50 %"),
            std::string::npos)
      << findings.warnings[0];
  EXPECT_NEAR(*findings.curves[0].points[1].victim_loss, 1 - 900.0 / 1250, 1e-9);
}

TEST(PreemptConclude, blocks_of_memory_count_by_what_they_read) {
  // One trial made blocks of 1000 words, another one of 500: twice as many of those are the same work.
  const Victim victim{VictimKind::memory, 4, 100'000};
  Curve curve;
  curve.mechanism = &kNone;
  curve.points = {waiting(victim, 8, 10'000, 400, 2000)};
  curve.points[0].observation.block_words = 500;
  std::vector<Undisturbed> full = undisturbed({victim});
  full[0].observation.block_words = 1000;
  const Findings findings = conclude(plan_of({victim}), quiet_alone(), full, {curve});
  EXPECT_NEAR(findings.curves[0].points[0].victim_loss.value_or(9), 0, 1e-9);
}

TEST(PreemptConclude, says_lost_work_first) {
  std::vector<Curve> curves = {curve_of(kNone, 8, 10'000), curve_of(kFlag, 0, 12'000)};
  curves[0].points[0].failure = "the device is gone";
  curves[1].points[2].observation.lost_blocks = 3;
  const Findings findings = conclude(plan_of(lengths()), quiet_alone(), undisturbed(lengths()), curves);
  ASSERT_EQ(findings.failures.size(), 2U);
  EXPECT_NE(findings.failures[0].find("3 of the victim's blocks were lost"), std::string::npos) << findings.failures[0];
  EXPECT_NE(findings.failures[1].find("the device is gone"), std::string::npos);
  EXPECT_EQ(findings.verdict.find("Use cooperative_flag"), std::string::npos) << findings.verdict;
}

TEST(PreemptConclude, warns_of_clocks_and_blocks_that_are_off) {
  std::vector<Curve> curves = {curve_of(kNone, 8, 10'000)};
  curves[0].points[0].observation.clock_error_ns = 1'000'000;
  curves[0].points[1].observation.block_ns = 250'000;
  curves[0].points[2].observation.requests[7].ended_ns = kNoTime;
  curves[0].points[2] = point_of(curves[0].points[2].victim, curves[0].points[2].observation, ExperimentPlan{});
  const Findings findings = conclude(plan_of(lengths()), quiet_alone(), undisturbed(lengths()), curves);
  ASSERT_EQ(findings.warnings.size(), 3U);
  EXPECT_NE(findings.warnings[0].find("took 250 us instead of 100 us"), std::string::npos) << findings.warnings[0];
  EXPECT_NE(findings.warnings[1].find("known to 1.00 ms only"), std::string::npos) << findings.warnings[1];
  EXPECT_NE(findings.warnings[2].find("1 of 400 requests did not end"), std::string::npos) << findings.warnings[2];
}

}  // namespace
}  // namespace weir::preempt
