// The one rule of all comparisons: the same words for samples of one process and for values of several.
#include "measure/comparison.h"

#include <gtest/gtest.h>

#include <vector>

namespace weir {
namespace {

std::vector<double> around(double level, std::size_t count, double noise, std::uint64_t seed) {
  SplitMix random(seed);
  std::vector<double> samples;
  for (std::size_t i = 0; i < count; ++i) samples.push_back(level * (1 + noise * (random.fraction() - 0.5)));
  return samples;
}

using Measure = void (*)(std::span<const double>, std::span<const double>, const CompareOptions&, Change&);

Change judged(Measure measure, const std::vector<double>& baseline, const std::vector<double>& test,
              bool is_less_better = true) {
  Change change;
  change.is_less_better = is_less_better;
  measure(baseline, test, {}, change);
  Change* const pointer = &change;
  decide({&pointer, 1}, {});
  return change;
}

TEST(Comparison, samples_and_processes_get_the_same_words) {
  for (const Measure measure : {&measure_samples, &measure_processes}) {
    const auto before = around(100, 20, 0.02, 1), same = around(100, 20, 0.02, 2), slower = around(120, 20, 0.02, 3);
    EXPECT_EQ(judged(measure, before, same).verdict, Verdict::same);
    EXPECT_EQ(judged(measure, before, slower).verdict, Verdict::slower);
    EXPECT_EQ(judged(measure, slower, before).verdict, Verdict::faster);
    EXPECT_EQ(judged(measure, before, slower, false).verdict, Verdict::faster) << "more of a rate is faster";
    const Change wide = judged(measure, around(100, 20, 1, 4), around(104, 20, 1, 5));
    EXPECT_EQ(wide.verdict, Verdict::ambiguous);
    EXPECT_FALSE(wide.reason.empty());
    const Change found = judged(measure, before, slower);
    ASSERT_TRUE(found.interval && found.ratio);
    EXPECT_LE(found.interval->low, *found.ratio);
    EXPECT_GE(found.interval->high, *found.ratio);
    EXPECT_NEAR(*found.slowness(), 1.2, 0.02);
  }
}

TEST(Comparison, nothing_to_judge_is_not_comparable_and_says_why) {
  for (const Measure measure : {&measure_samples, &measure_processes}) {
    const Change empty = judged(measure, {}, around(1, 9, 0.1, 1));
    EXPECT_EQ(empty.verdict, Verdict::not_comparable);
    EXPECT_EQ(empty.reason, "the baseline has no samples");
    const Change zero = judged(measure, std::vector<double>(9, 0.0), around(1, 9, 0.1, 1));
    EXPECT_EQ(zero.verdict, Verdict::not_comparable);
    EXPECT_FALSE(zero.reason.empty());
    const Change few = judged(measure, {1}, {2});
    EXPECT_EQ(few.verdict, Verdict::ambiguous) << "more of them would help";
    EXPECT_FALSE(few.reason.empty());
  }
}

TEST(Comparison, holm_counts_only_what_was_tested) {
  std::vector<Change> changes(3);
  changes[0].p = 0.01;
  changes[2].p = 0.04;
  std::vector<Change*> pointers;
  for (Change& change : changes) pointers.push_back(&change);
  EXPECT_EQ(adjust(pointers).size(), 2U);
  EXPECT_DOUBLE_EQ(*changes[0].adjusted_p, 0.02);
  EXPECT_FALSE(changes[1].adjusted_p);
  EXPECT_DOUBLE_EQ(*changes[2].adjusted_p, 0.04);
}

TEST(Comparison, exit_codes) {
  EXPECT_EQ(exit_code(VerdictCounts{{Verdict::same, 3}, {Verdict::faster, 1}}, true), 0);
  EXPECT_EQ(exit_code(VerdictCounts{{Verdict::slower, 1}, {Verdict::ambiguous, 1}}, false), 3);
  for (const Verdict unclear : {Verdict::ambiguous, Verdict::not_comparable}) {
    EXPECT_EQ(exit_code(VerdictCounts{{unclear, 1}}, false), 0);
    EXPECT_EQ(exit_code(VerdictCounts{{unclear, 1}}, true), 4);
  }
}

}  // namespace
}  // namespace weir
