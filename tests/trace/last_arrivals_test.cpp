#include <gtest/gtest.h>

#include "trace/analyse/breakdown.h"
#include "trace/analyse/exposed_causes.h"
#include "trace/analyse/slice.h"
#include "trace/rank_collectives.h"
#include "trace/ranks_timeline.h"

namespace weir {
namespace {

TEST(LastArrivals, TellWhoCameLastAndAreExposedTime) {
  RanksTimeline ranks(3);
  for (int i = 0; i < 20; ++i)
    for (int rank = 0; rank < 3; ++rank) {
      // What is no collective shifts numbers.
      Span kernel;
      kernel.started_ns = 1000 * i - 200;
      kernel.ended_ns = kernel.started_ns + 100 + 10 * rank;
      ranks.part(rank).spans.push_back(kernel);
      ranks.add(rank, 1000 * i + (rank == 1 ? 300 : 0), 1000 * i + 400);
    }
  Timeline timeline = ranks.merged();
  const auto alignment = align_clocks(timeline);
  ASSERT_TRUE(alignment);
  apply_alignment(timeline, *alignment);
  const auto arrivals = last_arrivals(timeline, slice_places(timeline), alignment);
  ASSERT_EQ(arrivals.size(), 3u);
  for (std::uint16_t device = 0; device < 3; ++device) {
    const Timeline part = slice(timeline, device);
    ASSERT_EQ(arrivals[device].size(), 20u);
    for (const LastArrival& arrival : arrivals[device]) {
      EXPECT_EQ(arrival.rank, 1);
      ASSERT_EQ(part.spans.at(arrival.span).kind, SpanKind::collective);
      EXPECT_EQ(arrival.arrived_ns - part.spans[arrival.span].started_ns, device == 1 ? 0 : 300);
    }
    const ExposedCauses found = exposed_causes(part, arrivals[device]);
    EXPECT_EQ(found.exposed_ns, breakdown(part).times->exposed_communication_ns);
    EXPECT_EQ(found.of(ExposedCause::rank_skew).total_ns, device == 1 ? 0 : 20 * 300);
  }
  EXPECT_TRUE(last_arrivals(timeline, slice_places(timeline), std::nullopt).at(0).empty());
}

}  // namespace
}  // namespace weir
