#include "trace/clock_alignment.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "measure/bootstrap.h"
#include "trace/collective_match.h"
#include "trace/ranks_timeline.h"

namespace weir {
namespace {

const RankClock& clock_of(const ClockAlignment& alignment, int rank) {
  return *std::find_if(alignment.ranks.begin(), alignment.ranks.end(),
                       [&](const RankClock& clock) { return clock.rank == rank; });
}

// About 1000 from one to the next. Equal distances would not tell which collectives belong together.
std::int64_t uneven(int i) { return 1000 * i + 10 * (i * i * i % 23); }

TEST(ClockAlignment, FindsTheOffsetAndMovesEverything) {
  RanksTimeline ranks(2);
  for (int i = 0; i < 10; ++i) {
    ranks.add(0, uneven(i), uneven(i) + 500);
    ranks.add(1, uneven(i) + 5'000'100, uneven(i) + 5'000'500 + i % 3);
  }
  ranks.part(1).calls = {{0, 1, 0, 0, CallKind::launch, 5'000'050, 5'000'060}};
  ranks.part(1).ranges = {{0, 0, 5'000'000, kNoTime}};
  Timeline timeline = ranks.merged();
  const auto alignment = align_clocks(timeline);
  ASSERT_TRUE(alignment);
  EXPECT_TRUE(alignment->is_aligned);
  EXPECT_EQ(alignment->reference, 0);
  const RankClock& clock = clock_of(*alignment, 1);
  EXPECT_EQ(clock.matched, 10u);
  EXPECT_EQ(clock.offset_ns, 5'000'001);
  EXPECT_EQ(clock.error_ns, 1);
  EXPECT_TRUE(clock.is_shifted);
  EXPECT_FALSE(clock.drift_ppm);
  apply_alignment(timeline, *alignment);
  EXPECT_EQ(timeline.spans[1].started_ns, 99);
  EXPECT_EQ(timeline.calls[0].started_ns, 49);
  EXPECT_EQ(timeline.ranges[0].started_ns, -1);
  EXPECT_EQ(timeline.ranges[0].ended_ns, kNoTime);
  EXPECT_EQ(timeline.clock_error_ns, 1);
  EXPECT_EQ(timeline.notes.size(), 1u);
  for (std::size_t i = 1; i < timeline.spans.size(); ++i)
    EXPECT_LE(timeline.spans[i - 1].started_ns, timeline.spans[i].started_ns);
  for (const CollectiveFacts& facts : timeline.collectives)
    EXPECT_EQ(timeline.spans[facts.span].kind, SpanKind::collective);
}

TEST(ClockAlignment, ShiftsOneClock) {
  Timeline timeline;
  Span span;
  span.submitted_ns = 5;
  span.started_ns = 10;
  span.ended_ns = INT64_MAX - 1;
  timeline.spans = {span};
  timeline.calls = {{kNoName, 0, 0, 0, CallKind::launch, 3, kNoTime}};
  timeline.ranges = {{kNoName, 0, 1, 2}};
  shift_clock(timeline, 100);
  EXPECT_EQ(timeline.spans[0].submitted_ns, 105);
  EXPECT_EQ(timeline.spans[0].started_ns, 110);
  EXPECT_EQ(timeline.spans[0].ended_ns, kNoTime);
  EXPECT_EQ(timeline.spans[0].seen_ns, kNoTime);
  EXPECT_EQ(timeline.calls[0].started_ns, 103);
  EXPECT_EQ(timeline.calls[0].ended_ns, kNoTime);
  EXPECT_EQ(timeline.ranges[0].ended_ns, 102);
  shift_clock(timeline, -100);
  EXPECT_EQ(timeline.spans[0].started_ns, 10);
}

TEST(ClockAlignment, LeavesClocksThatAgree) {
  RanksTimeline ranks(2);
  for (int i = 0; i < 10; ++i) {
    ranks.add(0, uneven(i), uneven(i) + 500);
    ranks.add(1, uneven(i) + 100, uneven(i) + 500 + (i % 5 - 2) * 4 + 1);
  }
  Timeline timeline = ranks.merged();
  const auto alignment = align_clocks(timeline);
  EXPECT_FALSE(clock_of(*alignment, 1).is_shifted);
  EXPECT_EQ(clock_of(*alignment, 1).offset_ns, 1);
  EXPECT_EQ(clock_of(*alignment, 1).error_ns, 8);
  EXPECT_NE(alignment->summary.find("agree"), std::string::npos);
  apply_alignment(timeline, *alignment);
  EXPECT_EQ(timeline.spans[1].started_ns, 100);
}

TEST(ClockAlignment, SizesTellHowMuchATraceLacks) {
  RanksTimeline ranks(2);
  // The second trace began three collectives later, on another clock; the distances are all the same.
  for (int i = 0; i < 20; ++i) {
    const auto bytes = static_cast<std::uint64_t>(1024 * (1 + i * i));
    ranks.add(0, 1000 * i, 1000 * i + 500, CollectiveKind::all_reduce, bytes);
    if (i >= 3) ranks.add(1, 1000 * i + 70'000'100, 1000 * i + 70'000'500, CollectiveKind::all_reduce, bytes);
  }
  const auto alignment = align_clocks(ranks.merged());
  EXPECT_EQ(clock_of(*alignment, 1).offset_ns, 70'000'000);
  EXPECT_EQ(clock_of(*alignment, 1).matched, 17u);
  EXPECT_TRUE(clock_of(*alignment, 1).reason.empty());
}

TEST(ClockAlignment, SharedClockExplainsALateStartWithoutSizes) {
  RanksTimeline ranks(2);
  for (int i = 0; i < 20; ++i) {
    ranks.add(0, 1000 * i, 1000 * i + 500);
    if (i >= 6) ranks.add(1, 1000 * i + 100, 1000 * i + 502);
  }
  const auto alignment = align_clocks(ranks.merged());
  EXPECT_EQ(clock_of(*alignment, 1).offset_ns, 2);
  EXPECT_EQ(clock_of(*alignment, 1).matched, 14u);
}

TEST(ClockAlignment, SaysWhereSeveralShiftsFit) {
  RanksTimeline ranks(2);
  for (int i = 0; i < 20; ++i) {
    ranks.add(0, 1000 * i, 1000 * i + 500);
    if (i >= 4) ranks.add(1, 1000 * i + 900'000'100, 1000 * i + 900'000'500);
  }
  const auto alignment = align_clocks(ranks.merged());
  EXPECT_NE(clock_of(*alignment, 1).reason.find("alike"), std::string::npos);
  EXPECT_TRUE(clock_of(*alignment, 1).offset_ns);  // the most plausible
  EXPECT_FALSE(clock_of(*alignment, 1).error_ns);
  EXPECT_FALSE(alignment->is_aligned);
  EXPECT_NE(alignment->summary.find("not known"), std::string::npos);
}

TEST(ClockAlignment, SaysWhyRanksCannotBeAligned) {
  RanksTimeline ranks(3);
  for (int i = 0; i < 5; ++i) {
    ranks.add(0, 1000 * i, 1000 * i + 500);
    ranks.add(1, 1000 * i + 10, 1000 * i + 500);
    ranks.add(2, 1'700'000'000'000'000'000 + i, 1'700'000'000'000'000'001 + i, CollectiveKind::send_receive);
  }
  const auto alignment = align_clocks(ranks.merged());
  EXPECT_FALSE(alignment->is_aligned);
  EXPECT_TRUE(clock_of(*alignment, 1).offset_ns);
  EXPECT_FALSE(clock_of(*alignment, 2).offset_ns);
  EXPECT_NE(clock_of(*alignment, 2).reason.find("1700000000000000000"), std::string::npos);
  EXPECT_NE(alignment->summary.find("1 of 3"), std::string::npos);
}

TEST(ClockAlignment, GroupsOfAGridLeadFromRankToRank) {
  RanksTimeline ranks(4);  // rows {0, 1}, {2, 3}; columns {0, 2}, {1, 3}: 0 and 3 share none
  const std::int64_t offsets[] = {0, 1'000'000, 2'000'000, 3'000'000};
  for (int i = 0; i < 9; ++i) {
    for (const int rank : {0, 1, 2, 3}) {
      const std::int64_t at = offsets[rank] + uneven(i) + (rank >= 2 ? 300 : 0);
      if (rank < 2) ranks.add(rank, at, at + 100, CollectiveKind::all_reduce, 0, 1, 2);
      if (rank % 2 == 0)
        ranks.add(rank, at + 400 - (rank >= 2 ? 300 : 0), at + 500 - (rank >= 2 ? 300 : 0), CollectiveKind::all_gather,
                  0, 2, 2);
    }
    // Rank 3 shares a group of its own name with rank 2 only.
    ranks.add(2, offsets[2] + uneven(i) + 700, offsets[2] + uneven(i) + 800, CollectiveKind::reduce_scatter, 0, 1, 2);
    ranks.add(3, offsets[3] + uneven(i) + 700, offsets[3] + uneven(i) + 800, CollectiveKind::reduce_scatter, 0, 1, 2);
  }
  const auto alignment = align_clocks(ranks.merged());
  ASSERT_TRUE(alignment->is_aligned) << alignment->summary;
  for (int rank = 0; rank < 4; ++rank) EXPECT_EQ(clock_of(*alignment, rank).offset_ns, offsets[rank]) << rank;
}

TEST(ClockAlignment, TellsDrift) {
  RanksTimeline ranks(2);
  for (int i = 0; i < 200; ++i) {
    const std::int64_t at = 20'000'000LL * i;  // four seconds
    ranks.add(0, at, at + 500'000);
    ranks.add(1, at + 1'000'000'000, at + 1'000'500'000 + at / 20'000);  // 50 ppm
  }
  const auto alignment = align_clocks(ranks.merged());
  ASSERT_TRUE(clock_of(*alignment, 1).drift_ppm);
  EXPECT_NEAR(*clock_of(*alignment, 1).drift_ppm, 50, 0.5);
}

TEST(ClockAlignment, OneRecorderHasOneClock) {
  RanksTimeline ranks(2);
  for (int rank = 0; rank < 2; ++rank) ranks.add(rank, 100 + rank, 200 + 50 * rank);
  Timeline timeline = ranks.merged();
  for (TraceProcess& process : timeline.processes) process.clock = 0;
  const auto alignment = align_clocks(timeline);
  ASSERT_TRUE(alignment.has_value());
  EXPECT_TRUE(alignment->is_aligned);
  EXPECT_EQ(alignment->error_ns, 0);
  EXPECT_NE(alignment->summary.find("one clock"), std::string::npos);
  EXPECT_EQ(alignment->ranks[1].offset_ns, 0);
  EXPECT_FALSE(alignment->ranks[1].is_shifted);
}

// Ranks 0 and 1 are one capture, 2 and 3 another; only 0 and 2 have collectives in common.
TEST(ClockAlignment, RanksOfOneCaptureFollowEachOther) {
  RanksTimeline ranks(4);
  for (int i = 0; i < 20; ++i) {
    ranks.add(0, uneven(i), uneven(i) + 100, CollectiveKind::all_reduce, 64, 1);
    ranks.add(2, uneven(i) + 1'000'000, uneven(i) + 1'000'100, CollectiveKind::all_reduce, 64, 1);
  }
  ranks.add(1, 0, 10, CollectiveKind::broadcast, 0, 2);
  ranks.add(3, 1'000'000, 1'000'010, CollectiveKind::broadcast, 0, 2);
  Timeline timeline = ranks.merged();
  for (std::size_t i = 0; i < 4; ++i) timeline.processes[i].clock = i < 2 ? 0 : 1;
  const auto alignment = align_clocks(timeline);
  ASSERT_TRUE(alignment.has_value());
  EXPECT_TRUE(alignment->is_aligned);
  EXPECT_EQ(alignment->ranks[1].offset_ns, 0);
  EXPECT_EQ(alignment->ranks[2].offset_ns, 1'000'000);
  EXPECT_EQ(alignment->ranks[3].offset_ns, 1'000'000);
}

TEST(ClockAlignment, OneRankNeedsNone) {
  RanksTimeline ranks(2);
  ranks.add(0, 0, 10);
  EXPECT_FALSE(align_clocks(ranks.merged()));
  EXPECT_FALSE(align_clocks(Timeline{}));
}

TEST(ClockAlignment, FindsRandomOffsetsToWithinItsError) {
  SplitMix random(11);
  for (int round = 0; round < 60; ++round) {
    const int count = 2 + static_cast<int>(random.below(4));
    RanksTimeline ranks(count);
    std::vector<std::int64_t> offsets(static_cast<std::size_t>(count), 0);
    std::vector<int> lacks(static_cast<std::size_t>(count), 0);
    for (std::size_t r = 1; r < offsets.size(); ++r) {
      offsets[r] = static_cast<std::int64_t>(random.below(2'000'000'000)) - 1'000'000'000;
      lacks[r] = static_cast<int>(random.below(12));
    }
    std::int64_t at = 0;
    for (int i = 0; i < 80; ++i) {
      at += 50'000 + random.below(400'000);  // uneven, so that the pattern tells the shift
      for (int rank = 0; rank < count; ++rank) {
        const auto r = static_cast<std::size_t>(rank);
        if (i < lacks[r]) continue;
        const std::int64_t end = at + offsets[r] + random.below(2'000);
        ranks.add(rank, end - 5'000 - random.below(20'000), end);
      }
    }
    const auto alignment = align_clocks(ranks.merged());
    ASSERT_TRUE(alignment && alignment->is_aligned);
    for (int rank = 1; rank < count; ++rank) {
      const RankClock& clock = clock_of(*alignment, rank);
      EXPECT_LE(std::fabs(*clock.offset_ns - static_cast<double>(offsets[static_cast<std::size_t>(rank)])), 1'000);
      EXPECT_LE(*clock.error_ns, 2'000);
      EXPECT_EQ(clock.matched, static_cast<std::size_t>(80 - lacks[static_cast<std::size_t>(rank)])) << round;
    }
  }
}

TEST(CollectiveMatch, SendsAndReceivesTieTwo) {
  for (const int count : {2, 3}) {
    RanksTimeline ranks(count);
    for (int rank = 0; rank < count; ++rank)
      for (int i = 0; i < 5; ++i) ranks.add(rank, 100 * i, 100 * i + 50, CollectiveKind::send_receive);
    EXPECT_EQ(collective_sequences(ranks.merged()).size(), count == 2 ? 1u : 0u);
  }
}

TEST(CollectiveMatch, LeavesOutGroupsThatAreSeveral) {
  RanksTimeline ranks(4);  // two groups of two with one name
  for (int rank = 0; rank < 4; ++rank)
    for (int i = 0; i < 5; ++i) ranks.add(rank, 100 * i, 100 * i + 50, CollectiveKind::all_reduce, 0, 1, 2);
  EXPECT_TRUE(collective_sequences(ranks.merged()).empty());
}

}  // namespace
}  // namespace weir
