#include "trace/analyse/critical_path.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <numeric>

#include "measure/bootstrap.h"
#include "support/growth.h"

namespace weir {
namespace {

Span command_on(std::uint16_t stream, std::int64_t started, std::int64_t ended, std::uint32_t name = 0) {
  Span made;
  made.stream = stream;
  made.started_ns = started;
  made.ended_ns = ended;
  made.name = name;
  return made;
}

Span submitted_by(Span span, std::uint32_t call, std::int64_t submitted, std::int64_t accepted) {
  span.call = call;
  span.submitted_ns = submitted;
  span.accepted_ns = accepted;
  return span;
}

HostCall call_of(CallKind kind, std::int64_t started, std::int64_t ended, std::uint32_t thread = 1) {
  return {0, thread, 0, 0, kind, started, ended};
}

double spent(const CriticalPath& path, PathResource resource) { return path.ns[static_cast<std::size_t>(resource)]; }

TEST(CriticalPath, BackToBackIsAllCompute) {
  Timeline timeline;
  timeline.calls = {call_of(CallKind::launch, -20, -15), call_of(CallKind::launch, -10, -5)};
  timeline.spans = {submitted_by(command_on(0, 0, 100, 1), 0, -20, -15),
                    submitted_by(command_on(0, 100, 250, 2), 1, -10, -5)};
  const auto path = critical_path(timeline);
  ASSERT_TRUE(path);
  EXPECT_EQ(path->span_ns, 250);
  EXPECT_EQ(spent(*path, PathResource::compute), 250);
  EXPECT_DOUBLE_EQ(path->share[0], 1);
  EXPECT_EQ(path->commands, 2u);
  ASSERT_EQ(path->names.size(), 2u);
  EXPECT_EQ(path->names[0].name, 2u);
  EXPECT_EQ(path->names[0].total_ns, 150);
}

TEST(CriticalPath, LaunchBoundIsTheHosts) {
  Timeline timeline;
  timeline.calls = {call_of(CallKind::launch, -5, -2), call_of(CallKind::launch, 50, 55)};
  timeline.spans = {submitted_by(command_on(0, 0, 10), 0, -5, -2), submitted_by(command_on(0, 60, 70), 1, 50, 55)};
  const auto path = critical_path(timeline);
  EXPECT_EQ(spent(*path, PathResource::compute), 10);
  EXPECT_EQ(spent(*path, PathResource::launch), 5);
  EXPECT_EQ(spent(*path, PathResource::host), 55);
  EXPECT_EQ(path->in_calls_ns, 5);
  EXPECT_EQ(path->steps, 2u);  // the command and its call; what the host did before has no step
}

TEST(CriticalPath, SynchronizeLeadsBackToWhatItWaitedFor) {
  Timeline timeline;
  timeline.calls = {call_of(CallKind::launch, -5, -2), call_of(CallKind::synchronize, 10, 105),
                    call_of(CallKind::launch, 110, 112)};
  timeline.spans = {submitted_by(command_on(0, 0, 100), 0, -5, -2),
                    submitted_by(command_on(1, 20, 60), kNoCall, -1, -1),
                    submitted_by(command_on(0, 115, 120), 2, 110, 112)};
  const auto path = critical_path(timeline);
  EXPECT_EQ(spent(*path, PathResource::compute), 105);
  EXPECT_EQ(spent(*path, PathResource::launch), 3);
  EXPECT_EQ(spent(*path, PathResource::host), 12);
  EXPECT_EQ(path->in_calls_ns, 7);  // two of the launch, five until synchronize returned
}

TEST(CriticalPath, GoesThroughCopiesThatBlock) {
  Timeline timeline;
  // Kernel, a copy that waits for it and blocks the host, a call without length, a kernel.
  timeline.calls = {call_of(CallKind::launch, -5, -2), call_of(CallKind::copy, 10, 140),
                    call_of(CallKind::other, 150, 150), call_of(CallKind::launch, 200'000, 200'010)};
  timeline.spans = {submitted_by(command_on(0, 0, 100), 0, -5, -2),
                    submitted_by(command_on(0, 105, 130), 1, 10, kNoTime),
                    submitted_by(command_on(0, 200'020, 200'030), 3, 200'000, 200'010)};
  timeline.spans[1].kind = SpanKind::copy;
  auto path = critical_path(timeline);
  EXPECT_EQ(spent(*path, PathResource::compute), 110);
  EXPECT_EQ(spent(*path, PathResource::copy), 25);
  EXPECT_EQ(spent(*path, PathResource::waiting), 5);
  EXPECT_EQ(spent(*path, PathResource::launch), 10);
  EXPECT_EQ(spent(*path, PathResource::unknown), 0);
  // Alone on its stream, the copy leads back to its own call, and on to what the host did before.
  timeline.spans[1].stream = 1;
  path = critical_path(timeline);
  EXPECT_EQ(spent(*path, PathResource::launch), 10 + 95);
  EXPECT_EQ(spent(*path, PathResource::unknown), 0);
}

TEST(CriticalPath, WorkPassesFromThreadToThread) {
  Timeline timeline;
  // Thread 1 waits for the first command, then thread 2, silent until then, launches the second one.
  timeline.calls = {call_of(CallKind::launch, -5, -2), call_of(CallKind::synchronize, 0, 100'100),
                    call_of(CallKind::launch, 100'200, 100'210, 2)};
  timeline.spans = {submitted_by(command_on(0, 0, 100'000), 0, -5, -2),
                    submitted_by(command_on(0, 100'220, 100'300), 2, 100'200, 100'210)};
  const auto path = critical_path(timeline);
  EXPECT_EQ(spent(*path, PathResource::compute), 100'080);
  EXPECT_EQ(spent(*path, PathResource::host), 210);
  EXPECT_EQ(spent(*path, PathResource::launch), 10);
}

TEST(CriticalPath, FollowsDependenciesBetweenStreams) {
  Timeline timeline;
  timeline.spans = {command_on(0, 0, 100), command_on(1, 0, 20), command_on(1, 102, 150)};
  timeline.spans[2].kind = SpanKind::collective;
  auto path = critical_path(timeline);
  EXPECT_EQ(spent(*path, PathResource::compute), 20);
  EXPECT_EQ(spent(*path, PathResource::communication), 48);
  EXPECT_EQ(spent(*path, PathResource::waiting), 82);
  EXPECT_EQ(path->inferred_steps, 0u);  // 82 ns are no wait
  EXPECT_NE(path->known.find("not in the source"), std::string::npos);
  timeline.dependencies = {{0, 2}};
  timeline.has_dependencies = true;
  path = critical_path(timeline);
  EXPECT_EQ(spent(*path, PathResource::compute), 100);
  EXPECT_EQ(spent(*path, PathResource::waiting), 2);
  EXPECT_EQ(path->known.find("not in the source"), std::string::npos);
}

TEST(CriticalPath, InfersWaitsThatTheSourceDoesNotRecord) {
  Timeline timeline;
  timeline.calls = {call_of(CallKind::launch, -20, -15), call_of(CallKind::launch, -10, -5)};
  timeline.spans = {submitted_by(command_on(0, 0, 1'000'000), 0, -20, -15),
                    submitted_by(command_on(1, 1'003'000, 1'050'000), 1, -10, -5)};
  auto path = critical_path(timeline);
  EXPECT_EQ(path->inferred_steps, 1u);
  EXPECT_EQ(spent(*path, PathResource::compute), 1'047'000);
  EXPECT_EQ(spent(*path, PathResource::waiting), 3'000);
  EXPECT_NE(path->known.find("1 were inferred"), std::string::npos);
  // A source that records waits, and has none here, leaves the launch.
  timeline.has_dependencies = true;
  path = critical_path(timeline);
  EXPECT_EQ(path->inferred_steps, 0u);
  EXPECT_EQ(spent(*path, PathResource::launch), 1'003'000);
}

TEST(CriticalPath, AnotherStreamOnTheQueueIsInTheWay) {
  Timeline timeline;
  timeline.has_dependencies = true;
  timeline.spans = {command_on(0, 0, 100), command_on(1, 105, 150)};
  EXPECT_EQ(spent(*critical_path(timeline), PathResource::unknown), 105);
  for (Span& span : timeline.spans) span.queue = 4;
  auto path = critical_path(timeline);
  EXPECT_EQ(path->queue_steps, 1u);
  EXPECT_EQ(spent(*path, PathResource::compute), 145);
  // Not where it was submitted only afterwards.
  timeline.spans[1].submitted_ns = timeline.spans[1].accepted_ns = 103;
  path = critical_path(timeline);
  EXPECT_EQ(path->queue_steps, 0u);
  EXPECT_EQ(spent(*path, PathResource::launch), 2);
}

// Two commands of stream 0, then one of stream 1, on one queue: the third may start as soon as the second is launched,
// which waited for the first. The second is not on the path though it ran until the end.
TEST(CriticalPath, AQueueLetsTheNextPassWhenItIsLaunched) {
  Timeline timeline;
  timeline.has_dependencies = true;
  timeline.spans = {command_on(0, 0, 100'000, 1), command_on(0, 101'000, 190'000, 2),
                    command_on(1, 101'200, 201'200, 3)};
  for (Span& span : timeline.spans) {
    span.queue = 4;
    span.submitted_ns = span.accepted_ns = -10;
  }
  for (const bool is_launch_known : {false, true}) {
    if (is_launch_known)
      for (Span& span : timeline.spans) span.launched_ns = span.started_ns;
    const auto path = critical_path(timeline);
    EXPECT_EQ(path->queue_steps, 1u);
    EXPECT_EQ(path->commands, 2u);
    EXPECT_EQ(spent(*path, PathResource::compute), 200'000);
    EXPECT_EQ(spent(*path, PathResource::waiting), 1'200);
    EXPECT_EQ(spent(*path, PathResource::launch), 0);
    EXPECT_EQ(path->names.at(0).name, 1u);
  }
  // On a queue of its own the third was just late.
  timeline.spans[2].queue = 5;
  EXPECT_EQ(spent(*critical_path(timeline), PathResource::launch), 101'200);
}

// Launched, and then held because the device was full: what ended made room.
TEST(CriticalPath, WaitsForRoomWhereGapsAreExact) {
  Timeline timeline;
  timeline.has_dependencies = timeline.has_exact_gaps = true;
  timeline.spans = {command_on(0, 0, 50'000), command_on(1, 10, 80'000), command_on(2, 50'000, 120'000)};
  for (std::size_t i = 0; i < 3; ++i) {
    timeline.spans[i].queue = static_cast<std::int32_t>(i);
    timeline.spans[i].submitted_ns = timeline.spans[i].accepted_ns = timeline.spans[i].launched_ns =
        10 * static_cast<std::int64_t>(i % 2);
  }
  auto path = critical_path(timeline);
  EXPECT_EQ(spent(*path, PathResource::compute), 120'000);
  EXPECT_EQ(path->inferred_steps, 1u);
  EXPECT_NE(path->known.find("room on the device"), std::string::npos) << path->known;
  // Nothing ended: blocks of one that still runs must have.
  timeline.spans[0].ended_ns = 90'000;
  path = critical_path(timeline);
  EXPECT_EQ(spent(*path, PathResource::compute), 120'000);
  timeline.has_exact_gaps = false;
  EXPECT_EQ(spent(*critical_path(timeline), PathResource::launch), 50'000);
}

TEST(CriticalPath, WithoutCallsTheHostComesFromWhatItSaw) {
  Timeline timeline;
  timeline.spans = {command_on(0, 0, 100), command_on(0, 130, 150)};
  timeline.spans[0].submitted_ns = timeline.spans[0].accepted_ns = -3;
  timeline.spans[0].seen_ns = 110;
  timeline.spans[1].submitted_ns = 120;
  timeline.spans[1].accepted_ns = 124;
  const auto path = critical_path(timeline);
  EXPECT_EQ(spent(*path, PathResource::compute), 120);
  EXPECT_EQ(spent(*path, PathResource::launch), 6);
  EXPECT_EQ(spent(*path, PathResource::host), 24);
}

TEST(CriticalPath, TakesOddTimelines) {
  Timeline timeline;
  EXPECT_FALSE(critical_path(timeline));
  timeline.spans = {command_on(0, kNoTime, kNoTime)};
  EXPECT_FALSE(critical_path(timeline));
  timeline.spans = {command_on(0, 5, 5), command_on(0, 5, 5), command_on(1, 5, 5)};
  timeline.dependencies = {{0, 1}, {1, 0}, {2, 2}, {7, 1}};
  const auto path = critical_path(timeline);
  ASSERT_TRUE(path);
  EXPECT_EQ(path->span_ns, 0);
  timeline.spans = {command_on(0, INT64_MIN + 1, INT64_MIN + 2), command_on(0, INT64_MAX - 1, INT64_MAX)};
  EXPECT_GT(critical_path(timeline)->span_ns, 1.8e19);
}

// A schedule in which everything starts at once when it may has a path without any waiting.
TEST(CriticalPath, ExplainsAGreedyScheduleWhole) {
  SplitMix random(5);
  for (int round = 0; round < 100; ++round) {
    Timeline timeline;
    timeline.has_dependencies = true;
    const std::uint32_t count = 1 + random.below(60);
    std::vector<std::int64_t> free_at(1 + random.below(5), 0);
    for (std::uint32_t i = 0; i < count; ++i) {
      const auto stream = static_cast<std::uint16_t>(random.below(static_cast<std::uint32_t>(free_at.size())));
      std::int64_t start = free_at[stream];
      for (std::uint32_t k = random.below(3); i > 0 && k > 0; --k) {
        const std::uint32_t before = random.below(i);
        timeline.dependencies.push_back({before, i});
        start = std::max(start, timeline.spans[before].ended_ns);
      }
      free_at[stream] = start + 1 + random.below(50);
      timeline.spans.push_back(command_on(stream, start, free_at[stream], i));
    }
    const auto path = critical_path(timeline);
    ASSERT_TRUE(path);
    EXPECT_EQ(path->span_ns, *std::max_element(free_at.begin(), free_at.end()));
    ASSERT_EQ(spent(*path, PathResource::compute), path->span_ns) << round;
  }
}

// Whatever the timeline, the parts make up the whole.
TEST(CriticalPath, SharesSumToOne) {
  SplitMix random(6);
  for (int round = 0; round < 300; ++round) {
    Timeline timeline;
    const std::uint32_t count = 1 + random.below(40), calls = random.below(40);
    for (std::uint32_t i = 0; i < calls; ++i) {
      const auto at = static_cast<std::int64_t>(random.below(1000)) * 200;
      timeline.calls.push_back(
          call_of(static_cast<CallKind>(random.below(6)), at, at + random.below(100'000), random.below(3)));
    }
    std::sort(timeline.calls.begin(), timeline.calls.end(), [](const HostCall& a, const HostCall& b) {
      return a.thread != b.thread ? a.thread < b.thread : a.started_ns < b.started_ns;
    });
    for (std::uint32_t i = 0; i < count; ++i) {
      const auto at = static_cast<std::int64_t>(random.below(1000)) * 200;
      Span made =
          command_on(static_cast<std::uint16_t>(random.below(4)), at, at + random.below(30'000), random.below(5));
      made.kind = static_cast<SpanKind>(random.below(5));
      if (random.below(2) != 0) made.queue = static_cast<std::int32_t>(random.below(3));
      if (random.below(2) != 0) made.seen_ns = made.ended_ns + random.below(500);
      if (calls > 0 && random.below(2) != 0) {
        made.call = random.below(calls);
        made.submitted_ns = timeline.calls[made.call].started_ns;
      } else if (random.below(2) != 0) {
        made.submitted_ns = at - random.below(3'000);
      }
      timeline.spans.push_back(made);
    }
    for (int i = 0; i < 10; ++i) timeline.dependencies.push_back({random.below(count), random.below(count)});
    const auto path = critical_path(timeline);
    ASSERT_TRUE(path);
    ASSERT_EQ(std::accumulate(path->ns.begin(), path->ns.end(), 0.0), path->span_ns) << round;
    if (path->span_ns > 0) {
      ASSERT_NEAR(std::accumulate(path->share.begin(), path->share.end(), 0.0), 1, 1e-12);
    }
    ASSERT_LE(path->in_calls_ns, spent(*path, PathResource::host));
  }
}

// Everything submitted at once, and no calls: the path goes from one submission to the next.
TEST(CriticalPath, many_equal_times_take_linear_time) {
  if (std::getenv("WEIR_LONG_TESTS") == nullptr) GTEST_SKIP() << "compares times: set WEIR_LONG_TESTS=1";
  const auto walk = [](int count) {
    Timeline timeline;
    timeline.spans = {command_on(0, 0, 10)};
    for (int i = 1; i <= count; ++i)
      timeline.spans.push_back(
          submitted_by(command_on(static_cast<std::uint16_t>(i), 200, 300), kNoCall, 100, kNoTime));
    EXPECT_TRUE(critical_path(timeline));
  };
  EXPECT_LT(testing::growth(walk, 12'000), 9);
}

}  // namespace
}  // namespace weir
