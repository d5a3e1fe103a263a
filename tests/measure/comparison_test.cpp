// The one rule of all comparisons: the same words for samples of one process and for values of several.
#include "measure/comparison.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "support/gauss.h"

namespace weir {
namespace {

std::vector<double> around(double level, std::size_t count, double noise, std::uint64_t seed) {
  SplitMix random(seed);
  std::vector<double> samples;
  for (std::size_t i = 0; i < count; ++i) samples.push_back(level * (1 + noise * (random.fraction() - 0.5)));
  return samples;
}

using Measure = void (*)(std::span<const double>, std::span<const double>, const CompareOptions&, Change&);

void measure_values(std::span<const double> baseline, std::span<const double> test, const CompareOptions& options,
                    Change& change) {
  measure_processes(baseline, test, options, change);
}

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
  for (const Measure measure : {&measure_samples, &measure_values}) {
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
  for (const Measure measure : {&measure_samples, &measure_values}) {
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

// A side of processes: each has its own level, `between` apart, and samples that scatter by `within` about it.
struct Side {
  std::vector<std::vector<double>> samples;

  std::vector<ProcessSamples> processes() const { return {samples.begin(), samples.end()}; }
};

struct Shape {
  std::size_t processes = 5, samples = 100;
  double between = 0.06, within = 0.02;
  bool is_bistable = false;  // levels are one of two values, 2 * between apart
};

Side side_of(SplitMix& random, const Shape& shape, double level = 1e6) {
  Side side;
  for (std::size_t i = 0; i < shape.processes; ++i) {
    const double own = shape.is_bistable ? (random.fraction() < 0.5 ? -1 : 1) : gauss(random);
    std::vector<double>& samples = side.samples.emplace_back();
    for (std::size_t k = 0; k < shape.samples; ++k)
      samples.push_back(level * std::exp(shape.between * own + shape.within * gauss(random)));
  }
  return side;
}

Change compared(const Side& baseline, const Side& test, const std::optional<Spread>& known = {}) {
  CompareOptions options;
  options.bootstrap.resamples = 400;
  Change change;
  measure_sides(baseline.processes(), test.processes(), known, options, change);
  Change* const pointer = &change;
  decide({&pointer, 1}, options);
  return change;
}

int count_of(const Shape& shape, int runs, double slowdown, std::uint64_t seed,
             const std::optional<Spread>& known = {}) {
  SplitMix random(seed);
  int found = 0;
  for (int run = 0; run < runs; ++run) {
    const Side baseline = side_of(random, shape), test = side_of(random, shape, 1e6 * slowdown);
    const Verdict verdict = compared(baseline, test, known).verdict;
    found += verdict == Verdict::slower || (slowdown == 1 && verdict == Verdict::faster) ? 1 : 0;
  }
  return found;
}

// Thousands of comparisons take long; hundreds find a rule that is far off.
bool is_long() { return std::getenv("WEIR_LONG_TESTS") != nullptr; }

// Runs that differ by 6 % between processes: taken as one series, 23, 11 and 7 % of such comparisons were false.
TEST(Processes, identical_code_is_rarely_accused) {
  const int runs = is_long() ? 4000 : 400;
  for (const Shape& shape :
       {Shape{3, 100}, Shape{5, 100}, Shape{10, 50}, Shape{5, 60, 0.3, 0.02}, Shape{5, 60, 0.002, 0.01},
        Shape{5, 60, 0.06, 0.001, true}, Shape{7, 60, 0.06, 0.001, true}, Shape{10, 30, 0.2, 0.02, true}}) {
    const int accused = count_of(shape, runs, 1, 11 * shape.processes + shape.samples);
    if (is_long())
      std::printf("%zu x %zu, %g: %d of %d\n", shape.processes, shape.samples, shape.between, accused, runs);
    EXPECT_LE(accused, runs / 100 + (is_long() ? 0 : 2))
        << shape.processes << " x " << shape.samples << ", " << shape.between;
  }
}

TEST(Processes, a_slowdown_is_found_where_processes_agree) {
  const int runs = is_long() ? 2000 : 200;
  for (const double between : {0.002, 0.005, 0.01}) {
    const int found = count_of({5, 60, between, 0.01}, runs, 1.08, 5);
    if (is_long()) std::printf("5 x 60, %g: %d of %d found\n", between, found, runs);
    EXPECT_GE(found, runs * 95 / 100) << between;
  }
  EXPECT_GE(count_of({10, 50, 0.02, 0.02}, runs, 1.08, 7), runs * 9 / 10);
}

// Whatever the values: of all deals of ten processes to two sides of five, only the two most extreme ones are accused.
TEST(Processes, ranks_are_exact_also_with_ties) {
  const auto rank_p = [](const std::vector<double>& baseline, const std::vector<double>& test) {
    return judged(&measure_values, baseline, test).adjusted_p.value();
  };
  EXPECT_NEAR(*judged(&measure_values, {1, 2, 3, 4, 5}, {6, 7, 8, 9, 10}).rank_p, 2.0 / 252, 1e-12);
  EXPECT_NEAR(*judged(&measure_values, {1, 1, 1, 1, 1}, {2, 2, 2, 2, 2}).rank_p, 2.0 / 252, 1e-12);
  EXPECT_NEAR(*judged(&measure_values, {1, 1, 1, 1, 1}, {1, 1, 1, 1, 1}).rank_p, 1, 1e-12);
  EXPECT_NEAR(*judged(&measure_values, {1, 1, 1, 1, 2}, {2, 2, 2, 2, 2}).rank_p, 12.0 / 252, 1e-12)
      << "two of 252 have the five low ones apart, ten more only four of them";
  EXPECT_GE(rank_p({1, 1, 1, 1, 2}, {2, 2, 2, 2, 2}), 0.01);
  EXPECT_EQ(judged(&measure_values, {1, 1, 1, 1, 1}, {2, 2, 2, 2, 2}).verdict, Verdict::slower);
}

TEST(Processes, three_on_a_side_say_how_many_are_needed) {
  SplitMix random(3);
  const Shape three{3, 60, 0.002, 0.01};
  const Change change = compared(side_of(random, three), side_of(random, three, 1.2e6));
  EXPECT_EQ(change.verdict, Verdict::ambiguous);
  EXPECT_EQ(change.reason, "3 against 3 processes cannot show a change at 1 %; 5 on each side can");
  EXPECT_NEAR(*change.ratio, 1.2, 0.01);
  EXPECT_EQ(fewest_processes(0.01), 5U);
  EXPECT_EQ(fewest_processes(0.05), 4U);
}

TEST(Processes, one_on_each_side_needs_a_known_spread) {
  SplitMix random(4);
  const Shape one{1, 60, 0, 0.01};
  const Side before = side_of(random, one), after = side_of(random, one, 1.2e6), same = side_of(random, one);
  const Change unknown = compared(before, after);
  EXPECT_EQ(unknown.verdict, Verdict::ambiguous);
  EXPECT_FALSE(unknown.p);
  EXPECT_FALSE(unknown.interval);
  EXPECT_NEAR(*unknown.ratio, 1.2, 0.01);
  EXPECT_EQ(unknown.reason, "one process on a side says nothing about the next");
  EXPECT_EQ(compared(before, after, Spread{0.002, 9, "a test"}).verdict, Verdict::slower);
  EXPECT_EQ(compared(after, before, Spread{0.002, 9, "a test"}).verdict, Verdict::faster);
  EXPECT_EQ(compared(before, same, Spread{0.002, 9, "a test"}).verdict, Verdict::same);
  EXPECT_EQ(compared(before, after, Spread{0.2, 9, "a test"}).verdict, Verdict::ambiguous);
  EXPECT_EQ(compared(before, same, Spread{0.2, 9, "a test"}).verdict, Verdict::ambiguous) << "not the same either";
  EXPECT_EQ(compared(before, after, Spread{0, 0, "virtual time"}).verdict, Verdict::slower);
}

TEST(Processes, a_known_spread_keeps_single_processes_honest) {
  for (const double between : {0.002, 0.06, 0.3}) {
    EXPECT_LE(count_of({1, 60, between, 0.02}, 200, 1, 8, Spread{between, 9, "a test"}), 4) << between;
    EXPECT_LE(count_of({3, 60, between, 0.02}, 200, 1, 9, Spread{between, 9, "a test"}), 4) << between;
  }
  EXPECT_GE(count_of({1, 60, 0.005, 0.01}, 100, 1.08, 10, Spread{0.005, 9, "a test"}), 95);
}

// Two modes 10 % apart that change now and then: 34 of 200 such comparisons of 30 samples were false.
TEST(Processes, a_median_that_jumps_between_two_modes_is_no_change) {
  SplitMix random(12);
  int accused = 0, explained = 0;
  const auto bistable = [&] {
    std::vector<double> samples;
    bool is_high = random.fraction() < 0.5;
    for (int i = 0; i < 30; ++i) {
      if (random.fraction() < 0.15) is_high = !is_high;
      samples.push_back(1e6 * (is_high ? 1.1 : 1) * std::exp(0.005 * gauss(random)));
    }
    return samples;
  };
  for (int run = 0; run < 400; ++run) {
    CompareOptions options;
    options.bootstrap.resamples = 400;
    const std::vector<double> before = bistable(), after = bistable();
    Change change;
    measure_samples(before, after, options, change);
    Change* const pointer = &change;
    decide({&pointer, 1}, options);
    accused += change.verdict == Verdict::slower || change.verdict == Verdict::faster ? 1 : 0;
    explained += change.reason.find("gather around two values 10 % apart") != std::string::npos ? 1 : 0;
  }
  EXPECT_LE(accused, 4);
  EXPECT_GE(explained, 280);
}

// Fifteen entries that changed by 3 % each: the largest estimate exceeds a threshold of 5 % mostly by luck.
TEST(Families, a_change_must_be_shown_to_exceed_the_threshold) {
  SplitMix random(15);
  const auto exits = [&](double slowdown, int runs) {
    int slower = 0;
    for (int run = 0; run < runs; ++run) {
      CompareOptions options;
      options.bootstrap.resamples = 400;
      std::vector<Change> changes(15);
      std::vector<Change*> pointers;
      for (Change& change : changes) {
        std::vector<double> before, after;
        for (int i = 0; i < 60; ++i) {
          before.push_back(std::exp(0.05 * gauss(random)));
          after.push_back(slowdown * std::exp(0.05 * gauss(random)));
        }
        measure_samples(before, after, options, change);
        pointers.push_back(&change);
      }
      decide(pointers, options);
      slower += std::any_of(changes.begin(), changes.end(),
                            [](const Change& change) { return change.verdict == Verdict::slower; })
                    ? 1
                    : 0;
    }
    return slower;
  };
  EXPECT_EQ(exits(1, 40), 0);
  EXPECT_LE(exits(1.03, 40), 1);
  EXPECT_GE(exits(1.1, 40), 38);
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
