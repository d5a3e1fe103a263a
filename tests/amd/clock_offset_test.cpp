// The interval solver: an offset that is known by construction must lie in what it says, and where the log does not
// decide it must say nothing.
#include "amd/clock_offset.h"

#include <gtest/gtest.h>

#include <random>

namespace weir::amd {
namespace {

constexpr std::int64_t kMs = 1'000'000, kUs = 1000;

std::int64_t log_stamp(std::int64_t ns) { return ns / kUs * kUs; }
std::int64_t trace_stamp(std::int64_t ns) { return (ns + 500) / kUs * kUs; }

TEST(ClockOffset, one_creation_bounds_the_offset_by_what_is_left_of_its_bracket) {
  // The runtime asked at 10 ms and had its queue at 19 ms; KFD worked from 4 ms to 5 ms of its own clock.
  const std::vector<TraceInstant> calls = {{4 * kMs, 5 * kMs}};
  const std::vector<ClockBracket> brackets = {{10 * kMs, 19 * kMs, calls}};
  const ClockOffset offset = solve_clock_offset(brackets, "local");
  ASSERT_EQ(offset.basis, OffsetBasis::brackets) << offset.reason;
  EXPECT_EQ(offset.range.low_ns, 6 * kMs - kTraceStampNs);
  EXPECT_EQ(offset.range.high_ns, 14 * kMs + kLogStampNs + kTraceStampNs);
  EXPECT_EQ(offset.half_width_ns(), 4 * kMs + kUs);
  EXPECT_EQ(offset.left_out, 0u);
}

TEST(ClockOffset, the_true_offset_is_never_outside_and_more_creations_make_it_narrower) {
  std::mt19937_64 random(7);
  const auto between = [&](std::int64_t low, std::int64_t high) {
    return std::uniform_int_distribution<std::int64_t>(low, high)(random);
  };
  int solved = 0;
  for (int round = 0; round < 300; ++round) {
    const std::int64_t truth = between(-500 * kMs, 500 * kMs);
    const int creations = static_cast<int>(between(1, 12));
    std::vector<TraceInstant> calls;
    std::vector<std::pair<std::int64_t, std::int64_t>> lines;
    std::int64_t now = between(1, 1000) * 1000 * kMs;
    for (int i = 0; i < creations; ++i) {
      now += between(1, 40 * kMs);
      const std::int64_t asked = now, entered = asked + between(0, 4 * kMs), left = entered + between(0, kMs),
                         created = left + between(0, 4 * kMs);
      lines.emplace_back(log_stamp(asked), log_stamp(created));
      calls.push_back({trace_stamp(entered - truth), trace_stamp(left - truth)});
      now = created;
      // A queue of the runtime's own, which the log does not show.
      if (between(0, 3) == 0) {
        now += between(0, 2 * kMs);
        calls.push_back({trace_stamp(now - truth), trace_stamp(now + kUs - truth)});
      }
    }
    std::vector<ClockBracket> brackets;
    for (std::size_t i = 0; i < lines.size(); ++i)
      brackets.push_back({lines[i].first, lines[i].second, calls, i, lines.size()});
    const ClockOffset offset = solve_clock_offset(brackets, "local");
    if (!offset.is_known()) {
      EXPECT_GT(offset.alternatives.size(), 1u) << offset.reason;
      continue;
    }
    ++solved;
    EXPECT_LE(offset.range.low_ns, truth);
    EXPECT_GE(offset.range.high_ns, truth);
    EXPECT_EQ(offset.left_out, 0u);
  }
  EXPECT_GT(solved, 150);
}

TEST(ClockOffset, several_pairings_that_fit_give_no_offset) {
  // One bracket of the log, two creations in the trace that are far apart: which one was it?
  const std::vector<TraceInstant> calls = {{100 * kMs, 101 * kMs}, {900 * kMs, 901 * kMs}};
  const std::vector<ClockBracket> brackets = {{10 * kMs, 15 * kMs, calls}};
  const ClockOffset offset = solve_clock_offset(brackets, "");
  EXPECT_FALSE(offset.is_known());
  ASSERT_EQ(offset.alternatives.size(), 2u);
  EXPECT_NE(offset.reason.find("several ways"), std::string::npos);
}

TEST(ClockOffset, order_decides_between_offsets_that_brackets_alone_leave_open) {
  // Three calls, evenly spaced. Two brackets of three fit the first two calls and the last two alike.
  const std::vector<TraceInstant> calls = {{0, 0}, {100 * kMs, 100 * kMs}, {200 * kMs, 200 * kMs}};
  std::vector<ClockBracket> two = {{1000 * kMs, 1001 * kMs, calls, 0, 2}, {1100 * kMs, 1101 * kMs, calls, 1, 2}};
  EXPECT_FALSE(solve_clock_offset(two, "local").is_known());
  // As many brackets as calls, one without a time: now the first bracket is that of the first call.
  for (ClockBracket& bracket : two) bracket.siblings = 3;
  const ClockOffset offset = solve_clock_offset(two, "local");
  ASSERT_TRUE(offset.is_known()) << offset.reason;
  EXPECT_EQ(offset.basis, OffsetBasis::order);
  EXPECT_LE(offset.range.low_ns, 1000 * kMs);
  EXPECT_GE(offset.range.high_ns, 1000 * kMs);
  // Where only one offset fits anyway, order is not needed and not claimed.
  two.push_back({1200 * kMs, 1201 * kMs, calls, 2, 3});
  EXPECT_EQ(solve_clock_offset(two, "local").basis, OffsetBasis::brackets);
}

TEST(ClockOffset, one_bad_bracket_of_few_is_a_contradiction_and_of_many_is_left_out_and_counted) {
  std::vector<std::vector<TraceInstant>> calls;
  std::vector<ClockBracket> brackets;
  for (int i = 0; i < 10; ++i) calls.push_back({{(100 * i + 2) * kMs, (100 * i + 3) * kMs}});
  calls[4][0] = {7777 * kMs, 7778 * kMs};
  for (int i = 0; i < 10; ++i)
    brackets.push_back({(1000 + 100 * i) * kMs, (1005 + 100 * i) * kMs, calls[static_cast<std::size_t>(i)]});
  const ClockOffset offset = solve_clock_offset(brackets, "local");
  ASSERT_TRUE(offset.is_known()) << offset.reason;
  EXPECT_EQ(offset.left_out, 1u);
  EXPECT_EQ(offset.brackets, 10u);
  EXPECT_LE(offset.range.low_ns, 1000 * kMs);
  EXPECT_GE(offset.range.high_ns, 1000 * kMs);
  // Two that agree and one that does not: nobody knows who is right.
  const std::vector<ClockBracket> few = {brackets[3], brackets[4], brackets[5]};
  const ClockOffset none = solve_clock_offset(few, "local");
  EXPECT_FALSE(none.is_known());
  EXPECT_NE(none.reason.find("2 of 3"), std::string::npos) << none.reason;
}

TEST(ClockOffset, mono_is_zero_only_where_the_log_does_not_contradict_it) {
  const std::vector<TraceInstant> calls = {{12 * kMs, 13 * kMs}};
  const std::vector<ClockBracket> fits = {{10 * kMs, 19 * kMs, calls}};
  const ClockOffset same = solve_clock_offset(fits, "mono");
  EXPECT_EQ(same.basis, OffsetBasis::same_clock);
  EXPECT_EQ(same.range.low_ns, 0);
  EXPECT_EQ(same.range.high_ns, 0);
  EXPECT_EQ(same.brackets, 1u);
  // 382 ms early: the manifest says mono, and it cannot be.
  const std::vector<ClockBracket> contradicts = {{392 * kMs, 401 * kMs, calls}};
  const ClockOffset none = solve_clock_offset(contradicts, "mono");
  EXPECT_FALSE(none.is_known());
  EXPECT_FALSE(none.warning.empty());
  EXPECT_FALSE(none.reason.empty());
  // Nothing to check it by.
  const ClockOffset unchecked = solve_clock_offset({}, "mono");
  EXPECT_EQ(unchecked.basis, OffsetBasis::same_clock);
  EXPECT_EQ(unchecked.brackets, 0u);
}

TEST(ClockOffset, brackets_at_the_edge_of_a_stamp_fit) {
  // asked and ioctl within one microsecond: the log cuts 10.9 us to 10, the tracer rounds 10.9 to 11 and 10.2 to 10.
  const std::vector<TraceInstant> rounded_up = {{11 * kUs, 13 * kUs}};
  EXPECT_TRUE(solve_clock_offset(std::vector<ClockBracket>{{10 * kUs, 12 * kUs, rounded_up}}, "mono").is_known());
}

TEST(ClockOffset, without_brackets_or_with_a_clock_that_counts_no_time_there_is_none) {
  EXPECT_NE(solve_clock_offset({}, "local").reason.find("no queue creation"), std::string::npos);
  const std::vector<TraceInstant> calls = {{4 * kMs, 5 * kMs}};
  const std::vector<ClockBracket> brackets = {{10 * kMs, 19 * kMs, calls}};
  EXPECT_NE(solve_clock_offset(brackets, "x86-tsc").reason.find("does not count time"), std::string::npos);
  const std::vector<ClockBracket> deletes = {{10 * kMs, INT64_MAX, calls}};
  EXPECT_NE(solve_clock_offset(deletes, "local").reason.find("one side"), std::string::npos);
}

TEST(ClockOffset, a_call_longer_than_its_bracket_and_absurd_times_are_no_candidates) {
  const std::vector<TraceInstant> long_call = {{0, 100 * kMs}};
  EXPECT_FALSE(solve_clock_offset(std::vector<ClockBracket>{{10 * kMs, 19 * kMs, long_call}}, "local").is_known());
  const std::vector<TraceInstant> absurd = {{INT64_MIN, INT64_MAX}, {INT64_MAX, INT64_MIN}};
  EXPECT_FALSE(solve_clock_offset(std::vector<ClockBracket>{{INT64_MIN + 1, INT64_MAX - 1, absurd}}, "").is_known());
  EXPECT_FALSE(solve_clock_offset(std::vector<ClockBracket>{{10 * kMs, 19 * kMs, absurd}}, "").is_known());
}

TEST(ClockOffset, a_drifting_clock_leaves_no_offset_instead_of_a_wrong_one) {
  // 50 ppm over 400 s is 20 ms, more than brackets of 5 ms allow.
  std::vector<TraceInstant> calls;
  for (int i = 0; i < 5; ++i) {
    const std::int64_t now = std::int64_t{i} * 100'000 * kMs;
    calls.push_back({now + now / 20'000, now + now / 20'000});
  }
  std::vector<ClockBracket> brackets;
  for (std::size_t i = 0; i < 5; ++i) {
    const std::int64_t now = static_cast<std::int64_t>(i) * 100'000 * kMs;
    brackets.push_back({now - 2 * kMs, now + 3 * kMs, std::span<const TraceInstant>(&calls[i], 1)});
  }
  EXPECT_FALSE(solve_clock_offset(brackets, "local").is_known());
}

TEST(ClockOffset, durations_are_ranges_and_say_when_they_are_nothing) {
  const OffsetRange offset{-kMs, kMs};
  const DurationRange wide = duration_between(moment_of_log(10 * kMs), moment_of_trace(10 * kMs + 500 * kUs, offset));
  EXPECT_EQ(wide.least_ns, 0);
  EXPECT_EQ(wide.most_ns, kMs + 500 * kUs + kTraceStampNs);
  EXPECT_FALSE(wide.is_distinguishable);
  const DurationRange clear = duration_between(moment_of_log(10 * kMs), moment_of_trace(15 * kMs, offset));
  EXPECT_EQ(clear.least_ns, 4 * kMs - kLogStampNs - kTraceStampNs);
  EXPECT_EQ(clear.most_ns, 6 * kMs + kTraceStampNs);
  EXPECT_TRUE(clear.is_distinguishable);
}

}  // namespace
}  // namespace weir::amd
