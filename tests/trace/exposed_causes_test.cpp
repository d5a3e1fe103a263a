// Why communication was exposed: one hand-made timeline for each cause, and what holds for any timeline.
#include "trace/analyse/exposed_causes.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>

#include "support/random_timeline.h"
#include "trace/analyse/breakdown.h"

namespace weir {
namespace {

constexpr std::int64_t kEarly = -1'000;

Span kernel(std::uint16_t stream, std::int64_t started, std::int64_t ended, std::int32_t queue,
            std::int64_t submitted = kEarly) {
  return test::command(SpanKind::kernel, stream, started, ended, queue, submitted);
}

Span collective(std::uint16_t stream, std::int64_t started, std::int64_t ended, std::int32_t queue,
                std::int64_t submitted = kEarly) {
  return test::command(SpanKind::collective, stream, started, ended, queue, submitted);
}

Timeline timeline_of(std::vector<Span> spans, std::vector<Dependency> dependencies = {}) {
  Timeline timeline;
  timeline.source = "made by hand";
  timeline.spans = std::move(spans);
  timeline.dependencies = std::move(dependencies);
  timeline.has_dependencies = true;
  return timeline;
}

// "dependency 60000, shallow_prefetch 40000", in the order of the causes.
std::string text_of(const ExposedCauses& found) {
  std::string text;
  for (std::size_t i = 0; i < kExposedCauses; ++i)
    if (found.causes[i].stretches > 0)
      text += (text.empty() ? "" : ", ") + std::string(to_string(static_cast<ExposedCause>(i))) + " " +
              std::to_string(static_cast<std::int64_t>(found.causes[i].total_ns));
  return text;
}

TEST(ExposedCauses, WhatComesNextNeedsTheCollective) {
  const Timeline timeline = timeline_of({collective(1, 0, 100'000, 1), kernel(0, 100'000, 200'000, 0)}, {{0, 1}});
  const ExposedCauses found = exposed_causes(timeline);
  EXPECT_EQ(text_of(found), "dependency 100000");
  EXPECT_EQ(found.exposed_ns, 100'000);
  EXPECT_TRUE(found.are_dependencies_known);
  EXPECT_TRUE(found.are_submissions_known);
  EXPECT_TRUE(found.reason.empty());
  const CauseTotal& total = found.of(ExposedCause::dependency);
  ASSERT_EQ(total.worst.size(), 1u);
  EXPECT_EQ(total.worst[0], (ExposedStretch{0, 100'000, 0, 1, 0, kNoQueue, 0}));
}

TEST(ExposedCauses, ThroughACollectiveThatWaitsOnItsStream) {
  const Timeline timeline = timeline_of(
      {collective(1, 0, 100'000, 1), collective(1, 100'000, 150'000, 1), kernel(0, 150'000, 200'000, 0)}, {{1, 2}});
  EXPECT_EQ(text_of(exposed_causes(timeline)), "dependency 150000");
}

TEST(ExposedCauses, CollectivesTakeTurns) {
  const Timeline timeline = timeline_of(
      {collective(1, 0, 100'000, 1), collective(2, 100'000, 200'000, 2), kernel(0, 200'000, 300'000, 0)}, {{1, 2}});
  EXPECT_EQ(text_of(exposed_causes(timeline)), "dependency 200000");
}

// The gather waits for the kernel that reads the buffer; its stream has been free since the gather before it ended.
Timeline prefetched(CollectiveKind kind) {
  Timeline timeline = timeline_of({kernel(0, 0, 100'000, 0), collective(1, 0, 60'000, 1),
                                   collective(1, 100'000, 200'000, 1), kernel(0, 200'000, 300'000, 0)},
                                  {{0, 2}, {2, 3}});
  timeline.collectives = {{1, kind}, {2, kind}};
  return timeline;
}

TEST(ExposedCauses, AGatherThatWaitsForItsBufferIsPrefetchedTooLate) {
  const ExposedCauses found = exposed_causes(prefetched(CollectiveKind::all_gather));
  EXPECT_EQ(text_of(found), "dependency 60000, shallow_prefetch 40000");
  const ExposedStretch worst = found.of(ExposedCause::shallow_prefetch).worst.at(0);
  EXPECT_EQ(worst, (ExposedStretch{160'000, 200'000, 2, 3, 0, kNoQueue, 0}));
}

TEST(ExposedCauses, AReductionNeedsWhatItReduces) {
  EXPECT_EQ(text_of(exposed_causes(prefetched(CollectiveKind::reduce_scatter))), "dependency 100000");
}

TEST(ExposedCauses, ReadyBehindACollectiveInItsQueue) {
  const Timeline timeline = timeline_of({collective(1, 0, 100'000, 3), kernel(2, 100'500, 200'000, 3)});
  const ExposedCauses found = exposed_causes(timeline);
  EXPECT_EQ(text_of(found), "shared_queue 100000");
  EXPECT_EQ(found.of(ExposedCause::shared_queue).worst.at(0), (ExposedStretch{0, 100'000, 0, 1, 0, 3, 0}));
}

// The queue's next command waits for the collective: the one behind it could have run.
TEST(ExposedCauses, ReadyBehindACommandThatIsNot) {
  const Timeline timeline = timeline_of(
      {collective(1, 0, 100'000, 1), kernel(0, 100'000, 150'000, 3), kernel(2, 150'000, 200'000, 3, kEarly + 1)},
      {{0, 1}});
  const ExposedCauses found = exposed_causes(timeline);
  EXPECT_EQ(text_of(found), "shared_queue 100000");
  EXPECT_EQ(found.of(ExposedCause::shared_queue).worst.at(0).blocked, 2u);
  EXPECT_EQ(found.of(ExposedCause::shared_queue).worst.at(0).queue, 3);
}

// The command in front left the queue first and started later, because its link was busy.
TEST(ExposedCauses, ReadyBehindACollectiveThatStartsLater) {
  Timeline timeline =
      timeline_of({collective(1, 0, 100'000, 3), collective(1, 100'000, 200'000, 3, kEarly + 1),
                   collective(2, 150'000, 250'000, 3, kEarly + 2), kernel(0, 102'000, 300'000, 3, kEarly + 3)},
                  {{0, 2}});
  timeline.spans[2].launched_ns = 101'000;
  timeline.spans[3].launched_ns = 101'500;
  EXPECT_EQ(text_of(exposed_causes(timeline)), "shared_queue 100000, launch_bound 2000");
}

TEST(ExposedCauses, TheHostWasLateWithTheNextCommand) {
  const Timeline timeline = timeline_of({collective(1, 0, 100'000, 1), kernel(0, 62'000, 200'000, 0, 60'000)});
  EXPECT_EQ(text_of(exposed_causes(timeline)), "launch_bound 62000");
}

TEST(ExposedCauses, TheHostWasLateWithTheCollective) {
  const Timeline timeline =
      timeline_of({kernel(0, 0, 50'000, 0), collective(1, 81'000, 181'000, 1, 80'000), kernel(0, 181'000, 300'000, 0)},
                  {{0, 1}, {1, 2}});
  const ExposedCauses found = exposed_causes(timeline);
  EXPECT_EQ(text_of(found), "dependency 70000, launch_bound 30000");
  EXPECT_EQ(found.of(ExposedCause::launch_bound).worst.at(0).blocked, 1u);
}

// Had it been submitted earlier it would have waited all the same.
TEST(ExposedCauses, ACommandThatIsSubmittedWhileItsCollectiveRunsIsNotLate) {
  const Timeline timeline =
      timeline_of({collective(1, 0, 100'000, 1), kernel(0, 100'000, 200'000, 0, 60'000)}, {{0, 1}});
  EXPECT_EQ(text_of(exposed_causes(timeline)), "dependency 100000");
}

TEST(ExposedCauses, GapsBetweenKernelsAreLaunches) {
  const Timeline timeline =
      timeline_of({collective(1, 0, 100'000, 1), kernel(0, 0, 40'000, 0), kernel(0, 44'000, 100'000, 0)});
  EXPECT_EQ(text_of(exposed_causes(timeline)), "launch_bound 4000");
}

TEST(ExposedCauses, ReadyAndAloneInItsQueue) {
  const Timeline timeline = timeline_of({collective(1, 0, 100'000, 1), kernel(0, 100'000, 200'000, 0)});
  const ExposedCauses found = exposed_causes(timeline);
  EXPECT_EQ(text_of(found), "no_room 100000");
  EXPECT_EQ(found.of(ExposedCause::no_room).worst.at(0).blocked, 1u);
}

// A large kernel leaves no room for the collective, and what follows needs that.
TEST(ExposedCauses, ACollectiveThatFoundNoRoom) {
  const Timeline timeline = timeline_of(
      {kernel(0, 0, 80'000, 0), collective(1, 80'000, 180'000, 1, 20'000), kernel(0, 180'000, 200'000, 0)}, {{1, 2}});
  EXPECT_EQ(text_of(exposed_causes(timeline)), "dependency 40000, no_room 60000");
}

TEST(ExposedCauses, UntilTheLastRankHasCome) {
  Timeline timeline = timeline_of({collective(1, 0, 100'000, 1), kernel(0, 100'000, 200'000, 0)}, {{0, 1}});
  const std::vector<LastArrival> arrivals = {{0, 70'000, 3}, {77, 1, 0}};
  EXPECT_EQ(text_of(exposed_causes(timeline, arrivals)), "dependency 30000, rank_skew 70000");
  timeline.clock_error_ns = 70'000;
  EXPECT_EQ(text_of(exposed_causes(timeline, arrivals)), "dependency 100000");
  timeline.clock_error_ns = 0;
  const std::vector<LastArrival> late = {{0, 500'000, 3}};
  EXPECT_EQ(text_of(exposed_causes(timeline, late)), "rank_skew 100000");
}

TEST(ExposedCauses, NothingFollowsInTheIteration) {
  Timeline timeline = timeline_of({kernel(0, 0, 10'000, 0), collective(1, 10'000, 50'000, 1),
                                   kernel(0, 61'000, 70'000, 0, 60'000), collective(1, 71'000, 90'000, 1, 60'000)},
                                  {{0, 1}, {2, 3}});
  timeline.spans[2].iteration = timeline.spans[3].iteration = 4;
  const ExposedCauses found = exposed_causes(timeline);
  EXPECT_EQ(text_of(found), "step_end 59000");
  EXPECT_EQ(found.of(ExposedCause::step_end).stretches, 2u);
  EXPECT_EQ(found.of(ExposedCause::step_end).worst.at(1).iteration, 4u);
  // The same iterations, as ranges of the host.
  for (Span& span : timeline.spans) span.iteration = 0;
  const std::vector<TraceRange> ranges = {{kNoName, 0, -5'000, 55'000}, {kNoName, 0, 55'000, 100'000}};
  EXPECT_EQ(text_of(exposed_causes(timeline, {}, ranges)), "step_end 59000");
  // Nobody tells them apart: the host had not submitted what came next.
  EXPECT_EQ(text_of(exposed_causes(timeline)), "launch_bound 40000, step_end 19000");
}

TEST(ExposedCauses, WhatTheSourceDoesNotTell) {
  Timeline timeline = timeline_of({collective(1, 0, 100'000, 1), kernel(0, 100'000, 200'000, 0)});
  timeline.has_dependencies = false;
  ExposedCauses found = exposed_causes(timeline);
  EXPECT_EQ(text_of(found), "unknown 100000");
  EXPECT_NE(found.reason.find("no waits"), std::string::npos);
  timeline.has_dependencies = true;
  timeline.spans[1].submitted_ns = kNoTime;
  found = exposed_causes(timeline);
  EXPECT_EQ(text_of(found), "unknown 100000");
  EXPECT_NE(found.reason.find("submitted"), std::string::npos);
  timeline.spans[1].submitted_ns = kEarly;
  timeline.spans[1].queue = kNoQueue;
  found = exposed_causes(timeline);
  EXPECT_EQ(text_of(found), "unknown 100000");
  EXPECT_NE(found.reason.find("queue"), std::string::npos);
  // The order of a stream needs no edge of its own.
  timeline.spans[1].stream = 1;
  timeline.has_dependencies = false;
  EXPECT_EQ(text_of(exposed_causes(timeline)), "dependency 100000");
}

TEST(ExposedCauses, NothingToExplain) {
  EXPECT_EQ(text_of(exposed_causes({})), "");
  const Timeline timeline = timeline_of({collective(1, 0, 10, 1), test::command(SpanKind::copy, 0, 0, 10, 0, 0)});
  EXPECT_EQ(text_of(exposed_causes(timeline)), "");
  EXPECT_EQ(exposed_causes(timeline).exposed_ns, 0);
}

TEST(ExposedCauses, EveryCauseHasWords) {
  std::set<std::string> names, meanings, advice;
  for (std::size_t i = 0; i < kExposedCauses; ++i) {
    names.insert(to_string(static_cast<ExposedCause>(i)));
    meanings.insert(meaning_of(static_cast<ExposedCause>(i)));
    advice.insert(advice_of(static_cast<ExposedCause>(i)));
  }
  EXPECT_EQ(names.size(), kExposedCauses);
  EXPECT_EQ(meanings.size(), kExposedCauses);
  EXPECT_EQ(advice.size(), kExposedCauses);
}

bool is_exposed_at(const Timeline& timeline, std::int64_t ns) {
  bool communicates = false;
  for (const Span& span : timeline.spans) {
    if (!test::runs_at(span, ns) || span.kind == SpanKind::host) continue;
    if (span.kind != SpanKind::collective) return false;
    communicates = true;
  }
  return communicates;
}

TEST(ExposedCauses, EachNanosecondHasOneCause) {
  std::array<std::size_t, kExposedCauses> seen{};
  for (std::uint64_t seed = 1; seed <= 3'000; ++seed) {
    test::RandomTimeline random(seed);
    Timeline timeline = random.timeline(24, 60);
    timeline.has_dependencies = !random.one_in(5);
    const auto count = static_cast<std::int64_t>(timeline.spans.size());
    // Any edges, backwards and in rings too.
    for (std::int64_t i = 0; i < count && timeline.has_dependencies; ++i)
      timeline.dependencies.push_back(
          {static_cast<std::uint32_t>(random.below(count)), static_cast<std::uint32_t>(random.below(count))});
    if (random.one_in(3)) timeline.clock_error_ns = static_cast<double>(random.below(12));
    std::vector<LastArrival> arrivals;
    for (std::uint32_t i = 0; i < timeline.spans.size(); ++i) {
      Span& span = timeline.spans[i];
      if (random.one_in(2)) span.iteration = static_cast<std::uint32_t>(random.below(3));
      if (span.kind != SpanKind::collective) continue;
      timeline.collectives.push_back({i, static_cast<CollectiveKind>(random.below(9))});
      if (random.one_in(3)) arrivals.push_back({i, random.below(test::kHorizon), 1});
    }
    const ExposedCauses found = exposed_causes(timeline, arrivals);
    const Breakdown whole = breakdown(timeline);
    EXPECT_EQ(found.exposed_ns, whole.times ? whole.times->exposed_communication_ns : 0) << seed;
    double sum = 0;
    for (std::size_t i = 0; i < kExposedCauses; ++i) {
      const CauseTotal& total = found.causes[i];
      EXPECT_GE(total.total_ns, static_cast<double>(total.stretches)) << seed;
      sum += total.total_ns;
      seen[i] += total.stretches;
      ASSERT_EQ(total.worst.size(), std::min(total.stretches, kMaxExposedStretches)) << seed;
      double shown = 0;
      for (const ExposedStretch& stretch : total.worst) {
        ASSERT_LT(stretch.collective, timeline.spans.size());
        EXPECT_EQ(timeline.spans[stretch.collective].kind, SpanKind::collective);
        for (std::int64_t ns = stretch.from_ns; ns < stretch.to_ns; ++ns) {
          ASSERT_TRUE(is_exposed_at(timeline, ns)) << seed;
          ASSERT_TRUE(test::runs_at(timeline.spans[stretch.collective], ns)) << seed;
        }
        shown += static_cast<double>(stretch.to_ns - stretch.from_ns);
      }
      if (total.stretches <= kMaxExposedStretches) {
        EXPECT_EQ(shown, total.total_ns) << seed;
      }
    }
    EXPECT_EQ(sum, found.exposed_ns) << seed;
    if (!timeline.has_dependencies) {
      EXPECT_EQ(found.of(ExposedCause::shared_queue).stretches, 0u);
      EXPECT_EQ(found.of(ExposedCause::no_room).stretches, 0u);
    }
    const ExposedCauses again = exposed_causes(timeline, arrivals);
    for (std::size_t i = 0; i < kExposedCauses; ++i) {
      EXPECT_EQ(again.causes[i].total_ns, found.causes[i].total_ns) << seed;
      EXPECT_EQ(again.causes[i].worst, found.causes[i].worst) << seed;
    }
  }
  // Times are too short here for more than a usual gap, so nothing finds no room.
  for (std::size_t i = 0; i < kExposedCauses; ++i)
    EXPECT_EQ(seen[i] > 0, static_cast<ExposedCause>(i) != ExposedCause::no_room)
        << to_string(static_cast<ExposedCause>(i));
}

}  // namespace
}  // namespace weir
