#include "trace/analyse/lane_use.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "support/random_timeline.h"
#include "trace/device_spans.h"

namespace weir {
namespace {

using test::command;

TEST(LaneUse, TellsUtilisationAndBacklog) {
  Timeline timeline;
  timeline.spans = {
      command(SpanKind::kernel, 0, 100, 200, 7, 10),   // stood there from before the first start
      command(SpanKind::kernel, 1, 200, 300, 7, 20),   //
      command(SpanKind::kernel, 0, 300, 400, 7, 150),  //
      command(SpanKind::copy, 2, 350, 500, kCopyQueues + 1), command(SpanKind::host, 3, 0, 900),
  };
  timeline.spans[2].accepted_ns = 160;
  const LaneUses found = lane_use(timeline);
  EXPECT_EQ(found.first_ns, 100);
  EXPECT_EQ(found.last_ns, 500);
  EXPECT_EQ(found.bucket_ns, 2);
  EXPECT_EQ(found.without_submit, 1u);
  EXPECT_EQ(found.without_queue, 0u);
  ASSERT_EQ(found.streams.size(), 3u);
  EXPECT_EQ(found.streams[0].commands, 2u);
  EXPECT_EQ(found.streams[0].busy_ns, 200);
  EXPECT_EQ(found.streams[0].utilisation, 0.5);
  EXPECT_EQ(found.streams[0].first_ns, 100);
  EXPECT_EQ(found.streams[0].last_ns, 400);
  EXPECT_EQ(found.streams[0].backlog->peak, 2u);
  EXPECT_EQ(found.streams[0].backlog->peak_ns, 160);
  EXPECT_FALSE(found.streams[2].backlog);
  ASSERT_EQ(found.queues.size(), 2u);
  EXPECT_EQ(found.queues[0].lane, 7);
  EXPECT_EQ(found.queues[0].busy_ns, 300);
  ASSERT_TRUE(found.queues[0].backlog);
  const Backlog& backlog = *found.queues[0].backlog;
  // Two from 100, three from 160, two from 200, one from 300 to 400.
  EXPECT_EQ(backlog.commands, 3u);
  EXPECT_EQ(backlog.peak, 3u);
  EXPECT_EQ(backlog.peak_ns, 160);
  EXPECT_DOUBLE_EQ(backlog.mean, (60 * 2 + 40 * 3 + 100 * 2 + 100) / 400.0);
  ASSERT_EQ(backlog.max_in_bucket.size(), 200u);
  EXPECT_EQ(backlog.max_in_bucket[0], 2u);
  EXPECT_EQ(backlog.max_in_bucket[30], 3u);
  EXPECT_EQ(backlog.mean_in_bucket[149], 1);
  EXPECT_EQ(backlog.max_in_bucket[150], 0u);
  EXPECT_EQ(found.queues[1].lane, kCopyQueues + 1);
  EXPECT_EQ(found.device->commands, 3u);
}

TEST(LaneUse, SaysWhyThereIsNothing) {
  Timeline timeline;
  timeline.source = "a file without calls";
  EXPECT_FALSE(lane_use(timeline).reason.empty());
  timeline.spans = {command(SpanKind::kernel, 0, 0, 10)};
  const LaneUses found = lane_use(timeline);
  EXPECT_FALSE(found.device);
  EXPECT_NE(found.reason.find("a file without calls"), std::string::npos);
  EXPECT_EQ(found.streams.size(), 1u);
  EXPECT_TRUE(found.queues.empty());
  timeline.spans = {command(SpanKind::kernel, 0, 5, 5, 0, 1)};
  EXPECT_FALSE(lane_use(timeline).device);
  EXPECT_FALSE(lane_use(timeline).reason.empty());
}

TEST(LaneUse, BoundsSeries) {
  Timeline timeline;
  timeline.spans = {command(SpanKind::kernel, 0, INT64_MIN + 1, INT64_MAX, 0, 0)};
  EXPECT_LE(lane_use(timeline).device->max_in_bucket.size(), kBacklogBuckets);
  for (std::uint16_t i = 0; i < 100; ++i) {
    timeline.spans.push_back(command(SpanKind::kernel, i, i, i + 10, i, 0));
    if (i >= 50) timeline.spans.push_back(command(SpanKind::kernel, i, i, i + 10, i, 0));
  }
  const LaneUses found = lane_use(timeline);
  ASSERT_EQ(found.streams.size(), 100u);
  EXPECT_FALSE(found.streams[99].backlog->max_in_bucket.empty());
  EXPECT_TRUE(found.streams[49].backlog->max_in_bucket.empty());
  EXPECT_EQ(found.streams[49].backlog->peak, 1u);
}

void expect_backlog(const LaneUses& uses, const std::optional<Backlog>& found, const std::vector<Span>& spans) {
  std::vector<Span> known;
  for (const Span& span : spans)
    if (span.submitted_ns != kNoTime || span.accepted_ns != kNoTime) known.push_back(span);
  ASSERT_EQ(found.has_value(), !known.empty() && uses.last_ns > uses.first_ns);
  if (!found) return;
  const auto length = static_cast<std::size_t>(uses.last_ns - uses.first_ns);
  std::vector<std::size_t> levels(length);
  for (std::size_t i = 0; i < length; ++i) {
    const std::int64_t ns = uses.first_ns + static_cast<std::int64_t>(i);
    for (const Span& span : known) {
      const std::int64_t handed = span.accepted_ns != kNoTime ? span.accepted_ns : span.submitted_ns;
      levels[i] += (handed <= ns || span.started_ns <= ns) && ns < span.ended_ns;
    }
  }
  const auto peak = std::max_element(levels.begin(), levels.end());
  EXPECT_EQ(found->peak, *peak);
  if (*peak > 0) {
    EXPECT_EQ(found->peak_ns, uses.first_ns + (peak - levels.begin()));
  }
  const auto width = static_cast<std::size_t>(uses.bucket_ns);
  ASSERT_EQ(found->max_in_bucket.size(), (length + width - 1) / width);
  double area = 0;
  for (std::size_t bucket = 0; bucket < found->max_in_bucket.size(); ++bucket) {
    const std::size_t end = std::min(length, (bucket + 1) * width);
    std::size_t largest = 0, sum = 0;
    for (std::size_t i = bucket * width; i < end; ++i) {
      largest = std::max(largest, levels[i]);
      sum += levels[i];
    }
    area += static_cast<double>(sum);
    EXPECT_EQ(found->max_in_bucket[bucket], largest);
    EXPECT_NEAR(found->mean_in_bucket[bucket], static_cast<double>(sum) / static_cast<double>(end - bucket * width),
                1e-5);
  }
  EXPECT_NEAR(found->mean, area / static_cast<double>(length), 1e-9);
}

TEST(LaneUse, AgreesWithEveryNanosecond) {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(seed);
    test::RandomTimeline random(seed);
    const Timeline timeline = random.timeline(50, 40);
    std::vector<Span> work;
    for (const Span& span : timeline.spans)
      if (is_device_work(span)) work.push_back(span);
    const LaneUses found = lane_use(timeline);
    if (work.empty()) continue;
    expect_backlog(found, found.device, work);
    const auto expect_lanes = [&](const std::vector<LaneUse>& uses, auto lane_of) {
      std::set<std::int32_t> lanes;
      for (const Span& span : work)
        if (lane_of(span) != kNoQueue) lanes.insert(lane_of(span));
      ASSERT_EQ(uses.size(), lanes.size());
      auto lane = lanes.begin();
      for (const LaneUse& use : uses) {
        ASSERT_EQ(use.lane, *lane++);
        std::vector<Span> own;
        for (const Span& span : work)
          if (lane_of(span) == use.lane) own.push_back(span);
        EXPECT_EQ(use.commands, own.size());
        double busy = 0;
        for (std::int64_t ns = 0; ns < test::kHorizon; ++ns)
          busy += std::any_of(own.begin(), own.end(), [&](const Span& span) { return test::runs_at(span, ns); });
        EXPECT_EQ(use.busy_ns, busy);
        expect_backlog(found, use.backlog, own);
      }
    };
    expect_lanes(found.streams, [](const Span& span) { return static_cast<std::int32_t>(span.stream); });
    expect_lanes(found.queues, [](const Span& span) { return span.queue; });
  }
}

}  // namespace
}  // namespace weir
