// Offsets, drift and stragglers of simulated ranks, at the size at which false answers would show.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>

#include "trace/clock_alignment.h"
#include "trace/rank_collectives.h"
#include "trace/simulated_ranks.h"

namespace weir {
namespace {

bool is_long() { return std::getenv("WEIR_LONG_TESTS") != nullptr; }

struct Count {
  int all = 0, known = 0, wrong = 0, silent = 0;
};

// Compares each rank's offset with the truth.
void judge(const SimulatedRanks& ranks, const ClockAlignment& alignment, Count& count) {
  for (const RankClock& clock : alignment.ranks) {
    if (clock.process == alignment.reference) continue;
    ++count.all;
    if (!clock.offset_ns || !clock.error_ns) {
      count.silent += clock.reason.empty() || alignment.is_aligned ? 1 : 0;
      continue;
    }
    ++count.known;
    const double truth = static_cast<double>(ranks.offsets[static_cast<std::size_t>(clock.rank)] - ranks.offsets[0]);
    const double tolerated = std::max(*clock.error_ns, alignment.error_ns) + 1'500;  // doubles of 1.7e18 are 256 apart
    count.wrong += std::fabs(*clock.offset_ns - truth) > tolerated ? 1 : 0;
  }
}

std::int64_t offset_of(SplitMix& random, std::int64_t period_ns) {
  const auto within = [&](std::int64_t most) {
    return static_cast<std::int64_t>((random.fraction() - 0.5) * 2 * static_cast<double>(most));
  };
  switch (random.below(4)) {
    case 0:
      return within(50'000'000);
    case 1:  // a multiple of the period, or a little beside it
      return period_ns * (static_cast<std::int64_t>(random.below(21)) - 10) + within(2'000);
    case 2:
      return within(20'000'000'000);
    default:
      return 1'700'000'000'000'000'000 + within(50'000'000);
  }
}

SimulatedRanks random_ranks(SplitMix& random, bool lacks_edges) {
  SimulatedRanks ranks;
  ranks.ranks = 2 + static_cast<int>(random.below(7));
  ranks.collectives = 30 + static_cast<int>(random.below(60));
  for (int rank = 0; rank < ranks.ranks; ++rank) {
    ranks.offsets.push_back(offset_of(random, ranks.period_ns));
    ranks.lacks_first.push_back(lacks_edges ? static_cast<int>(random.below(6)) : 0);
    ranks.lacks_last.push_back(lacks_edges ? static_cast<int>(random.below(6)) : 0);
  }
  return ranks;
}

TEST(ClockSimulation, NoRandomOffsetIsWrongWithoutAWarning) {
  SplitMix random(2026);
  Count count;
  const int rounds = is_long() ? 2000 : 200;
  for (int round = 0; round < rounds; ++round) {
    SimulatedRanks ranks = random_ranks(random, round % 2 == 1);
    const std::uint32_t jitters[] = {0, 500, 2'000, 5'000, 10'000, 20'000};
    ranks.arrival_jitter_ns = jitters[random.below(6)];
    ranks.mark = static_cast<MarkedBy>(random.below(6));
    const std::uint32_t noises[] = {1, 300, 3'000, 10'000};
    ranks.noise_ns = noises[random.below(4)];
    if (random.below(4) == 0) ranks.resolution_ns = 1'000;  // as Kineto wrote until 2024
    if (random.below(4) == 0) ranks.collectives = 14 + static_cast<int>(random.below(10));
    judge(ranks, *align_clocks(ranks.timeline(random)), count);
  }
  std::printf("%d offsets: %d known, %d wrong, %d unknown without a warning\n", count.all, count.known, count.wrong,
              count.silent);
  EXPECT_EQ(count.wrong, 0);
  EXPECT_EQ(count.silent, 0);
  EXPECT_GT(count.known, count.all / 2);
}

TEST(ClockSimulation, UnevenArrivalsIdentifyTheOffset) {
  SplitMix random(7);
  Count count;
  for (int round = 0; round < 100; ++round) {
    SimulatedRanks ranks = random_ranks(random, round % 2 == 1);
    ranks.arrival_jitter_ns = 20'000 + 20'000 * random.below(2);
    ranks.collectives += 10;
    // With many ranks the last of them comes at nearly the same time in each step.
    ranks.ranks = 2 + round % 3;
    const auto count_of_ranks = static_cast<std::size_t>(ranks.ranks);
    ranks.offsets.resize(count_of_ranks);
    ranks.lacks_first.resize(count_of_ranks);
    ranks.lacks_last.resize(count_of_ranks);
    judge(ranks, *align_clocks(ranks.timeline(random)), count);
  }
  std::printf("%d offsets: %d known, %d wrong\n", count.all, count.known, count.wrong);
  EXPECT_EQ(count.known, count.all);
  EXPECT_EQ(count.wrong, 0);
}

TEST(ClockSimulation, MarksIdentifyTheOffset) {
  SplitMix random(11);
  for (const MarkedBy mark :
       {MarkedBy::sizes, MarkedBy::one_size, MarkedBy::name, MarkedBy::sequence, MarkedBy::group}) {
    Count count;
    for (int round = 0; round < 40; ++round) {
      SimulatedRanks ranks = random_ranks(random, round % 2 == 1);
      ranks.arrival_jitter_ns = 0;
      ranks.mark = mark;
      judge(ranks, *align_clocks(ranks.timeline(random)), count);
    }
    EXPECT_EQ(count.known, count.all) << static_cast<int>(mark);
    EXPECT_EQ(count.wrong, 0) << static_cast<int>(mark);
  }
}

// Each rank sends as much as it has: sizes that are equal by chance decide nothing.
TEST(ClockSimulation, SizesOfUnevenExchangesDecideNothing) {
  SplitMix random(23);
  Count count;
  for (int round = 0; round < 100; ++round) {
    SimulatedRanks ranks = random_ranks(random, round % 2 == 1);
    ranks.arrival_jitter_ns = 0;
    ranks.mark = MarkedBy::uneven_sizes;
    judge(ranks, *align_clocks(ranks.timeline(random)), count);
  }
  std::printf("%d offsets: %d known, %d wrong, %d unknown without a warning\n", count.all, count.known, count.wrong,
              count.silent);
  EXPECT_EQ(count.wrong, 0);
  EXPECT_EQ(count.silent, 0);
}

TEST(ClockSimulation, StepsThatAreAllAlikeIdentifyNone) {
  SplitMix random(13);
  Count count;
  for (int round = 0; round < 100; ++round) {
    SimulatedRanks ranks = random_ranks(random, round % 2 == 1);
    ranks.arrival_jitter_ns = 0;
    const auto alignment = align_clocks(ranks.timeline(random));
    EXPECT_FALSE(alignment->is_aligned);
    EXPECT_NE(alignment->summary.find("not known"), std::string::npos) << alignment->summary;
    judge(ranks, *alignment, count);
  }
  EXPECT_EQ(count.known, 0);
  EXPECT_EQ(count.silent, 0);
}

TEST(ClockSimulation, SequenceNumbersIdentifyASmallOverlap) {
  SplitMix random(17);
  SimulatedRanks ranks;
  ranks.arrival_jitter_ns = 0;
  ranks.mark = MarkedBy::sequence;
  ranks.offsets = {0, 123'456'789};
  ranks.lacks_first = {40, 0};
  ranks.lacks_last = {0, 10};
  const auto alignment = align_clocks(ranks.timeline(random));
  EXPECT_TRUE(alignment->is_aligned) << alignment->summary;
  EXPECT_EQ(alignment->ranks[1].matched, 10u);
  EXPECT_NEAR(*alignment->ranks[1].offset_ns, 123'456'789, 3'000);
}

// Two seconds as in a usual trace; fewer and longer steps unless long tests are asked for.
SimulatedRanks drifting(SplitMix& random, double ppm) {
  SimulatedRanks ranks;
  ranks.ranks = 2 + static_cast<int>(random.below(3));
  ranks.collectives = is_long() ? 400 : 100;
  ranks.period_ns = 2'000'000'000 / ranks.collectives;
  ranks.arrival_jitter_ns = 40'000;
  ranks.early_ppm = ranks.late_ppm = random.below(2) == 0 ? ppm : -ppm;
  for (int rank = 0; rank < ranks.ranks; ++rank) ranks.offsets.push_back(offset_of(random, ranks.period_ns));
  return ranks;
}

TEST(ClockSimulation, DriftNamesNoStraggler) {
  for (const double ppm : {20.0, 50.0, 100.0}) {
    SplitMix random(static_cast<std::uint64_t>(ppm));
    int named = 0;
    double worst = 0;
    for (int round = 0; round < 100; ++round) {
      SimulatedRanks ranks = drifting(random, ppm);
      if (round % 4 == 3) ranks.late_ppm = -ranks.late_ppm / 2;  // the clock's speed changes
      Timeline timeline = ranks.timeline(random);
      const auto alignment = align_clocks(timeline);
      ASSERT_TRUE(alignment->is_aligned) << alignment->summary;
      for (const RankClock& clock : alignment->ranks) EXPECT_EQ(clock.drift_ppm.has_value(), clock.rank != 0);
      // The curve bends only at medians of neighbours, up to half of 100 ms away from where the clock's speed changed.
      const bool bends = round % 4 == 3;
      EXPECT_LT(alignment->error_ns, bends ? 15'000 : 4'000);
      apply_alignment(timeline, *alignment);
      const RankCollectives found = rank_collectives(timeline, alignment);
      EXPECT_EQ(found.matched, static_cast<std::size_t>(ranks.collectives));
      named += found.stragglers.empty() ? 0 : 1;
      // All ranks left together but for the noise.
      std::vector<std::vector<std::int64_t>> ends(static_cast<std::size_t>(ranks.ranks));
      for (const Span& span : timeline.spans)
        ends[timeline.devices[timeline.streams[span.stream].device].process].push_back(span.ended_ns);
      for (const auto& own : ends)
        for (std::size_t i = 0; i < own.size(); ++i)
          worst = std::max(worst, std::fabs(static_cast<double>(own[i] - ends[0][i])));
    }
    std::printf("%.0f ppm: stragglers named in %d of 100, ends at most %.0f ns apart\n", ppm, named, worst);
    EXPECT_EQ(named, 0);
    EXPECT_LT(worst, 50'000);
  }
}

TEST(ClockSimulation, DriftDoesNotHideAStraggler) {
  SplitMix random(3);
  int named = 0;
  for (int round = 0; round < 100; ++round) {
    SimulatedRanks ranks = drifting(random, 50);
    ranks.late_rank = round % ranks.ranks;
    Timeline timeline = ranks.timeline(random);
    const auto alignment = align_clocks(timeline);
    apply_alignment(timeline, *alignment);
    const RankCollectives found = rank_collectives(timeline, alignment);
    named += found.stragglers.size() == 1 && found.stragglers[0].rank == ranks.late_rank ? 1 : 0;
  }
  std::printf("stragglers named: %d of 100\n", named);
  EXPECT_EQ(named, 100);
}

// The offset is not known, yet all that may be differ by whole steps: who comes late in each step is known.
TEST(ClockSimulation, StragglerIsNamedWhereStepsAreAlike) {
  SplitMix random(5);
  SimulatedRanks ranks;
  ranks.arrival_jitter_ns = 0;
  ranks.late_rank = 1;
  ranks.late_percent = 100;
  ranks.offsets = {0, 40'000'000};
  Timeline timeline = ranks.timeline(random);
  const auto alignment = align_clocks(timeline);
  EXPECT_FALSE(alignment->is_aligned);
  apply_alignment(timeline, *alignment);
  const RankCollectives found = rank_collectives(timeline, alignment);
  ASSERT_EQ(found.stragglers.size(), 1u);
  EXPECT_EQ(found.stragglers[0].rank, 1);
  EXPECT_NE(found.reason.find("not known"), std::string::npos);
}

}  // namespace
}  // namespace weir
