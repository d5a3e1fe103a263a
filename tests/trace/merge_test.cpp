#include "trace/merge.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace weir {
namespace {

// Two kernels and a copy on two streams, tied, with calls; `start` moves it.
Timeline part(int rank, std::int64_t start, const std::string& kernel) {
  Timeline made;
  made.source = "test";
  made.has_dependencies = true;
  made.names = {"launch", kernel, "group"};
  made.processes = {{rank, "rank file"}};
  made.devices = {{0, 7, "GPU 7"}};
  made.streams = {{0, 20, "stream 20"}, {0, 21, "stream 21"}};
  made.queues = {{0, 0, "queue 3"}, {kCopyQueues + 1, 0, "copy queue 0"}};
  made.calls = {{0, 1, 5, 0, CallKind::launch, start - 5, start - 3}, {0, 1, 6, 0, CallKind::copy, start, start + 1}};
  for (int i = 0; i < 3; ++i) {
    Span span;
    span.name = 1;
    span.stream = static_cast<std::uint16_t>(i == 2 ? 1 : 0);
    span.queue = i == 2 ? kCopyQueues + 1 : 0;
    span.call = i == 0 ? 0 : i == 2 ? 1 : kNoCall;
    span.started_ns = start + 100 * i;
    span.ended_ns = start + 100 * i + 50;
    made.spans.push_back(span);
  }
  made.spans[1].kind = SpanKind::collective;
  made.collectives = {{1, CollectiveKind::all_reduce, 2, 2, 64}};
  made.dependencies = {{1, 2}};
  made.ranges = {{0, 0, start, start + 300}};
  made.dropped = {{"no end", 2, "there"}};
  made.notes = {"a note"};
  return made;
}

TEST(Merge, RenumbersEverything) {
  const Timeline whole = merge({part(0, 1000, "a"), part(1, 1050, "b")});
  ASSERT_EQ(whole.spans.size(), 6u);
  for (std::size_t i = 1; i < whole.spans.size(); ++i)
    EXPECT_LE(whole.spans[i - 1].started_ns, whole.spans[i].started_ns);
  // Interleaved: a0 b0 a1 b1 a2 b2.
  const Span& second = whole.spans[1];
  EXPECT_EQ(whole.names[second.name], "b");
  EXPECT_EQ(whole.streams[second.stream].device, 1);
  EXPECT_EQ(whole.devices[1].process, 1);
  EXPECT_EQ(whole.calls[second.call].started_ns, 1045);
  EXPECT_EQ(whole.calls[second.call].process, 1);
  EXPECT_EQ(whole.names.size(), 4u);  // launch, a, group, b
  ASSERT_EQ(whole.collectives.size(), 2u);
  EXPECT_EQ(whole.collectives[0].span, 2u);
  EXPECT_EQ(whole.collectives[1].span, 3u);
  EXPECT_EQ(whole.names[whole.collectives[1].group], "group");
  ASSERT_EQ(whole.dependencies.size(), 2u);
  EXPECT_EQ(whole.dependencies[1].before, 3u);
  EXPECT_EQ(whole.dependencies[1].after, 5u);
  EXPECT_TRUE(whole.has_dependencies);
  ASSERT_EQ(whole.queues.size(), 4u);
  EXPECT_LT(whole.spans[0].queue, kCopyQueues);
  EXPECT_NE(whole.spans[0].queue, second.queue);
  EXPECT_GE(whole.spans[4].queue, kCopyQueues);
  EXPECT_NE(whole.spans[4].queue, whole.spans[5].queue);
  EXPECT_EQ(whole.queues[0].id, whole.spans[0].queue);
  EXPECT_EQ(whole.ranges[1].process, 1);
  ASSERT_EQ(whole.dropped.size(), 1u);
  EXPECT_EQ(whole.dropped[0].count, 4u);
  EXPECT_EQ(whole.notes, std::vector<std::string>{"a note"});
  EXPECT_EQ(whole.source, "test");
}

TEST(Merge, RanksThatOccurTwiceAreRenumbered) {
  const Timeline whole = merge({part(0, 0, "a"), part(1, 0, "a"), part(0, 0, "a")});
  EXPECT_EQ(whole.processes[0].rank, 0);
  EXPECT_EQ(whole.processes[1].rank, 1);
  EXPECT_EQ(whole.processes[2].rank, 2);
  ASSERT_EQ(whole.notes.size(), 2u);
  EXPECT_NE(whole.notes[1].find("rank 2"), std::string::npos);
}

TEST(Merge, WhatOnePartDoesNotKnowTheWholeDoesNot) {
  Timeline blind = part(1, 0, "a");
  blind.has_dependencies = false;
  EXPECT_FALSE(merge({part(0, 0, "a"), blind}).has_dependencies);
  Timeline empty;
  EXPECT_TRUE(merge({part(0, 0, "a"), empty}).has_dependencies);
}

TEST(Merge, GivesLanesToPartsWithout) {
  Timeline bare;
  bare.spans.resize(2);
  bare.spans[1].stream = 3;
  bare.spans[0].queue = 9;
  bare.spans[1].queue = kCopyQueues + 2;
  for (Span& span : bare.spans) span.started_ns = span.ended_ns = 5;
  const Timeline whole = merge({part(0, 0, "a"), bare});
  EXPECT_EQ(whole.processes.size(), 2u);
  EXPECT_EQ(whole.streams.size(), 6u);
  const Span& last = whole.spans[2];
  EXPECT_EQ(whole.streams[last.stream].id, 3u);
  EXPECT_GE(last.queue, kCopyQueues);
}

TEST(Merge, RefusesMoreStreamsThanATimelineHolds) {
  Timeline wide = part(0, 0, "a");
  wide.streams.resize(40'000);
  EXPECT_THROW(merge({wide, wide}), Error);
}

TEST(Merge, OneIsItself) {
  EXPECT_EQ(merge({part(3, 0, "a")}).processes[0].rank, 3);
  EXPECT_TRUE(merge({}).spans.empty());
}

TEST(Merge, ClocksOfDifferentCapturesAreDifferent) {
  std::vector<Timeline> parts(2);
  for (Timeline& part : parts) part.processes = {{0, "a", 5}, {1, "b", 5}, {2, "c", -1}};
  const Timeline whole = merge(std::move(parts));
  ASSERT_EQ(whole.processes.size(), 6U);
  EXPECT_EQ(whole.processes[0].clock, whole.processes[1].clock);
  EXPECT_EQ(whole.processes[3].clock, whole.processes[4].clock);
  EXPECT_NE(whole.processes[0].clock, whole.processes[3].clock);
  EXPECT_EQ(whole.processes[5].clock, -1);
}

}  // namespace
}  // namespace weir
