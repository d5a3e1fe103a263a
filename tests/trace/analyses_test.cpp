#include <gtest/gtest.h>

#include "trace/analyse/concurrency.h"
#include "trace/analyse/queue_switch.h"
#include "trace/analyse/service.h"

namespace weir {
namespace {

Span span(std::uint16_t stream, std::int64_t submitted, std::int64_t started, std::int64_t ended,
          std::int32_t queue = 0) {
  Span made;
  made.stream = stream;
  made.queue = queue;
  made.submitted_ns = submitted;
  made.started_ns = started;
  made.ended_ns = ended;
  return made;
}

TEST(Concurrency, WeighsByTimeAndIgnoresIdleStretches) {
  Timeline timeline;
  // 0-10 one, 10-20 two, 20-30 one, then idle, 100-110 one: 50 of area over 40 busy.
  timeline.spans = {span(0, 0, 0, 20), span(1, 0, 10, 30), span(0, 0, 100, 110)};
  const auto found = concurrency_profile(timeline).all;
  ASSERT_TRUE(found);
  EXPECT_DOUBLE_EQ(found->mean, 50.0 / 40.0);
  EXPECT_EQ(found->max, 2u);
  EXPECT_DOUBLE_EQ(found->busy_ns, 40);
}

TEST(Concurrency, BackToBackIsNotAtOnce) {
  Timeline timeline;
  timeline.spans = {span(0, 0, 0, 10), span(1, 0, 10, 20)};
  EXPECT_EQ(concurrency_profile(timeline).all->max, 1u);
  EXPECT_FALSE(concurrency_profile(Timeline{}).all);
}

TEST(Concurrency, HostFunctionsDoNotCount) {
  Timeline timeline;
  timeline.spans = {span(0, 0, 0, 20), span(1, 0, 5, 15), span(2, 0, 0, 100)};
  timeline.spans[1].kind = SpanKind::copy;
  timeline.spans[2].kind = SpanKind::host;
  const auto found = concurrency_profile(timeline).all;
  ASSERT_TRUE(found);
  EXPECT_DOUBLE_EQ(found->mean, 30.0 / 20.0);
  EXPECT_EQ(found->max, 2u);
}

TEST(Fairness, ComparesStreamsWithEqualWork) {
  Timeline timeline;
  timeline.spans = {span(0, 0, 0, 100), span(1, 0, 0, 100)};
  EXPECT_DOUBLE_EQ(*fairness(timeline), 1.0);
  // Rates 1/100 and 1/300: (4/3)^2 / (2 * (1 + 1/9)) = 0.8.
  timeline.spans = {span(0, 0, 0, 100), span(1, 0, 0, 300)};
  EXPECT_NEAR(*fairness(timeline), 0.8, 1e-12);
  // A third stream with twice the commands is in a group of its own.
  timeline.spans.push_back(span(2, 0, 0, 50));
  timeline.spans.push_back(span(2, 0, 50, 900));
  EXPECT_NEAR(*fairness(timeline), 0.8, 1e-12);
  timeline.spans = {span(0, 0, 0, 100)};
  EXPECT_FALSE(fairness(timeline));
}

Timeline chain_of(int pairs, std::int64_t within, std::int64_t same, std::int64_t other) {
  Timeline timeline;
  timeline.has_exact_gaps = true;
  std::int64_t now = 0;
  const auto add = [&](std::uint16_t stream, std::int32_t queue, std::int64_t gap) {
    now += gap;
    timeline.spans.push_back(span(stream, 0, now, now + 1000, queue));
    now += 1000;
  };
  add(0, 0, 1);
  for (int i = 0; i < pairs; ++i) {
    add(0, 0, within);
    add(2, 0, same);   // another stream on queue 0
    add(1, 1, other);  // another queue
    add(0, 0, other);
  }
  return timeline;
}

TEST(QueueSwitch, SeparatesStreamAndQueue) {
  const QueueSwitch found = queue_switch(chain_of(20, 500, 800, 2500));
  ASSERT_TRUE(found.same_queue_overhead_ns && found.other_queue_overhead_ns) << found.reason;
  EXPECT_DOUBLE_EQ(*found.same_queue_overhead_ns, 300);
  EXPECT_DOUBLE_EQ(*found.other_queue_overhead_ns, 2000);
  EXPECT_EQ(found.same_stream->count, 20u);
  EXPECT_EQ(found.other_queue->count, 40u);
}

// As activity records give it: channels with any numbers, copies on channels of their engines, host functions nowhere.
TEST(QueueSwitch, ReadsChannels) {
  Timeline timeline = chain_of(20, 500, 800, 2500);
  for (Span& each : timeline.spans) each.queue = each.queue == 0 ? 13 : 9;
  timeline.source = "activity records of CUPTI 13.0";
  const QueueSwitch plain = queue_switch(timeline);
  EXPECT_DOUBLE_EQ(*plain.same_queue_overhead_ns, 300);
  EXPECT_DOUBLE_EQ(*plain.other_queue_overhead_ns, 2000);
  EXPECT_EQ(plain.other_engine, 0u);
  EXPECT_FALSE(plain.unknown_queue);

  const std::int64_t now = timeline.spans.back().ended_ns;
  timeline.spans.push_back(span(0, 0, now + 7000, now + 8000, kCopyQueues + 13));
  timeline.spans.push_back(span(1, 0, now + 9000, now + 9500, 9));
  const QueueSwitch copied = queue_switch(timeline);
  EXPECT_EQ(copied.other_engine, 2u);
  EXPECT_EQ(copied.same_stream->count, plain.same_stream->count);
  EXPECT_DOUBLE_EQ(*copied.other_queue_overhead_ns, 2000);
}

// As importers give it: copies without a queue, or on one of several engines, and host functions on streams.
TEST(QueueSwitch, ReadsSeveralEnginesAndHostFunctions) {
  Timeline timeline = chain_of(20, 500, 800, 2500);
  const QueueSwitch plain = queue_switch(timeline);
  const auto add = [&](SpanKind kind, std::int32_t queue, std::int64_t gap) {
    const std::int64_t now = timeline.spans.back().ended_ns + gap;
    timeline.spans.push_back(span(0, 0, now, now + 1000, queue));
    timeline.spans.back().kind = kind;
  };
  add(SpanKind::copy, kNoQueue, 7000);
  add(SpanKind::kernel, 0, 7000);
  add(SpanKind::copy, kCopyQueues, 7000);
  add(SpanKind::copy, kCopyQueues + 1, 7000);
  add(SpanKind::kernel, 0, 7000);
  QueueSwitch found = queue_switch(timeline);
  EXPECT_EQ(found.other_engine, 5u);
  EXPECT_EQ(found.same_stream->count, plain.same_stream->count);
  // The kernel after a host function waits for the host, whatever its queue.
  add(SpanKind::host, kNoQueue, 10);
  add(SpanKind::kernel, 0, 20);
  found = queue_switch(timeline);
  EXPECT_EQ(found.host_bound, plain.host_bound + 1);
  EXPECT_EQ(found.same_stream->count, plain.same_stream->count);
  EXPECT_FALSE(found.unknown_queue);
  // A host function that was over before the gap began is nobody's fault.
  add(SpanKind::host, kNoQueue, -900);
  timeline.spans.back().ended_ns = timeline.spans.back().started_ns + 100;
  timeline.spans.push_back(span(0, 0, timeline.spans.back().ended_ns + 1300, timeline.spans.back().ended_ns + 1400));
  EXPECT_EQ(queue_switch(timeline).same_stream->count, plain.same_stream->count + 1);
}

TEST(QueueSwitch, LeavesOutGapsThatAreTheHostsFault) {
  Timeline timeline = chain_of(20, 500, 800, 2500);
  for (Span& late : timeline.spans) late.submitted_ns = late.started_ns;
  const QueueSwitch found = queue_switch(timeline);
  EXPECT_FALSE(found.other_queue_overhead_ns);
  EXPECT_EQ(found.host_bound, timeline.spans.size() - 1);
  EXPECT_FALSE(found.reason.empty());
  // Not known is not late.
  for (Span& unknown : timeline.spans) unknown.submitted_ns = kNoTime;
  EXPECT_EQ(queue_switch(timeline).host_bound, 0u);
  EXPECT_EQ(queue_switch(timeline).unknown_submit, timeline.spans.size() - 1);
  EXPECT_NE(queue_switch(timeline).reason.find("nothing says when"), std::string::npos);
}

TEST(QueueSwitch, SaysWhyThereIsNothing) {
  EXPECT_FALSE(queue_switch(chain_of(3, 1, 1, 1)).reason.empty());
  Timeline inexact = chain_of(20, 500, 800, 2500);
  inexact.has_exact_gaps = false;
  EXPECT_FALSE(queue_switch(inexact).same_queue_overhead_ns);
  EXPECT_FALSE(queue_switch(inexact).reason.empty());
}

TEST(RoleLatency, RunsFromSubmitToEnd) {
  Timeline timeline;
  timeline.spans = {span(0, 100, 150, 400), span(0, 0, kNoTime, kNoTime)};
  EXPECT_EQ(role_latencies(timeline, 0), std::vector<double>({300}));
  EXPECT_TRUE(role_latencies(timeline, 1).empty());
}

TEST(RoleLatency, counts_what_a_command_waited_before_it_was_submitted) {
  Timeline timeline;
  timeline.spans = {span(0, 100, 150, 400)};
  timeline.spans[0].enqueued_ns = 20;
  EXPECT_EQ(role_latencies(timeline, 0), std::vector<double>({380}));
}

}  // namespace
}  // namespace weir
