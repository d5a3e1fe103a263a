#include "trace/rank_collectives.h"

#include <gtest/gtest.h>

#include "trace/ranks_timeline.h"

namespace weir {
namespace {

TEST(RankCollectives, NamesWhoComesLateAndWhoWaits) {
  RanksTimeline ranks(4);
  // Rank 2 arrives 300 after the others, and all leave 100 after that.
  for (int i = 0; i < 50; ++i)
    for (int rank = 0; rank < 4; ++rank) ranks.add(rank, 1000 * i + (rank == 2 ? 300 : 10 * rank), 1000 * i + 400);
  const Timeline timeline = ranks.merged();
  const auto alignment = align_clocks(timeline);
  const RankCollectives found = rank_collectives(timeline, alignment);
  EXPECT_EQ(found.matched, 50u);
  ASSERT_TRUE(found.skew);
  EXPECT_EQ(found.skew->instances, 50u);
  EXPECT_EQ(found.skew->p50_ns, 300);
  ASSERT_EQ(found.kinds.size(), 1u);
  EXPECT_EQ(found.kinds[0].max_ns, 300);
  EXPECT_EQ(found.kinds[0].waiting_ns, 50 * (300 + 290 + 0 + 270));
  ASSERT_EQ(found.ranks.size(), 4u);
  EXPECT_EQ(found.ranks[0].waiting_ns, 50 * 300);
  EXPECT_EQ(found.ranks[0].collective_ns, 50 * 400);
  EXPECT_DOUBLE_EQ(*found.ranks[0].wait_share, 50 * 300 / 49'400.0);
  EXPECT_EQ(found.ranks[2].waiting_ns, 0);
  EXPECT_EQ(found.ranks[2].last_share, 1);
  EXPECT_EQ(found.ranks[2].behind_ns, 290);
  ASSERT_EQ(found.stragglers.size(), 1u);
  EXPECT_EQ(found.stragglers[0].rank, 2);
  EXPECT_NE(found.stragglers[0].reason.find("100 % of 50"), std::string::npos);
  ASSERT_EQ(found.worst.size(), kMaxSkewed);
  EXPECT_EQ(found.worst[0].last_rank, 2);
  EXPECT_EQ(timeline.spans[found.worst[0].last_span].started_ns, found.worst[0].last_ns);
}

TEST(RankCollectives, EqualRanksHaveNoStraggler) {
  RanksTimeline ranks(3);
  for (int i = 0; i < 60; ++i)
    for (int rank = 0; rank < 3; ++rank)
      ranks.add(rank, 1000 * i + ((i + rank) % 3) * 50, 1000 * i + 400 + (i * 7 + rank) % 5);
  const Timeline timeline = ranks.merged();
  const RankCollectives found = rank_collectives(timeline, align_clocks(timeline));
  EXPECT_EQ(found.matched, 60u);
  EXPECT_TRUE(found.stragglers.empty());
}

TEST(RankCollectives, WaitEndsWithTheCollective) {
  RanksTimeline ranks(2);
  // A broadcast's root has left when the other comes; a barrier gives the clocks.
  for (int i = 0; i < 5; ++i) {
    for (int rank = 0; rank < 2; ++rank) ranks.add(rank, 1000 * i, 1000 * i + 10, CollectiveKind::barrier);
    ranks.add(0, 1000 * i + 100, 1000 * i + 150, CollectiveKind::broadcast);
    ranks.add(1, 1000 * i + 300, 1000 * i + 350, CollectiveKind::broadcast);
  }
  const Timeline timeline = ranks.merged();
  const RankCollectives found = rank_collectives(timeline, align_clocks(timeline));
  EXPECT_EQ(found.matched, 10u);
  ASSERT_EQ(found.ranks.size(), 2u);
  EXPECT_EQ(found.ranks[0].waiting_ns, 5 * 50);
  EXPECT_EQ(found.kinds[0].kind, CollectiveKind::broadcast);
  EXPECT_EQ(found.kinds[0].p50_ns, 200);
}

TEST(RankCollectives, SaysWhyThereIsNothing) {
  RanksTimeline ranks(2);
  ranks.add(0, 0, 10);
  EXPECT_FALSE(rank_collectives(ranks.merged(), align_clocks(ranks.merged())).reason.empty());
  ranks.add(1, 0, 10, CollectiveKind::all_gather);
  const Timeline timeline = ranks.merged();
  const RankCollectives found = rank_collectives(timeline, align_clocks(timeline));
  EXPECT_EQ(found.matched, 0u);
  EXPECT_FALSE(found.skew);
  EXPECT_NE(found.reason.find("could not be aligned"), std::string::npos);
}

}  // namespace
}  // namespace weir
