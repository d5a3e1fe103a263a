#include "trace/analyse/breakdown.h"

#include <gtest/gtest.h>

#include <set>

#include "support/random_timeline.h"
#include "trace/device_spans.h"

namespace weir {
namespace {

using test::command;

TEST(Breakdown, TellsWhatHidesWhat) {
  Timeline timeline;
  timeline.spans = {
      command(SpanKind::kernel, 0, 0, 100, 4),            //
      command(SpanKind::kernel, 1, 50, 120, 5),           // compute 0-120
      command(SpanKind::collective, 2, 100, 200, 5),      // 20 hidden, 80 exposed
      command(SpanKind::copy, 3, 150, 170, kCopyQueues),  // covers 20 of the exposed
      command(SpanKind::memset, 0, 300, 310, 4),          //
      command(SpanKind::copy, 3, 60, 80, kCopyQueues),    // hidden
      command(SpanKind::host, 0, 320, 900),               //
      command(SpanKind::kernel, 0, 305, 305, 4),          // no length
      command(SpanKind::kernel, 0, kNoTime, kNoTime, 9),
  };
  const Breakdown found = breakdown(timeline);
  ASSERT_TRUE(found.times) << found.reason;
  const BusyTimes& times = *found.times;
  EXPECT_EQ(times.first_ns, 0);
  EXPECT_EQ(times.last_ns, 310);
  EXPECT_EQ(times.span_ns, 310);
  EXPECT_EQ(times.busy_ns, 210);
  EXPECT_EQ(times.idle_ns, 100);
  EXPECT_EQ(times.compute_ns, 120);
  EXPECT_EQ(times.communication_ns, 100);
  EXPECT_EQ(times.copy_ns, 50);
  EXPECT_EQ(times.hidden_communication_ns, 40);
  EXPECT_EQ(times.exposed_communication_ns, 60);
  EXPECT_EQ(times.communication_beside_compute_ns, 20);
  EXPECT_EQ(times.copy_beside_compute_ns, 20);
  EXPECT_EQ(times.overlapped_ns, 50 + 20 + 20);
  EXPECT_EQ(found.commands, 7u);
  EXPECT_EQ(found.without_times, 1u);
  EXPECT_EQ(found.streams, 4u);
  EXPECT_EQ(found.queues, 2u);
  EXPECT_EQ(found.copy_queues, 1u);
  EXPECT_EQ(found.kinds[static_cast<std::size_t>(SpanKind::kernel)].commands, 3u);
  EXPECT_EQ(found.kinds[static_cast<std::size_t>(SpanKind::kernel)].sum_ns, 170);
  EXPECT_EQ(found.kinds[static_cast<std::size_t>(SpanKind::host)].sum_ns, 580);
  EXPECT_EQ(found.iteration_count, 0u);
  ASSERT_EQ(found.copies.size(), 2u);
  EXPECT_EQ(found.copies[0].kind, SpanKind::copy);
  EXPECT_EQ(found.copies[0].commands, 2u);
  EXPECT_EQ(found.copies[0].total_ns, 40);
  EXPECT_EQ(found.copies[0].alone_ns, 20) << "a collective beside it is no compute";
  EXPECT_EQ(found.copies[1].kind, SpanKind::memset);
  EXPECT_EQ(found.copies[1].alone_ns, 10);
}

TEST(Breakdown, SaysWhyThereIsNothing) {
  Timeline timeline;
  timeline.source = "an empty file";
  EXPECT_FALSE(breakdown(timeline).times);
  EXPECT_NE(breakdown(timeline).reason.find("an empty file"), std::string::npos);
  timeline.spans = {command(SpanKind::host, 0, 0, 10)};
  EXPECT_FALSE(breakdown(timeline).times);
  EXPECT_FALSE(breakdown(timeline).reason.empty());
  // One that took no time: everything is 0, and that is known.
  timeline.spans = {command(SpanKind::kernel, 0, 7, 7)};
  ASSERT_TRUE(breakdown(timeline).times);
  EXPECT_EQ(breakdown(timeline).times->busy_ns, 0);
}

TEST(Breakdown, HoldsTheLargestTimes) {
  Timeline timeline;
  timeline.spans = {command(SpanKind::kernel, 0, INT64_MIN + 1, 0), command(SpanKind::kernel, 0, 0, INT64_MAX)};
  EXPECT_EQ(breakdown(timeline).times->busy_ns, 18446744073709551615.0);
}

TEST(Breakdown, CutsByRangesOfTheHost) {
  Timeline timeline;
  timeline.names = {"ProfilerStep#7", "ProfilerStep#8", "forward", "Iteration_9", "my step 3 of"};
  timeline.ranges = {{1, 0, 100, 200}, {0, 0, 0, 100}, {2, 0, 0, 50}, {3, 0, 200, 300},  {0, 1, 0, 100},
                     {0, 0, 10, 60},   {4, 0, 0, 9},   {99, 0, 0, 9}, {0, 0, 5, kNoTime}};
  const std::vector<TraceRange> ranges = iteration_ranges(timeline, 0);
  ASSERT_EQ(ranges.size(), 3u);
  EXPECT_EQ(ranges[0].name, 0u);
  EXPECT_EQ(ranges[2].name, 3u);
  timeline.spans = {
      command(SpanKind::kernel, 0, 90, 150, kNoQueue, 80),        // submitted in the first, runs into the second
      command(SpanKind::collective, 1, 140, 220, kNoQueue, 100),  // submitted when the second begins
      command(SpanKind::kernel, 0, 190, 200),                     // started in the second
      command(SpanKind::kernel, 0, 350, 360, kNoQueue, 300),      // when the last has ended
  };
  const Breakdown found = breakdown(timeline, ranges);
  ASSERT_EQ(found.iterations.size(), 3u);
  EXPECT_EQ(found.iteration_count, 3u);
  EXPECT_EQ(found.outside_iterations, 1u);
  EXPECT_EQ(found.iterations[0].name, 0u);
  EXPECT_EQ(found.iterations[0].commands, 1u);
  EXPECT_EQ(found.iterations[0].times->busy_ns, 60);
  EXPECT_EQ(found.iterations[1].times->communication_ns, 80);
  EXPECT_EQ(found.iterations[1].times->hidden_communication_ns, 20);  // 10 of them by the first iteration's kernel
  EXPECT_FALSE(found.iterations[2].times);
}

// Kineto's ranges of consecutive steps overlap by a rounded microsecond.
TEST(Breakdown, RangesThatOverlapAreCutAtTheNext) {
  Timeline timeline;
  for (std::uint32_t i = 0; i < 6; ++i) {
    timeline.names.push_back("ProfilerStep#" + std::to_string(i));
    timeline.ranges.push_back({i, 0, 100'000 * i, 100'000 * (i + 1) + 1'000});
    timeline.spans.push_back(command(SpanKind::kernel, 0, 100'000 * i + 500, 100'000 * i + 50'000));
  }
  std::size_t overlapping = 7;
  std::vector<TraceRange> ranges = iteration_ranges(timeline, 0, &overlapping);
  ASSERT_EQ(ranges.size(), 6u);
  EXPECT_EQ(overlapping, 0u);
  for (std::uint32_t i = 0; i < 5; ++i) EXPECT_EQ(ranges[i].ended_ns, ranges[i + 1].started_ns);
  const Breakdown found = breakdown(timeline, ranges);
  EXPECT_EQ(found.iteration_count, 6u);
  for (const IterationTimes& iteration : found.iterations) EXPECT_EQ(iteration.commands, 1u);
  // Another thread marks the third a little later, and the fifth runs far into the sixth.
  timeline.ranges.push_back({2, 0, 200'500, 301'500});
  timeline.ranges[4].ended_ns = 550'000;
  ranges = iteration_ranges(timeline, 0, &overlapping);
  EXPECT_EQ(ranges.size(), 6u);
  EXPECT_EQ(overlapping, 1u);
}

TEST(Breakdown, CutsByNumbersAndBoundsTheList) {
  Timeline timeline;
  for (std::uint32_t i = 0; i < 300; ++i) {
    timeline.spans.push_back(command(SpanKind::kernel, 0, i * 10, i * 10 + 4));
    timeline.spans.back().iteration = 1000 + i;
  }
  const Breakdown found = breakdown(timeline);
  EXPECT_EQ(found.iteration_count, 300u);
  ASSERT_EQ(found.iterations.size(), kMaxIterations);
  EXPECT_EQ(found.iterations[5].number, 1005u);
  EXPECT_EQ(found.iterations[5].times->busy_ns, 4);
  EXPECT_EQ(found.outside_iterations, 0u);
}

// What the definitions say, one nanosecond at a time.
BusyTimes by_the_nanosecond(const Timeline& timeline) {
  BusyTimes times;
  for (std::int64_t ns = 0; ns < test::kHorizon; ++ns) {
    int kernels = 0, collectives = 0, copies = 0;
    for (const Span& span : timeline.spans) {
      if (!test::runs_at(span, ns)) continue;
      kernels += span.kind == SpanKind::kernel;
      collectives += span.kind == SpanKind::collective;
      copies += span.kind == SpanKind::copy || span.kind == SpanKind::memset;
    }
    times.busy_ns += kernels + collectives + copies > 0;
    times.overlapped_ns += kernels + collectives + copies > 1;
    times.compute_ns += kernels > 0;
    times.communication_ns += collectives > 0;
    times.copy_ns += copies > 0;
    times.hidden_communication_ns += collectives > 0 && kernels + copies > 0;
    times.exposed_communication_ns += collectives > 0 && kernels + copies == 0;
    times.communication_beside_compute_ns += collectives > 0 && kernels > 0;
    times.copy_beside_compute_ns += copies > 0 && kernels > 0;
  }
  return times;
}

TEST(Breakdown, AgreesWithEveryNanosecond) {
  for (std::uint64_t seed = 0; seed < 400; ++seed) {
    test::RandomTimeline random(seed);
    const Timeline timeline = random.timeline(1 + static_cast<std::int64_t>(seed % 40), 30);
    const Breakdown found = breakdown(timeline);
    std::set<std::uint16_t> streams;
    for (const Span& span : timeline.spans)
      if (is_device_work(span)) streams.insert(span.stream);
    EXPECT_EQ(found.streams, streams.size());
    if (!found.times) continue;
    const BusyTimes wanted = by_the_nanosecond(timeline);
    SCOPED_TRACE(seed);
    EXPECT_EQ(found.times->busy_ns, wanted.busy_ns);
    EXPECT_EQ(found.times->idle_ns, found.times->span_ns - wanted.busy_ns);
    EXPECT_EQ(found.times->compute_ns, wanted.compute_ns);
    EXPECT_EQ(found.times->communication_ns, wanted.communication_ns);
    EXPECT_EQ(found.times->copy_ns, wanted.copy_ns);
    EXPECT_EQ(found.times->hidden_communication_ns, wanted.hidden_communication_ns);
    EXPECT_EQ(found.times->exposed_communication_ns, wanted.exposed_communication_ns);
    EXPECT_EQ(found.times->communication_beside_compute_ns, wanted.communication_beside_compute_ns);
    EXPECT_EQ(found.times->copy_beside_compute_ns, wanted.copy_beside_compute_ns);
    EXPECT_EQ(found.times->overlapped_ns, wanted.overlapped_ns);
  }
}

// Communication that a neighbouring iteration covers is hidden, so the iterations' parts add up to the device's.
TEST(Breakdown, IterationsAddUpToTheDevice) {
  Timeline shifted;
  for (std::uint32_t i = 0; i < 5; ++i) {
    shifted.spans.push_back(command(SpanKind::kernel, 0, 1000 * i, 1000 * i + 900));
    shifted.spans.push_back(command(SpanKind::collective, 1, 1000 * i + 1100, 1000 * i + 1400));
    shifted.spans[2 * i].iteration = shifted.spans[2 * i + 1].iteration = i;
  }
  for (const IterationTimes& iteration : breakdown(shifted).iterations) {
    EXPECT_EQ(iteration.times->communication_ns, 300);
    EXPECT_EQ(iteration.times->hidden_communication_ns, iteration.number < 4 ? 300 : 0) << iteration.number;
  }
  for (std::uint64_t seed = 0; seed < 400; ++seed) {
    SCOPED_TRACE(seed);
    test::RandomTimeline random(seed);
    Timeline timeline = random.timeline(60, 50);
    for (Span& span : timeline.spans) span.iteration = static_cast<std::uint32_t>(random.below(4));
    const std::vector<TraceRange> ranges = {{0, 0, 20, 90}, {0, 0, 90, 140}, {0, 0, 150, 260}};
    for (const bool has_ranges : {false, true}) {
      const Breakdown found = breakdown(timeline, has_ranges ? std::span(ranges) : std::span<const TraceRange>());
      if (!found.times || found.iterations.empty()) continue;
      BusyTimes sum;
      for (const IterationTimes& iteration : found.iterations) {
        if (!iteration.times) continue;
        EXPECT_EQ(iteration.times->communication_ns,
                  iteration.times->hidden_communication_ns + iteration.times->exposed_communication_ns);
        sum.hidden_communication_ns += iteration.times->hidden_communication_ns;
        sum.exposed_communication_ns += iteration.times->exposed_communication_ns;
        sum.communication_beside_compute_ns += iteration.times->communication_beside_compute_ns;
        sum.copy_beside_compute_ns += iteration.times->copy_beside_compute_ns;
      }
      if (found.outside_iterations > 0) {
        EXPECT_LE(sum.hidden_communication_ns, found.times->hidden_communication_ns);
        EXPECT_LE(sum.exposed_communication_ns, found.times->exposed_communication_ns);
        continue;
      }
      EXPECT_EQ(sum.hidden_communication_ns, found.times->hidden_communication_ns);
      EXPECT_EQ(sum.exposed_communication_ns, found.times->exposed_communication_ns);
      EXPECT_EQ(sum.communication_beside_compute_ns, found.times->communication_beside_compute_ns);
      EXPECT_EQ(sum.copy_beside_compute_ns, found.times->copy_beside_compute_ns);
    }
  }
}

}  // namespace
}  // namespace weir
