#include "trace/analyse/host_stalls.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace weir {
namespace {

Span command_of(std::int64_t submitted, std::int64_t started, std::int64_t ended, std::uint32_t call = kNoCall) {
  Span made;
  made.submitted_ns = submitted;
  made.started_ns = started;
  made.ended_ns = ended;
  made.call = call;
  return made;
}

HostCall host_call(CallKind kind, std::int64_t started, std::int64_t ended, std::uint32_t thread = 1,
                   std::uint32_t name = 0) {
  return {name, thread, 0, 0, kind, started, ended};
}

TEST(HostStalls, TellsTheHostsPartOfAGapAndWhatItDid) {
  Timeline timeline;
  timeline.calls = {host_call(CallKind::launch, -10, -5), host_call(CallKind::synchronize, 50, 180),
                    host_call(CallKind::launch, 250, 260)};
  timeline.spans = {command_of(-10, 0, 100, 0), command_of(250, 300, 400, 2)};
  const HostStalls found = host_stalls(timeline);
  ASSERT_TRUE(found.launch_bound);
  const LaunchBound& bound = *found.launch_bound;
  EXPECT_EQ(bound.gaps, 1u);
  EXPECT_EQ(bound.idle_ns, 200);
  EXPECT_EQ(bound.host_gaps, 1u);
  EXPECT_EQ(bound.host_ns, 150);
  EXPECT_EQ(bound.launch_ns, 50);
  EXPECT_DOUBLE_EQ(bound.share_of_idle, 0.75);
  EXPECT_EQ(bound.synchronizing_ns, 80);  // of the call that had begun before the gap
  EXPECT_EQ(bound.in_calls_ns, 0);
  EXPECT_EQ(bound.outside_ns, 70);
  ASSERT_EQ(bound.longest.size(), 1u);
  EXPECT_EQ(bound.longest[0].span, 1u);
  EXPECT_EQ(bound.longest[0].call, 1u);
  EXPECT_EQ(bound.longest[0].call_ns, 80);
}

TEST(HostStalls, SaysFromWhichLinesTheHostWaited) {
  Timeline timeline;
  timeline.calls = {host_call(CallKind::synchronize, 0, 10), host_call(CallKind::synchronize, 20, 50),
                    host_call(CallKind::synchronize, 60, 65), host_call(CallKind::synchronize, 70, 71)};
  timeline.calls[0].line = timeline.calls[1].line = 4;
  timeline.calls[2].line = 5;
  timeline.spans = {command_of(0, 0, 100)};
  const HostStalls found = host_stalls(timeline);
  ASSERT_TRUE(found.blocked);
  const std::vector<CallSite>& sites = found.blocked->synchronize.sites;
  ASSERT_EQ(sites.size(), 3u);
  EXPECT_EQ(sites[0].line, 4u);
  EXPECT_EQ(sites[0].count, 2u);
  EXPECT_EQ(sites[0].total_ns, 40);
  EXPECT_EQ(sites[1].line, 5u);
  EXPECT_EQ(sites[2].line, kNoName) << "not known";
  double sum = 0;
  for (const CallSite& site : sites) sum += site.total_ns;
  EXPECT_EQ(sum, found.blocked->synchronize.total_ns);
}

TEST(HostStalls, SaysHowLongTheDeviceWaitedForData) {
  const std::vector<std::string> names = {"enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__", "other"};
  Timeline timeline;
  timeline.spans = {command_of(0, 100, 200), command_of(0, 500, 600), command_of(0, 700, 800)};
  timeline.ranges = {{0, 0, 0, 150},      // before the device's first command, and while that runs
                     {0, 0, 150, 450},    // idle from 200 to 450
                     {0, 0, 550, 650},    // idle from 600 to 650
                     {0, 0, 610, 630},    // of another thread, at once
                     {1, 0, 0, 10'000}};  // no data
  const HostStalls found = host_stalls(timeline, names);
  ASSERT_TRUE(found.loading);
  EXPECT_EQ(found.loading->waits, 4u);
  EXPECT_EQ(found.loading->total_ns, 450 + 100);
  EXPECT_EQ(found.loading->idle_ns, 250 + 50);
  ASSERT_FALSE(found.loading->longest.empty());
  EXPECT_EQ(found.loading->longest[0].from_ns, 150);
  EXPECT_EQ(found.loading->longest[0].idle_ns, 250);
  EXPECT_FALSE(host_stalls(timeline).loading);
  EXPECT_FALSE(host_stalls(timeline).loading_reason.empty());
}

TEST(HostStalls, TellsGapsThatBeganWithinTheCallOfTheNextCommand) {
  Timeline timeline;
  timeline.calls = {host_call(CallKind::launch, -10, -5), host_call(CallKind::launch, 90, 160),
                    host_call(CallKind::launch, 190, 195), host_call(CallKind::launch, 290, 420)};
  timeline.spans = {command_of(-10, 0, 100, 0), command_of(90, 200, 300, 1), command_of(190, 320, 330, 2),
                    command_of(290, 350, 360, 3)};
  timeline.spans[1].accepted_ns = 150;
  timeline.spans[2].accepted_ns = 195;  // the driver had it before the gap: the device's own latency
  const HostStalls found = host_stalls(timeline);
  ASSERT_TRUE(found.launch_bound);
  const LaunchBound& bound = *found.launch_bound;
  EXPECT_EQ(bound.gaps, 3u);
  EXPECT_EQ(bound.host_gaps, 0u);
  EXPECT_EQ(bound.calling_gaps, 2u);
  EXPECT_EQ(bound.calling_ns, 50 + 20);    // 100 to 150; 330 to 350, when it started within its call
  EXPECT_EQ(bound.calling_launch_ns, 50);  // 150 to 200
  // A copy that returns when the data has arrived says nothing of when the driver had it.
  timeline.calls[1].kind = CallKind::copy;
  timeline.calls[1].ended_ns = 310;
  timeline.spans[1].accepted_ns = kNoTime;
  EXPECT_EQ(host_stalls(timeline).launch_bound->calling_gaps, 1u);
}

// A launch that returned starts within microseconds; the rest of a long gap is not the host's.
TEST(HostStalls, SeparatesCommandsThatWereHeldBack) {
  constexpr std::int64_t ms = 1'000'000;
  Timeline timeline;
  timeline.calls = {host_call(CallKind::launch, -10, -5), host_call(CallKind::launch, 150, 160),
                    host_call(CallKind::launch, 170, 180), host_call(CallKind::launch, 9 * ms, 9 * ms + 40)};
  timeline.spans = {command_of(-10, 0, 100, 0), command_of(150, 5 * ms, 5 * ms + 100, 1),
                    command_of(170, 8 * ms, 8 * ms + 100, 2), command_of(9 * ms, 10 * ms, 11 * ms, 3)};
  const LaunchBound bound = host_stalls(timeline).launch_bound.value();
  EXPECT_EQ(bound.gaps, 3u);
  EXPECT_EQ(bound.held_gaps, 2u);
  EXPECT_EQ(bound.held_ns, (5 * ms - 160) + (3 * ms - 100));
  EXPECT_EQ(bound.held_most_ns, 5 * ms - 160);
  EXPECT_EQ(bound.held_span, 1u);
  EXPECT_EQ(bound.host_ns, 50 + (ms - 100));
  EXPECT_EQ(bound.launch_ns, 10 + ms);  // not more than a millisecond: the way to the device, as far as is known
  EXPECT_EQ(bound.host_ns + bound.launch_ns + bound.held_ns, bound.idle_ns);
}

TEST(HostStalls, NamesNoCallWhereTheHostWasOutside) {
  Timeline timeline;
  timeline.calls = {host_call(CallKind::other, 120, 150), host_call(CallKind::launch, 250, 260),
                    host_call(CallKind::synchronize, 0, 240, 2)};  // another thread's
  timeline.spans = {command_of(-10, 0, 100), command_of(250, 300, 400, 1)};
  const HostStalls found = host_stalls(timeline);
  EXPECT_EQ(found.launch_bound->in_calls_ns, 30);
  EXPECT_EQ(found.launch_bound->outside_ns, 120);
  EXPECT_EQ(found.launch_bound->longest.at(0).call, kNoCall);
}

TEST(HostStalls, OuterCallTakesTheTimeOfInnerOnes) {
  Timeline timeline;
  timeline.calls = {host_call(CallKind::synchronize, 100, 200), host_call(CallKind::other, 120, 150),
                    host_call(CallKind::launch, 250, 260)};
  timeline.spans = {command_of(-10, 0, 100), command_of(250, 300, 400, 2)};
  const HostStalls found = host_stalls(timeline);
  EXPECT_EQ(found.launch_bound->synchronizing_ns, 100);
  EXPECT_EQ(found.launch_bound->in_calls_ns, 0);
  EXPECT_EQ(found.launch_bound->outside_ns, 50);
}

TEST(HostStalls, DeviceBoundGapsAreNotTheHosts) {
  Timeline timeline;
  // The first gap's command was there; the second has no time of submission; the third says it came after its start.
  timeline.spans = {command_of(0, 0, 100), command_of(50, 120, 200), command_of(kNoTime, 250, 300),
                    command_of(9'000, 320, 400)};
  const HostStalls found = host_stalls(timeline);
  EXPECT_EQ(found.launch_bound->gaps, 3u);
  EXPECT_EQ(found.launch_bound->idle_ns, 90);
  EXPECT_EQ(found.launch_bound->host_gaps, 0u);
  EXPECT_EQ(found.launch_bound->host_ns, 0);
  EXPECT_EQ(found.launch_bound->unknown_gaps, 2u);
  EXPECT_EQ(found.launch_bound->unknown_ns, 70);
  EXPECT_FALSE(found.launch_bound->outside_ns);  // no calls
  EXPECT_FALSE(found.blocked);
  EXPECT_NE(found.blocked_reason.find("no calls"), std::string::npos);
}

TEST(HostStalls, SaysWhyThereIsNothing) {
  Timeline timeline;
  timeline.source = "a file";
  EXPECT_FALSE(host_stalls(timeline).launch_bound);
  EXPECT_FALSE(host_stalls(timeline).launch_bound_reason.empty());
  timeline.spans = {command_of(kNoTime, 0, 10), command_of(kNoTime, kNoTime, kNoTime)};
  EXPECT_NE(host_stalls(timeline).launch_bound_reason.find("a file"), std::string::npos);
}

TEST(HostStalls, FullQueueNeedsASlowLaunchAndABacklog) {
  Timeline timeline;
  // 40 launches of 2 us while the device runs the first command for a second; then one of 100 us with all of them
  // waiting. Later, with nothing waiting, one of 300 us.
  for (std::uint32_t i = 0; i < 41; ++i) {
    const std::int64_t at = i * 10'000;
    timeline.calls.push_back(host_call(CallKind::launch, at, at + (i == 40 ? 100'000 : 2'000)));
    timeline.spans.push_back(command_of(at, 1'000'000'000 + i, 1'000'000'001 + i, i));
  }
  timeline.calls.push_back(host_call(CallKind::synchronize, 600'000, 1'000'000'100));
  timeline.calls.push_back(host_call(CallKind::launch, 2'000'000'000, 2'000'300'000));
  timeline.spans.push_back(command_of(2'000'000'000, 2'000'400'000, 2'000'500'000, 42));
  const HostStalls found = host_stalls(timeline);
  ASSERT_TRUE(found.blocked);
  const HostBlocked& blocked = *found.blocked;
  EXPECT_EQ(blocked.launches, 42u);
  EXPECT_EQ(blocked.launch_p50_ns, 2'000);
  EXPECT_EQ(blocked.most_backlog, 40u);
  EXPECT_EQ(blocked.queue_full.count, 1u);
  EXPECT_EQ(blocked.queue_full.total_ns, 100'000);
  ASSERT_EQ(blocked.queue_full.longest.size(), 1u);
  EXPECT_EQ(blocked.queue_full.longest[0].call, 40u);
  EXPECT_EQ(blocked.queue_full.longest[0].backlog, 40u);
  EXPECT_EQ(blocked.slow.count, 1u);
  EXPECT_EQ(blocked.slow.total_ns, 300'000);
  EXPECT_EQ(blocked.synchronize.count, 1u);
  EXPECT_EQ(blocked.synchronize.total_ns, 1'000'000'100.0 - 600'000);
}

TEST(HostStalls, UsualDurationIsOfTheSameFunction) {
  Timeline timeline;
  // Ten launches of 2 us, and ten of 90 us by another function, for which that is usual.
  for (std::uint32_t i = 0; i < 20; ++i) {
    const std::int64_t at = i * 100'000;
    timeline.calls.push_back(host_call(CallKind::launch, at, at + (i < 10 ? 2'000 : 90'000), 1, i < 10 ? 0 : 1));
    timeline.spans.push_back(command_of(at, at + 95'000, at + 96'000, i));
  }
  const HostStalls found = host_stalls(timeline);
  EXPECT_EQ(found.blocked->slow.count, 0u);
  EXPECT_EQ(found.blocked->queue_full.count, 0u);
}

TEST(HostStalls, CopyThatReturnsAfterItsDataBlocks) {
  Timeline timeline;
  timeline.calls = {host_call(CallKind::copy, 0, 500), host_call(CallKind::copy, 600, 610)};
  timeline.spans = {command_of(0, 100, 490, 0), command_of(600, 700, 800, 1)};
  const HostStalls found = host_stalls(timeline);
  EXPECT_EQ(found.blocked->copies.count, 1u);
  EXPECT_EQ(found.blocked->copies.total_ns, 500);
  EXPECT_EQ(found.blocked->synchronize.count, 0u);
}

TEST(HostStalls, AgreesWithCountingMoments) {
  std::mt19937 random(3);
  for (int round = 0; round < 200; ++round) {
    Timeline timeline;
    const int count = 1 + static_cast<int>(random() % 12);
    for (int i = 0; i < count; ++i) {
      const auto start = static_cast<std::int64_t>(random() % 200);
      timeline.spans.push_back(command_of(start - static_cast<std::int64_t>(random() % 60), start,
                                          start + static_cast<std::int64_t>(random() % 20)));
    }
    // Moment by moment: idle, and the next command to start has not been asked for.
    std::int64_t first = INT64_MAX, last = INT64_MIN;
    for (const Span& span : timeline.spans) {
      first = std::min(first, span.started_ns);
      last = std::max(last, span.started_ns);
    }
    double idle = 0, host = 0;
    for (std::int64_t t = first; t < last; ++t) {
      const bool is_busy = std::any_of(timeline.spans.begin(), timeline.spans.end(),
                                       [&](const Span& s) { return s.started_ns <= t && t < s.ended_ns; });
      if (is_busy) continue;
      ++idle;
      std::int64_t next = INT64_MAX, submitted = INT64_MAX;
      for (const Span& s : timeline.spans)
        if (s.started_ns > t) next = std::min(next, s.started_ns);
      for (const Span& s : timeline.spans)
        if (s.started_ns == next) submitted = std::min(submitted, s.submitted_ns);
      host += submitted > t ? 1 : 0;
    }
    const HostStalls found = host_stalls(timeline);
    ASSERT_EQ(found.launch_bound->idle_ns, idle) << round;
    ASSERT_EQ(found.launch_bound->host_ns, host) << round;
  }
}

}  // namespace
}  // namespace weir
