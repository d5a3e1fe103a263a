#include "trace/analyse/queue_order.h"

#include <gtest/gtest.h>

#include <deque>

#include "kernel/random.h"

namespace weir {
namespace {

Span submitted_span(std::uint16_t stream, std::int64_t submitted, std::int64_t started, std::int32_t queue = kNoQueue) {
  Span made;
  made.stream = stream;
  made.queue = queue;
  made.submitted_ns = submitted;
  made.started_ns = started;
  made.ended_ns = started + 10;
  return made;
}

TEST(QueueOrder, WhatOvertakesIsInAnotherQueue) {
  Timeline timeline;
  // Submitted 0 (runs long), 0 again (waits for it), then 1 and 2: 1 overtakes the second of 0, 2 does not.
  timeline.spans = {submitted_span(0, 0, 5), submitted_span(0, 10, 1000), submitted_span(1, 20, 30),
                    submitted_span(2, 40, 1010)};
  const QueueOrder found = queue_order(timeline);
  ASSERT_EQ(found.pairs.size(), 3u);
  const PairOrder* const apart = found.find(1, 0);
  ASSERT_NE(apart, nullptr);
  EXPECT_EQ(apart->opportunities, 1u);
  EXPECT_EQ(apart->inversions, 1u);
  EXPECT_TRUE(apart->is_apart());
  EXPECT_EQ(found.find(0, 2)->opportunities, 1u);
  EXPECT_FALSE(found.find(0, 2)->is_apart());
  EXPECT_EQ(found.find(1, 2)->opportunities, 0u);  // stream 1 had started before
  EXPECT_EQ(found.find(0, 7), nullptr);
}

TEST(QueueOrder, CallsThatOverlapSayNothing) {
  Timeline timeline;
  timeline.spans = {submitted_span(0, 0, 1000), submitted_span(1, 20, 30)};
  timeline.spans[0].accepted_ns = 25;  // another thread's call began within this one, and may have been first
  timeline.spans[1].accepted_ns = 28;
  EXPECT_EQ(queue_order(timeline).find(0, 1)->opportunities, 0u);
  timeline.spans[0].accepted_ns = 20;
  EXPECT_EQ(queue_order(timeline).find(0, 1)->inversions, 1u);
}

TEST(QueueOrder, NothingWithinTheClocksErrorCounts) {
  Timeline timeline;
  timeline.clock_error_ns = 100;
  timeline.spans = {submitted_span(0, 0, 5000), submitted_span(1, 50, 60)};  // submitted at about the same time
  EXPECT_EQ(queue_order(timeline).find(0, 1)->opportunities, 0u);
  timeline.spans = {submitted_span(0, 0, 1090),
                    submitted_span(1, 1000, 1010)};  // started at about the same time as the other was submitted
  EXPECT_EQ(queue_order(timeline).find(0, 1)->opportunities, 0u);
  timeline.spans = {submitted_span(0, 0, 5000), submitted_span(1, 1000, 4950)};  // started at about the same time
  EXPECT_EQ(queue_order(timeline).find(0, 1)->opportunities, 1u);
  EXPECT_EQ(queue_order(timeline).find(0, 1)->inversions, 0u);
}

TEST(QueueOrder, LeavesOutWhatIsInNoQueueOfItsStream) {
  Timeline timeline;
  timeline.spans = {submitted_span(0, 0, 5000, kCopyQueues), submitted_span(1, 10, 20), submitted_span(2, 15, kNoTime),
                    submitted_span(3, 30, 40)};
  const QueueOrder found = queue_order(timeline);
  EXPECT_EQ(found.left_out, 2u);
  EXPECT_EQ(found.pairs.size(), 1u);
  timeline.spans.resize(2);
  EXPECT_TRUE(queue_order(timeline).pairs.empty());
  EXPECT_FALSE(queue_order(timeline).reason.empty());
}

// Streams on queues that launch as hardware does: the head waits for its stream, and holds up what is behind it.
Timeline play(std::uint64_t seed, std::size_t commands, int streams, int queues) {
  struct Waiting {
    std::size_t span;
    std::int64_t length;
  };
  Timeline timeline;
  std::vector<std::deque<Waiting>> queue(static_cast<std::size_t>(queues));
  for (std::size_t i = 0; i < commands; ++i) {
    const auto stream = static_cast<std::uint16_t>(random_bits(seed, 2 * i) % static_cast<unsigned>(streams));
    timeline.spans.push_back(submitted_span(stream, static_cast<std::int64_t>(10 * i), 0));
    queue[stream % static_cast<unsigned>(queues)].push_back({i, 1 + random_bits(seed, 2 * i + 1) % 200});
  }
  std::vector<std::int64_t> free_at(static_cast<std::size_t>(streams), 0);
  for (auto& waiting : queue) {
    std::int64_t now = 0;
    for (const Waiting& head : waiting) {
      Span& each = timeline.spans[head.span];
      now = std::max({now + 1, each.submitted_ns + 1, free_at[each.stream]});
      each.started_ns = now;
      each.ended_ns = free_at[each.stream] = now + head.length;
    }
  }
  return timeline;
}

TEST(QueueOrder, ProvesApartExactlyWhatIs) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    const int queues = 1 + static_cast<int>(seed % 5);
    const QueueOrder found = queue_order(play(seed, 4000, 12, queues));
    ASSERT_EQ(found.pairs.size(), 66u);
    for (const PairOrder& pair : found.pairs) {
      EXPECT_GT(pair.opportunities, 0u);
      EXPECT_EQ(pair.is_apart(), pair.a % queues != pair.b % queues) << pair.a << " " << pair.b << " of " << queues;
    }
  }
}

TEST(QueueOrder, TakesManyCommands) {
  const QueueOrder found = queue_order(play(3, 100'000, 64, 8));
  EXPECT_EQ(found.pairs.size(), 64u * 63 / 2);
}

}  // namespace
}  // namespace weir
