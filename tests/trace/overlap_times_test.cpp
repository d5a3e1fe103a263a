// How iterations hid their communication, by hand and against every nanosecond of random timelines.
#include "trace/analyse/overlap_times.h"

#include <gtest/gtest.h>

#include <map>

#include "support/random_timeline.h"

namespace weir {
namespace {

TEST(OverlapTimes, TellsHiddenFromExposed) {
  Timeline timeline;
  timeline.spans = {test::command(SpanKind::kernel, 0, 0, 100),      test::command(SpanKind::collective, 1, 50, 200),
                    test::command(SpanKind::copy, 2, 150, 160),      test::command(SpanKind::collective, 3, 180, 220),
                    test::command(SpanKind::kernel, 0, 300, 340),    test::command(SpanKind::kernel, 4, 310, 330),
                    test::command(SpanKind::collective, 1, 320, 340)};
  for (std::size_t i = 4; i < timeline.spans.size(); ++i) timeline.spans[i].iteration = 7;
  timeline.collectives = {{1, CollectiveKind::all_gather}, {3, CollectiveKind::reduce_scatter}};
  const OverlapFound found = overlap_times(timeline);
  ASSERT_EQ(found.iterations.size(), 2u);
  const OverlapTimes& first = found.iterations[0];
  EXPECT_EQ(first.iteration, 0u);
  EXPECT_EQ(first.commands, 4u);
  EXPECT_EQ(first.times.span_ns, 220);
  EXPECT_EQ(first.times.busy_ns + first.times.idle_ns, first.times.span_ns);
  EXPECT_EQ(first.times.communication_ns, 170);
  EXPECT_EQ(first.collective_ns[static_cast<std::size_t>(CollectiveKind::all_gather)], 150);
  EXPECT_EQ(first.collective_ns[static_cast<std::size_t>(CollectiveKind::reduce_scatter)], 40);
  EXPECT_EQ(first.communication_sum_ns, 190);
  EXPECT_EQ(first.exposed_ns(), 170 - 50 - 10);
  EXPECT_EQ(first.hidden_ns(), 60);
  EXPECT_DOUBLE_EQ(first.efficiency().value(), 60.0 / 170);
  EXPECT_EQ(first.compute_sum_ns, 100);
  const OverlapTimes& second = found.iterations[1];
  EXPECT_EQ(second.iteration, 7u);
  EXPECT_EQ(second.times.compute_ns, 40);
  EXPECT_EQ(second.compute_sum_ns, 60);
  EXPECT_EQ(second.collective_ns[static_cast<std::size_t>(CollectiveKind::unknown)], 20);
  EXPECT_EQ(second.efficiency(), 1.0);
  EXPECT_EQ(found.whole->times.span_ns, 340);
}

TEST(OverlapTimes, WithoutCommunicationThereIsNoEfficiency) {
  Timeline timeline;
  timeline.spans = {test::command(SpanKind::kernel, 0, 0, 100)};
  timeline.spans[0].iteration = 3;
  const OverlapFound found = overlap_times(timeline);
  ASSERT_EQ(found.iterations.size(), 1u);
  EXPECT_EQ(found.iterations[0].iteration, 3u);
  EXPECT_FALSE(found.iterations[0].efficiency());
  timeline.spans = {test::command(SpanKind::host, 0, 0, 100)};
  EXPECT_FALSE(overlap_times(timeline).whole);
  EXPECT_FALSE(overlap_times(timeline).reason.empty());
}

TEST(OverlapTimes, MoreIterationsThanAReportShows) {
  Timeline timeline;
  for (std::uint32_t i = 0; i < 2 * kMaxIterations; ++i) {
    timeline.spans.push_back(test::command(SpanKind::kernel, 0, i * 10, i * 10 + 5));
    timeline.spans.back().iteration = i;
  }
  EXPECT_EQ(overlap_times(timeline).iterations.size(), 2 * kMaxIterations);
}

TEST(OverlapTimes, EqualsACountOfNanoseconds) {
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    test::RandomTimeline random(seed);
    Timeline timeline = random.timeline(30, 60);
    std::map<std::uint32_t, double> exposed, communication;
    for (std::uint32_t i = 0; i < timeline.spans.size(); ++i) {
      timeline.spans[i].iteration = static_cast<std::uint32_t>(random.below(3));
      if (timeline.spans[i].kind == SpanKind::collective)
        timeline.collectives.push_back({i, static_cast<CollectiveKind>(random.below(9))});
    }
    for (std::int64_t ns = 0; ns < test::kHorizon; ++ns) {
      const Span* first = nullptr;  // of the collectives that run: the one that began first, or else ends first
      bool hides = false;
      for (const Span& span : timeline.spans) {
        if (span.kind == SpanKind::host || !test::runs_at(span, ns)) continue;
        hides |= span.kind != SpanKind::collective;
        if (span.kind != SpanKind::collective) continue;
        if (first == nullptr ||
            std::pair(span.started_ns, span.ended_ns) < std::pair(first->started_ns, first->ended_ns))
          first = &span;
      }
      if (first == nullptr) continue;
      communication[first->iteration] += 1;
      exposed[first->iteration] += hides ? 0 : 1;
    }
    for (const OverlapTimes& found : overlap_times(timeline).iterations) {
      EXPECT_EQ(found.times.communication_ns, communication[found.iteration]) << seed;
      EXPECT_EQ(found.exposed_ns(), exposed[found.iteration]) << seed;
      EXPECT_EQ(found.times.busy_ns + found.times.idle_ns, found.times.span_ns) << seed;
      double kinds = 0;
      for (const double ns : found.collective_ns) kinds += ns;
      EXPECT_GE(kinds, found.times.communication_ns) << seed;
      EXPECT_GE(found.communication_sum_ns, kinds) << seed;
    }
  }
}

}  // namespace
}  // namespace weir
