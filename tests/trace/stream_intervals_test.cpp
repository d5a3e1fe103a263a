#include <gtest/gtest.h>

#include "trace/analyse/queue_map.h"

namespace weir {
namespace {

Span span_on(std::uint16_t stream, std::int32_t queue, std::int64_t started, std::int64_t ended) {
  Span made;
  made.stream = stream;
  made.queue = queue;
  made.submitted_ns = 0;
  made.started_ns = started;
  made.ended_ns = ended;
  return made;
}

TEST(StreamIntervals, MergesConsecutiveCommandsOnOneQueue) {
  Timeline timeline;
  // Stream 1 goes from queue 4 to 9 and back; stream 0 stays. Given out of order.
  timeline.spans = {span_on(1, 9, 300, 400), span_on(0, 4, 0, 90),    span_on(1, 4, 0, 100),
                    span_on(1, 4, 150, 250), span_on(1, 4, 500, 600), span_on(0, 4, 100, 200)};
  const StreamIntervals found = stream_intervals(timeline);
  ASSERT_EQ(found.intervals.size(), 4u);
  EXPECT_EQ(found.intervals[0].stream, 0);
  EXPECT_EQ(found.intervals[0].from_ns, 0);
  EXPECT_EQ(found.intervals[0].to_ns, 200);
  EXPECT_EQ(found.intervals[0].commands, 2u);
  EXPECT_EQ(found.intervals[1].queue, 4);
  EXPECT_EQ(found.intervals[1].to_ns, 250);
  EXPECT_EQ(found.intervals[2].queue, 9);
  EXPECT_EQ(found.intervals[3].queue, 4);
  EXPECT_EQ(found.intervals[3].commands, 1u);
  EXPECT_EQ(found.queues_of, (std::vector<std::vector<std::int32_t>>{{4}, {4, 9}}));
  ASSERT_TRUE(found.is_fixed);
  EXPECT_FALSE(*found.is_fixed);
}

TEST(StreamIntervals, IsFixedWhereEveryStreamHasOneQueue) {
  Timeline timeline;
  timeline.spans = {span_on(0, 3, 0, 10), span_on(2, 3, 0, 10), span_on(0, 3, 20, 30), span_on(2, 3, 20, 30)};
  const StreamIntervals found = stream_intervals(timeline);
  ASSERT_TRUE(found.is_fixed);
  EXPECT_TRUE(*found.is_fixed);
  ASSERT_EQ(found.queues_of.size(), 3u);
  EXPECT_TRUE(found.queues_of[1].empty());
}

TEST(StreamIntervals, LeavesOutWhatHasNoQueueOfItsStream) {
  Timeline timeline;
  timeline.spans = {span_on(0, 3, 0, 10), span_on(0, kCopyQueues + 1, 20, 30), span_on(0, kNoQueue, 40, 50),
                    span_on(0, 3, kNoTime, kNoTime), span_on(0, 3, 60, 70)};
  const StreamIntervals found = stream_intervals(timeline);
  EXPECT_EQ(found.intervals.size(), 1u);
  EXPECT_EQ(found.on_copy_engines, 1u);
  EXPECT_EQ(found.without_queue, 2u);
  EXPECT_TRUE(*found.is_fixed);
}

TEST(StreamIntervals, SaysWhyItCannotTell) {
  Timeline timeline;
  timeline.source = "device events";
  timeline.spans = {span_on(0, kNoQueue, 0, 10)};
  EXPECT_FALSE(stream_intervals(timeline).is_fixed);
  EXPECT_NE(stream_intervals(timeline).reason.find("device events"), std::string::npos);
  timeline.spans = {span_on(0, 1, 0, 10), span_on(1, 2, 0, 10)};
  EXPECT_FALSE(stream_intervals(timeline).is_fixed);
  EXPECT_FALSE(stream_intervals(timeline).reason.empty());
}

}  // namespace
}  // namespace weir
