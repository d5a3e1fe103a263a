#include "trace/analyse/queue_map.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "support/random_timeline.h"

namespace weir {
namespace {

using test::command;

TEST(QueueMap, ListsSharingAndChanges) {
  Timeline timeline;
  timeline.spans = {
      command(SpanKind::kernel, 3, 0, 10, 4),          command(SpanKind::kernel, 5, 5, 10, 4),
      command(SpanKind::kernel, 5, 20, 30, 9),         command(SpanKind::kernel, 3, 25, 30, 4),
      command(SpanKind::kernel, 5, 40, 50, 4),         command(SpanKind::kernel, 7, 40, 50, 2),
      command(SpanKind::copy, 7, 60, 70, kCopyQueues), command(SpanKind::copy, 7, 60, 70),
  };
  const QueueMap found = queue_map(timeline);
  ASSERT_EQ(found.streams.size(), 3u);
  EXPECT_EQ(found.streams[1].stream, 5);
  ASSERT_EQ(found.streams[1].queues.size(), 2u);
  EXPECT_EQ(found.streams[1].queues[0].queue, 4);
  EXPECT_EQ(found.streams[1].queues[0].commands, 2u);
  EXPECT_EQ(found.streams[1].changes, 2u);
  ASSERT_EQ(found.queues.size(), 3u);
  EXPECT_EQ(found.queues[1].queue, 4);
  EXPECT_EQ(found.queues[1].streams, (std::vector<std::uint16_t>{3, 5}));
  EXPECT_EQ(found.queues[1].commands, 4u);
  EXPECT_EQ(found.shared_queues, 1u);
  EXPECT_EQ(found.sharing_streams, 2u);
  ASSERT_EQ(found.changes.size(), 2u);
  EXPECT_EQ(found.changes[0].at_ns, 20);
  EXPECT_EQ(found.changes[0].from, 4);
  EXPECT_EQ(found.changes[0].to, 9);
  EXPECT_EQ(found.changes[1].at_ns, 40);
  ASSERT_TRUE(found.is_fixed);
  EXPECT_FALSE(*found.is_fixed);
  EXPECT_EQ(found.on_copy_engines, 1u);
  EXPECT_EQ(found.without_queue, 1u);
}

TEST(QueueMap, SaysWhyThereIsNothing) {
  Timeline timeline;
  timeline.source = "a format without queues";
  timeline.spans = {command(SpanKind::kernel, 0, 0, 10)};
  const QueueMap found = queue_map(timeline);
  EXPECT_TRUE(found.streams.empty());
  EXPECT_TRUE(found.queues.empty());
  EXPECT_NE(found.reason.find("a format without queues"), std::string::npos);
}

TEST(QueueMap, BoundsChanges) {
  Timeline timeline;
  for (std::int64_t i = 0; i < 500; ++i)
    timeline.spans.push_back(command(SpanKind::kernel, 0, i * 10, i * 10 + 5, static_cast<std::int32_t>(i % 2)));
  const QueueMap found = queue_map(timeline);
  EXPECT_EQ(found.change_count, 499u);
  ASSERT_EQ(found.changes.size(), kMaxQueueChanges);
  EXPECT_EQ(found.changes.back().at_ns, 1000);
}

TEST(QueueMap, AgreesWithCounting) {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(seed);
    test::RandomTimeline random(seed);
    const Timeline timeline = random.timeline(40, 20);
    std::map<std::pair<std::uint16_t, std::int32_t>, std::size_t> counts;
    std::map<std::int32_t, std::set<std::uint16_t>> streams_of;
    std::map<std::uint16_t, std::vector<const Span*>> by_stream;
    for (const Span& span : timeline.spans) {
      if (span.queue == kNoQueue || span.queue >= kCopyQueues || span.started_ns == kNoTime) continue;
      ++counts[{span.stream, span.queue}];
      streams_of[span.queue].insert(span.stream);
      by_stream[span.stream].push_back(&span);
    }
    std::size_t changes = 0;
    for (auto& [stream, spans] : by_stream) {
      std::stable_sort(spans.begin(), spans.end(), [](const Span* a, const Span* b) {
        return std::tie(a->started_ns, a->ended_ns) < std::tie(b->started_ns, b->ended_ns);
      });
      for (std::size_t i = 1; i < spans.size(); ++i) changes += spans[i]->queue != spans[i - 1]->queue;
    }
    const QueueMap found = queue_map(timeline);
    EXPECT_EQ(found.change_count, changes);
    std::size_t entries = 0;
    for (const StreamQueues& stream : found.streams)
      for (const QueueOfStream& queue : stream.queues) {
        EXPECT_EQ(queue.commands, (counts[{stream.stream, queue.queue}]));
        ++entries;
      }
    EXPECT_EQ(entries, counts.size());
    ASSERT_EQ(found.queues.size(), streams_of.size());
    for (const QueueStreams& queue : found.queues)
      EXPECT_EQ(std::set<std::uint16_t>(queue.streams.begin(), queue.streams.end()), streams_of[queue.queue]);
  }
}

}  // namespace
}  // namespace weir
