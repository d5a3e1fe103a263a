#include "lab/preempt/verdict.h"

#include <gtest/gtest.h>

#include "lab/preempt/synthetic.h"
#include "support/text.h"

namespace weir::preempt {
namespace {

using namespace testing;

std::string verdict_on(const Mechanism& mechanism, double blocks, double min_ns, int waves = 4,
                       std::uint64_t victim_blocks = 1000) {
  std::vector<Curve> curves = {curve_of(kNone, 8, 10'000, 900, waves),
                               curve_of(mechanism, blocks, min_ns, victim_blocks, waves)};
  return conclude(plan_of(lengths(waves)), quiet_alone(), undisturbed(lengths(waves)), curves).curves[1].verdict;
}

TEST(PreemptVerdict, none_waits_for_whole_kernels) {
  const Findings findings = usual_findings();
  EXPECT_EQ(findings.curves[0].follows, Follows::kernels);
  EXPECT_TRUE(has(findings.curves[0].verdict, "none: it waits for whole kernels, about 2.0 of 4 waves"))
      << findings.curves[0].verdict;
}

TEST(PreemptVerdict, what_passes_queued_work_but_no_running_block) {
  const std::string verdict = verdict_on(kPriority, 1, 10'000);
  EXPECT_TRUE(has(verdict, "priority lets urgent work pass what is queued")) << verdict;
  EXPECT_TRUE(has(verdict, "does not preempt a running block, latency follows block time")) << verdict;
  EXPECT_TRUE(has(verdict, "over blocks of 10.0 us to 10.0 ms")) << verdict;
  EXPECT_TRUE(has(verdict, "it has no measurable cost for the victim")) << verdict;
}

TEST(PreemptVerdict, what_does_not_follow_block_time) {
  const std::string verdict = verdict_on(kFlag, 0, 12'000, 4, 850);
  EXPECT_TRUE(has(verdict, "latency does not follow block time: p99 is about 12.0 us")) << verdict;
  EXPECT_TRUE(has(verdict, "the victim loses 15 % of its throughput")) << verdict;
}

TEST(PreemptVerdict, what_has_no_effect) {
  const std::string verdict = verdict_on(kPriority, 8, 10'000);
  EXPECT_TRUE(has(verdict, "priority has no effect here")) << verdict;
}

TEST(PreemptVerdict, what_makes_it_worse) {
  const std::string verdict = verdict_on(kGate, 20, 10'000);
  EXPECT_TRUE(has(verdict, "launch_gate makes it worse")) << verdict;
}

TEST(PreemptVerdict, an_overloaded_point_is_worse_and_no_part_of_the_line) {
  std::vector<Curve> curves = {curve_of(kNone, 8, 10'000), curve_of(kPriority, 1, 10'000)};
  Victim longer{VictimKind::waves, 4, 5'000'000};
  curves[0].points.push_back(waiting(longer, 8, 10'000));
  curves[1].points.push_back(
      point_of(longer, observed(400, [](int i, SplitMix&) { return 1e6 * (i + 1); }), ExperimentPlan{}));
  const Findings findings = conclude(plan_of(lengths()), quiet_alone(), {}, curves);
  EXPECT_EQ(findings.curves[1].follows, Follows::block) << findings.curves[1].verdict;
  EXPECT_EQ(findings.curves[1].fit->lengths, 4U);
  EXPECT_TRUE(has(findings.curves[1].verdict, "for 1 victim requests come faster than they pass"))
      << findings.curves[1].verdict;
  EXPECT_FALSE(findings.warnings.empty());
}

// A queue that only gets longer has no ratio to anything; what keeps it short helps all the same.
TEST(PreemptVerdict, what_passes_where_none_is_overloaded_is_of_use) {
  const Victim victim{VictimKind::persistent, 4, 100'000};
  const auto growing = [&] {
    return point_of(victim, observed(400, [](int i, SplitMix&) { return 1e6 * (i + 1); }), ExperimentPlan{});
  };
  std::vector<Curve> curves(3);
  curves[0].mechanism = &kNone;
  curves[0].points = {growing()};
  curves[1].mechanism = &kPriority;
  curves[1].points = {growing()};
  curves[2].mechanism = &kFlag;
  curves[2].points = {waiting(victim, 1, 10'000)};
  const Findings findings = conclude(plan_of({victim}), quiet_alone(), undisturbed({victim}), curves);
  EXPECT_TRUE(findings.verdict.starts_with("Use cooperative_flag here: with none requests come faster than they pass"))
      << findings.verdict;
  EXPECT_TRUE(has(findings.curves[1].verdict, "priority cannot be compared with none")) << findings.curves[1].verdict;
  EXPECT_TRUE(has(findings.curves[2].verdict, "for 1 victim requests come faster than they pass with none only"))
      << findings.curves[2].verdict;
}

TEST(PreemptVerdict, a_tail_that_is_noise_leaves_the_word_to_the_median) {
  std::vector<Curve> curves = {curve_of(kNone, 8, 10'000)};
  SplitMix random(5);
  for (Point& point : curves[0].points) {
    Observation seen = point.observation;
    for (std::size_t i = 0; i < seen.requests.size(); i += 25)  // 4 % of them, up to 300 ms late
      seen.requests[i].started_ns = seen.requests[i].due_ns + static_cast<std::int64_t>(3e8 * random.fraction());
    point = point_of(point.victim, seen, ExperimentPlan{});
  }
  const Findings findings = conclude(plan_of(lengths()), quiet_alone(), {}, curves);
  EXPECT_EQ(findings.curves[0].follows, Follows::kernels) << findings.curves[0].verdict;
  EXPECT_TRUE(has(findings.curves[0].verdict, "the median grows by")) << findings.curves[0].verdict;
}

TEST(PreemptVerdict, few_requests_are_compared_by_their_medians) {
  std::vector<Curve> curves = {curve_of(kNone, 8, 10'000), curve_of(kPriority, 1, 10'000)};
  for (Curve& curve : curves)
    for (Point& point : curve.points) point = waiting(point.victim, &curve == &curves[0] ? 8 : 1, 10'000, 50);
  const std::string verdict = conclude(plan_of(lengths()), quiet_alone(), {}, curves).curves[1].verdict;
  EXPECT_TRUE(has(verdict, "the median is")) << verdict;
  EXPECT_FALSE(has(verdict, "p99")) << verdict;
  const std::string overall = conclude(plan_of(lengths()), quiet_alone(), {}, curves).verdict;
  EXPECT_TRUE(overall.starts_with("Use priority here: the median is")) << overall;
}

TEST(PreemptVerdict, a_gate_that_still_waits_for_a_kernel) {
  const std::string verdict = verdict_on(kGate, 4, 10'000);
  EXPECT_TRUE(has(verdict, "launch_gate helps")) << verdict;
  EXPECT_TRUE(has(verdict, "it waits for whole kernels, about 1.0 of 4 waves")) << verdict;
}

TEST(PreemptVerdict, waves_tell_kernels_from_blocks) {
  // Kernels of one wave: the slope could mean either, but more waves make it longer.
  std::vector<Victim> victims = lengths(1);
  victims.push_back({VictimKind::waves, 64, 100'000});
  Curve curve = curve_of(kNone, 1, 10'000, 900, 1);
  curve.points.push_back(waiting(victims.back(), 64, 10'000));
  EXPECT_EQ(conclude(plan_of(victims), quiet_alone(), {}, {curve}).curves[0].follows, Follows::kernels);
  curve.points.back() = waiting(victims.back(), 1, 10'000);
  EXPECT_EQ(conclude(plan_of(victims), quiet_alone(), {}, {curve}).curves[0].follows, Follows::block);
}

TEST(PreemptVerdict, what_cannot_be_had_says_why) {
  const Findings findings = usual_findings();
  EXPECT_EQ(findings.curves[3].verdict, "launch_gate is not available here: nothing can be held back here");
}

TEST(PreemptVerdict, overall_names_the_fastest_and_one_for_kernels_as_they_are) {
  const std::string verdict = usual_findings().verdict;
  EXPECT_TRUE(verdict.starts_with("Use cooperative_flag here")) << verdict;
  EXPECT_TRUE(has(verdict, "for kernels as they are use priority")) << verdict;
  EXPECT_TRUE(has(verdict, "the victim loses 15 %")) << verdict;
}

TEST(PreemptVerdict, of_two_that_are_as_fast_the_cheaper_one) {
  const std::vector<Curve> curves = {curve_of(kNone, 8, 10'000), curve_of(kPriority, 1, 10'000, 600),
                                     curve_of(kGate, 1, 10'100, 990)};
  const std::string verdict = conclude(plan_of(lengths()), quiet_alone(), undisturbed(lengths()), curves).verdict;
  EXPECT_TRUE(verdict.starts_with("Use launch_gate here")) << verdict;
}

TEST(PreemptVerdict, nothing_helps_where_nothing_does) {
  const std::vector<Curve> curves = {curve_of(kNone, 8, 10'000), curve_of(kPriority, 8, 10'000)};
  const std::string verdict = conclude(plan_of(lengths()), quiet_alone(), undisturbed(lengths()), curves).verdict;
  EXPECT_TRUE(has(verdict, "Nothing that was observed lets urgent work pass here")) << verdict;
}

TEST(PreemptVerdict, there_is_none_without_anything_to_compare_with) {
  EXPECT_TRUE(has(conclude(plan_of({}), quiet_alone(), {}, {curve_of(kGate, 1, 10'000)}).verdict, "No verdict"));
  EXPECT_TRUE(has(conclude(plan_of({}), quiet_alone(), {}, {}).verdict, "No verdict"));
}

// A mechanism may serve some victims and harm others: the headline says which, and what to use there.
TEST(PreemptVerdict, recommends_nothing_that_its_own_data_contradicts) {
  const Victim persistent{VictimKind::persistent, 4, 1'000'000};
  for (const double harm : {2.5, 5.0, 20.0}) {
    std::vector<Victim> victims = lengths();
    victims.push_back(persistent);
    std::vector<Curve> curves = {curve_of(kNone, 8, 10'000), curve_of(kPriority, 1, 10'000)};
    curves[0].points.push_back(waiting(persistent, 1, 10'000));
    curves[1].points.push_back(waiting(persistent, harm, 10'000));
    const std::string verdict = conclude(plan_of(victims), quiet_alone(), undisturbed(victims), curves).verdict;
    EXPECT_TRUE(verdict.starts_with("Use priority here in part: p99 is 0.1")) << verdict;
    EXPECT_TRUE(has(verdict, "over the other victims")) << verdict;
    EXPECT_TRUE(has(verdict, "but not behind persistent, 1.00 ms blocks")) << verdict;
    EXPECT_TRUE(has(verdict, "x that of none): use none there")) << verdict;

    // What helps behind that victim is named instead of none.
    curves.push_back(curve_of(kGate, 7.9, 10'000));
    curves[2].points.push_back(waiting(persistent, 0.2, 10'000));
    const std::string more = conclude(plan_of(victims), quiet_alone(), undisturbed(victims), curves).verdict;
    EXPECT_TRUE(has(more, "use launch_gate there")) << more;

    // One that is nearly as fast and harms nobody goes first.
    curves[2] = curve_of(kGate, 1.5, 10'000);
    curves[2].points.push_back(waiting(persistent, 1, 10'000));
    const std::string harmless = conclude(plan_of(victims), quiet_alone(), undisturbed(victims), curves).verdict;
    EXPECT_TRUE(harmless.starts_with("Use launch_gate here: ")) << harmless;
    EXPECT_FALSE(has(harmless, "but not")) << harmless;
  }
}

TEST(PreemptVerdict, the_tail_of_two_hundred_requests_is_p90) {
  std::vector<Curve> curves = {curve_of(kNone, 8, 10'000), curve_of(kPriority, 1, 10'000)};
  for (Curve& curve : curves)
    for (Point& point : curve.points) point = waiting(point.victim, &curve == &curves[0] ? 8 : 1, 10'000, 200);
  const Findings findings = conclude(plan_of(lengths()), quiet_alone(), undisturbed(lengths()), curves);
  EXPECT_TRUE(findings.verdict.starts_with("Use priority here: p90 is ")) << findings.verdict;
  EXPECT_FALSE(has(findings.verdict, "p99")) << findings.verdict;
  for (const Curve& curve : findings.curves) {
    EXPECT_FALSE(has(curve.verdict, "p99")) << curve.verdict;
    for (const Point& point : curve.points) {
      EXPECT_EQ(point.tail, 0.9);
      EXPECT_NEAR(*point.against_alone, *point.to_end.p90_ns / *findings.alone.to_end.p90_ns, 1e-9);
    }
  }
}

TEST(PreemptVerdict, ratios_to_alone_carry_the_spread_of_alone) {
  // The p99 of three repeats: about 0.1, 0.4 and 2 ms.
  std::vector<Observation> repeats;
  for (const double tail : {0.1e6, 0.4e6, 2e6})
    repeats.push_back(observed(400, [&](int i, SplitMix&) { return i % 50 == 0 ? tail : 10'000.0; }));
  const Alone alone = alone_of(repeats, 1);
  const auto spread = spread_of(alone, 0.99);
  ASSERT_TRUE(spread);
  EXPECT_NEAR(spread->low, 0.1e6, 0.01e6);
  EXPECT_NEAR(spread->high, 2e6, 0.01e6);
  const Findings findings = conclude(plan_of(lengths()), alone, {}, {curve_of(kNone, 8, 10'000)});
  for (const Point& point : findings.curves[0].points) {
    ASSERT_TRUE(point.against_alone && point.against_alone_interval);
    EXPECT_NEAR(point.against_alone_interval->low, *point.to_end.p99_ns / spread->high, 1e-9);
    EXPECT_NEAR(point.against_alone_interval->high, *point.to_end.p99_ns / spread->low, 1e-9);
    EXPECT_LE(point.against_alone_interval->low, *point.against_alone * (1 + 1e-9));
    EXPECT_GE(point.against_alone_interval->high, *point.against_alone * (1 - 1e-9));
  }
  // One repeat has only its own interval.
  EXPECT_TRUE(spread_of(alone_of({repeats[0]}, 1), 0.5));
}

}  // namespace
}  // namespace weir::preempt
