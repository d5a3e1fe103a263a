// The interval solver: an offset that is known by construction must lie in what it says, and where the log does not
// decide it must say nothing.
#include "amd/join/clock_offset.h"

#include <gtest/gtest.h>

#include <random>

#include "amd/join/units.h"

namespace weir::amd {
namespace {

std::int64_t log_stamp(std::int64_t ns) { return ns / kUs * kUs; }
std::int64_t trace_stamp(std::int64_t ns) { return (ns + 500) / kUs * kUs; }
std::int64_t graph_stamp(std::int64_t ns) { return ns / kUs * kUs; }

TEST(ClockOffset, one_creation_bounds_the_offset_by_what_is_left_of_its_bracket) {
  // The runtime asked at 10 ms and had its queue at 19 ms; KFD worked from 4 ms to 5 ms of its own clock.
  const std::vector<TraceInstant> calls = {{4 * kMs, 5 * kMs}};
  const std::vector<ClockBracket> brackets = {{10 * kMs, 19 * kMs, calls}};
  const ClockOffset offset = solve_clock_offset(brackets, "local");
  ASSERT_EQ(offset.basis, OffsetBasis::brackets) << offset.reason;
  EXPECT_EQ(offset.range.low_ns, 6 * kMs - kTraceStampLateNs);
  EXPECT_EQ(offset.range.high_ns, 14 * kMs + kLogStampNs + kTraceStampEarlyNs);
  EXPECT_EQ(offset.half_width_ns(), 4 * kMs + kUs + 250);
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

// How many brackets hold a candidate at this offset, counted one by one.
std::size_t held(const std::vector<ClockBracket>& brackets, std::int64_t offset) {
  std::size_t count = 0;
  for (const ClockBracket& bracket : brackets)
    for (const TraceInstant& call : bracket.candidates)
      if ((bracket.after_ns == INT64_MIN || call.started_ns + kTraceStampLateNs + offset >= bracket.after_ns) &&
          (bracket.before_ns == INT64_MAX ||
           call.ended_ns - kTraceStampEarlyNs + offset <= bracket.before_ns + kLogStampNs)) {
        ++count;
        break;
      }
  return count;
}

TEST(ClockOffset, agrees_with_trying_every_offset_over_random_brackets) {
  std::mt19937_64 random(11);
  const auto between = [&](std::int64_t low, std::int64_t high) {
    return std::uniform_int_distribution<std::int64_t>(low, high)(random);
  };
  int known = 0, unknown = 0, left_out = 0;
  for (int round = 0; round < 600; ++round) {
    std::vector<std::vector<TraceInstant>> calls(static_cast<std::size_t>(between(1, 3)));
    for (auto& own : calls)
      for (std::int64_t i = between(1, 5); i > 0; --i) {
        const std::int64_t start = between(0, 60) * kUs;
        own.push_back({start, start + between(0, 6) * kUs});
      }
    std::vector<ClockBracket> brackets;
    for (std::int64_t i = between(1, 24); i > 0; --i) {
      const std::int64_t after = between(0, 60) * kUs;
      const int kind = static_cast<int>(between(0, 9));
      brackets.push_back({kind == 0 ? INT64_MIN : after, kind == 1 ? INT64_MAX : after + between(0, 30) * kUs,
                          calls[static_cast<std::size_t>(between(0, static_cast<std::int64_t>(calls.size()) - 1))]});
    }
    const bool has_lost = between(0, 2) == 0;
    const std::size_t spare = brackets.size() < 4 ? 0 : std::max<std::size_t>(1, brackets.size() / 10);
    // Ends are multiples of half a microsecond: no range and no gap is missed.
    std::size_t most = 0;
    std::vector<std::pair<std::int64_t, std::size_t>> tried;
    for (std::int64_t offset = -200 * kUs; offset <= 200 * kUs; offset += 250) {
      tried.emplace_back(offset, held(brackets, offset));
      most = std::max(most, tried.back().second);
    }
    const std::size_t enough = most == brackets.size() && !has_lost ? most : brackets.size() - spare;
    std::vector<OffsetRange> expected;
    bool is_open = false;
    for (const auto& [offset, count] : tried) {
      if (count >= enough && !is_open) expected.push_back({offset, offset});
      is_open = count >= enough;
      if (is_open) expected.back().high_ns = offset;
    }
    const ClockOffset found = solve_clock_offset(brackets, "local", has_lost);
    if (found.reason.find("one side") != std::string::npos) continue;
    const bool is_expected = expected.size() == 1;
    ASSERT_EQ(found.is_known(), is_expected) << found.reason << " of " << brackets.size() << " most " << most;
    (is_expected ? known : unknown) += 1;
    if (!is_expected) continue;
    left_out += found.left_out > 0 ? 1 : 0;
    EXPECT_EQ(found.left_out, brackets.size() - most);
    // A range that no bracket ends on one side goes beyond the grid.
    const bool is_bounded_below = expected[0].low_ns > -200 * kUs, is_bounded_above = expected[0].high_ns < 200 * kUs;
    EXPECT_EQ(is_bounded_below ? found.range.low_ns : expected[0].low_ns, expected[0].low_ns);
    EXPECT_EQ(is_bounded_above ? found.range.high_ns : expected[0].high_ns, expected[0].high_ns);
  }
  EXPECT_GT(known, 60);
  EXPECT_GT(unknown, 60);
  EXPECT_GT(left_out, 15);
}

TEST(ClockOffset, the_offset_that_fits_most_is_not_taken_for_the_true_one_where_events_were_lost) {
  // Twenty creations, of which the tracer lost two. A call of somebody else happens to fit one of those brackets at a
  // wrong offset, where all but one hold something.
  constexpr std::int64_t kTruth = 500 * kMs, kWrong = kTruth + 20 * kMs;
  std::vector<std::vector<TraceInstant>> calls;
  std::vector<ClockBracket> brackets;
  for (int i = 0; i < 20; ++i) {
    const std::int64_t asked = (1000 + 100 * i) * kMs;
    calls.push_back({});
    if (i >= 2) calls.back().push_back({asked + 2 * kMs - kTruth, asked + 2 * kMs - kTruth});
    if (i != 0) calls.back().push_back({asked + 2 * kMs - kWrong, asked + 2 * kMs - kWrong});
    if (i == 0) calls.back().push_back({asked + 5000 * kMs, asked + 5000 * kMs});
  }
  for (int i = 0; i < 20; ++i)
    brackets.push_back({(1000 + 100 * i) * kMs, (1005 + 100 * i) * kMs, calls[static_cast<std::size_t>(i)]});
  const ClockOffset offset = solve_clock_offset(brackets, "local");
  EXPECT_FALSE(offset.is_known()) << "true offset " << kTruth << ", said " << offset.middle_ns();
  EXPECT_EQ(offset.alternatives.size(), 2u);
}

TEST(ClockOffset, stamps_that_the_graph_tracer_cuts_off_leave_the_true_offset_inside) {
  // Entered 10.9 us after the log's line at 10.9 us: the graph prints 10, as does the log.
  for (std::int64_t entered = 10 * kUs; entered < 12 * kUs; entered += 100) {
    const std::vector<TraceInstant> calls = {{graph_stamp(entered), graph_stamp(entered)}};
    const std::vector<ClockBracket> brackets = {{log_stamp(entered), INT64_MAX, calls},
                                                {INT64_MIN, log_stamp(entered + 100), calls}};
    const ClockOffset offset = solve_clock_offset(brackets, "local");
    ASSERT_TRUE(offset.is_known()) << offset.reason;
    EXPECT_LE(offset.range.low_ns, 0);
    EXPECT_GE(offset.range.high_ns, 0);
    const Moment moment = moment_of_trace(graph_stamp(entered), {0, 0});
    EXPECT_LE(moment.low_ns, entered);
    EXPECT_GE(moment.high_ns, entered);
  }
}

TEST(ClockOffset, mono_is_not_contradicted_by_calls_that_the_tracer_lost) {
  const std::vector<TraceInstant> calls = {{12 * kMs, 13 * kMs}};
  std::vector<ClockBracket> brackets = {{10 * kMs, 19 * kMs, calls}};
  for (int i = 1; i < 8; ++i) brackets.push_back({(100 * i) * kMs, (100 * i + 5) * kMs, calls});
  EXPECT_FALSE(solve_clock_offset(brackets, "mono").is_known());
  const ClockOffset lost = solve_clock_offset(brackets, "mono", true);
  EXPECT_EQ(lost.basis, OffsetBasis::same_clock);
  EXPECT_EQ(lost.left_out, 7u);
  // Nothing is where it should be: that is no check, and no contradiction either.
  brackets.erase(brackets.begin());
  const ClockOffset none = solve_clock_offset(brackets, "mono", true);
  EXPECT_FALSE(none.is_known());
  EXPECT_TRUE(none.warning.empty());
  EXPECT_NE(none.reason.find("lost events"), std::string::npos);
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
  EXPECT_EQ(wide.most_ns, kMs + 500 * kUs + kTraceStampLateNs);
  EXPECT_FALSE(wide.is_distinguishable);
  const DurationRange clear = duration_between(moment_of_log(10 * kMs), moment_of_trace(15 * kMs, offset));
  EXPECT_EQ(clear.least_ns, 4 * kMs - kLogStampNs - kTraceStampEarlyNs);
  EXPECT_EQ(clear.most_ns, 6 * kMs + kTraceStampLateNs);
  EXPECT_TRUE(clear.is_distinguishable);
}

}  // namespace
}  // namespace weir::amd
