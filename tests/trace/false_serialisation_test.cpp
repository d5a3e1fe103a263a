#include "trace/analyse/false_serialisation.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <tuple>

#include "support/random_timeline.h"

namespace weir {
namespace {

Span submitted_kernel(std::uint16_t stream, std::int64_t started, std::int64_t ended, std::int32_t queue,
                      std::int64_t submitted) {
  return test::command(SpanKind::kernel, stream, started, ended, queue, submitted);
}

TEST(FalseSerialisation, CountsTheTimeForWhichTheSecondWasReady) {
  Timeline timeline;
  timeline.has_dependencies = true;
  timeline.spans = {
      submitted_kernel(0, 0, 10'000, 4, -500),          // 0
      submitted_kernel(1, 10'100, 20'000, 4, 2'000),    // 1: ready for 8,000 of 0
      submitted_kernel(2, 20'000, 25'000, 4, -100),     // 2: ready for all 9,900 of 1
      submitted_kernel(0, 25'000, 26'000, 4, 24'999),   // 3: ready for 1 of 2
      submitted_kernel(3, 26'000, 27'000, 4, 26'000),   // 4: submitted when 3 had ended
      submitted_kernel(1, 60'000, 61'000, 4, 0),        // 5: much later: not back to back
      submitted_kernel(5, 0, 10'000, 9, 0),             // 6: alone on another queue
      submitted_kernel(6, 61'000, 62'000, 4, kNoTime),  // 7: nobody knows
  };
  timeline.spans[1].name = 12;
  const FalseSerialisation found = false_serialisation(timeline);
  EXPECT_TRUE(found.are_dependencies_known);
  EXPECT_EQ(found.back_to_back, 5u);
  EXPECT_EQ(found.not_ready, 1u);
  EXPECT_EQ(found.unknown, 1u);
  EXPECT_EQ(found.pairs, 3u);
  EXPECT_EQ(found.lost_ns, 8'000 + 9'900 + 1);
  ASSERT_EQ(found.worst.size(), 3u);
  EXPECT_EQ(found.worst[0].first, 1u);
  EXPECT_EQ(found.worst[0].second, 2u);
  EXPECT_EQ(found.worst[0].first_name, 12u);
  EXPECT_EQ(found.worst[0].lost_ns, 9'900);
  EXPECT_EQ(found.worst[1].gap_ns, 100);
  EXPECT_EQ(found.stream_pairs, 3u);
  EXPECT_EQ(found.by_streams[0].a, 1);
  EXPECT_EQ(found.by_streams[0].b, 2);
  EXPECT_EQ(found.by_streams[0].queue, 4);
  EXPECT_NE(found.gap_limit_origin.find("assumed"), std::string::npos);
  EXPECT_TRUE(found.reason.empty());
}

TEST(FalseSerialisation, LeavesOutWhatIsTied) {
  Timeline timeline;
  timeline.has_dependencies = true;
  // 2 follows 0 on the queue and waits for 1, which waits for 0; 3 waits for its own stream's copy.
  timeline.spans = {
      submitted_kernel(0, 0, 100, 4, 0),   test::command(SpanKind::copy, 1, 100, 110, kCopyQueues, 0),
      submitted_kernel(2, 110, 200, 4, 0), test::command(SpanKind::host, 3, 0, 200, kNoQueue, 0),
      submitted_kernel(3, 200, 300, 4, 0),
  };
  timeline.dependencies = {{1, 2}, {0, 1}};
  FalseSerialisation found = false_serialisation(timeline);
  EXPECT_EQ(found.back_to_back, 2u);
  EXPECT_EQ(found.not_ready, 2u);
  EXPECT_EQ(found.pairs, 0u);
  timeline.dependencies.clear();
  timeline.has_dependencies = false;
  found = false_serialisation(timeline);
  EXPECT_EQ(found.pairs, 1u);
  EXPECT_EQ(found.lost_ns, 100);
  EXPECT_FALSE(found.are_dependencies_known);
}

// Clocks that put the middle of a chain before its beginning's end must not make a pair of the chain's ends.
TEST(FalseSerialisation, HandsEndsOnAlongChains) {
  Timeline timeline;
  timeline.has_dependencies = true;
  timeline.spans = {submitted_kernel(0, 0, 100, 4, 0), submitted_kernel(1, 10, 20, 7, 0),
                    submitted_kernel(2, 100, 200, 4, 0)};
  timeline.dependencies = {{0, 1}, {1, 2}};
  EXPECT_EQ(false_serialisation(timeline).pairs, 0u);
  timeline.dependencies = {{1, 2}};
  EXPECT_EQ(false_serialisation(timeline).lost_ns, 80);
}

TEST(FalseSerialisation, DerivesTheLimitFromTheQueuesOwnGaps) {
  Timeline timeline;
  std::int64_t now = 0;
  for (int i = 0; i < 20; ++i, now += 4'000) timeline.spans.push_back(submitted_kernel(0, now, now + 1'000, 4, 0));
  now -= 3'000;
  timeline.spans.push_back(submitted_kernel(1, now + 6'000, now + 7'000, 4, 0));
  timeline.spans.push_back(submitted_kernel(2, now + 13'001, now + 14'000, 4, 0));
  const FalseSerialisation found = false_serialisation(timeline);
  EXPECT_EQ(found.gap_limit_ns, 6'000);
  EXPECT_EQ(found.back_to_back, 1u);
  EXPECT_EQ(found.pairs, 1u);
  EXPECT_NE(found.gap_limit_origin.find("3.00 us, 19 gaps"), std::string::npos) << found.gap_limit_origin;
}

TEST(FalseSerialisation, SaysWhyThereIsNothing) {
  Timeline timeline;
  timeline.source = "a format without queues";
  EXPECT_FALSE(false_serialisation(timeline).reason.empty());
  timeline.spans = {submitted_kernel(0, 0, 10, kNoQueue, 0), submitted_kernel(1, 10, 20, kNoQueue, 0),
                    submitted_kernel(1, 10, 20, kCopyQueues, 0)};
  EXPECT_NE(false_serialisation(timeline).reason.find("a format without queues"), std::string::npos);
  timeline.spans = {submitted_kernel(0, 0, 10, 1, 0), submitted_kernel(1, 5, 20, 1, 0)};
  EXPECT_TRUE(false_serialisation(timeline).reason.empty());  // they overlap: it is known that there is nothing
  EXPECT_EQ(false_serialisation(timeline).pairs, 0u);
  timeline.spans = {submitted_kernel(0, 0, 10, 1, 0), submitted_kernel(1, 10, 20, 1, kNoTime)};
  EXPECT_NE(false_serialisation(timeline).reason.find("became ready"), std::string::npos);
}

// Two streams on one queue, the first one's commands queued first: its second is not ready and stops the other
// stream's, which overlaps with both. Nothing ran back to back.
TEST(FalseSerialisation, FindsWhatStandsBehindACommandThatIsNotReady) {
  Timeline timeline;
  timeline.has_dependencies = true;
  timeline.spans = {
      submitted_kernel(0, 0, 1'000, 4, 0),
      submitted_kernel(0, 1'000, 2'000, 4, 1),
      submitted_kernel(1, 1'010, 2'010, 4, 2),
      submitted_kernel(1, 2'010, 3'010, 4, 3),
  };
  FalseSerialisation found = false_serialisation(timeline);
  EXPECT_EQ(found.pairs, 0u);
  EXPECT_EQ(found.behind, 1u);
  EXPECT_EQ(found.behind_ns, 998);
  EXPECT_EQ(found.wall_ns, 998);
  ASSERT_EQ(found.worst.size(), 1u);
  EXPECT_TRUE(found.worst[0].is_behind);
  EXPECT_EQ(found.worst[0].first, 1u);
  EXPECT_EQ(found.worst[0].second, 2u);
  ASSERT_EQ(found.by_streams.size(), 1u);
  EXPECT_EQ(found.by_streams[0].lost_ns, 998);
  // On queues of their own they would have started together.
  for (Span& span : timeline.spans) span.queue = span.stream;
  found = false_serialisation(timeline);
  EXPECT_EQ(found.behind, 0u);
  EXPECT_TRUE(found.reason.empty());
  // What the second stream waits for by an event is no loss.
  for (Span& span : timeline.spans) span.queue = 4;
  timeline.dependencies = {{0, 2}};
  EXPECT_EQ(false_serialisation(timeline).behind, 0u);
}

TEST(FalseSerialisation, CountsTheTimeOfManyThatWaitAtOnceOnce) {
  Timeline timeline;
  timeline.spans = {submitted_kernel(0, 0, 1'000, 4, 0), submitted_kernel(0, 1'000, 2'000, 4, 0)};
  for (std::uint16_t stream = 1; stream < 5; ++stream)
    timeline.spans.push_back(submitted_kernel(stream, 1'000, 2'000, 4, 0));
  const FalseSerialisation found = false_serialisation(timeline);
  EXPECT_EQ(found.behind, 4u);
  EXPECT_EQ(found.behind_ns, 4'000);
  EXPECT_EQ(found.wall_ns, 1'000);
}

TEST(FalseSerialisation, StandsDependenciesThatMakeNoSense) {
  Timeline timeline;
  timeline.spans = {submitted_kernel(0, 0, 100, 1, 0), submitted_kernel(1, 100, 200, 1, 0),
                    submitted_kernel(2, 0, kNoTime, 1, 0)};
  timeline.dependencies = {{1, 0}, {0, 0}, {7, 1}, {1, 9}};
  EXPECT_EQ(false_serialisation(timeline).lost_ns, 100);
  timeline.dependencies = {{2, 1}};  // on a command whose end is not known
  EXPECT_EQ(false_serialisation(timeline).unknown, 1u);
}

TEST(FalseSerialisation, BoundsLists) {
  Timeline timeline;
  for (std::uint16_t i = 0; i < 100; ++i) timeline.spans.push_back(submitted_kernel(i, i * 10, i * 10 + 10, 1, -1));
  const FalseSerialisation found = false_serialisation(timeline);
  EXPECT_EQ(found.pairs, 99u);
  EXPECT_EQ(found.worst.size(), kMaxSerialisedPairs);
  EXPECT_EQ(found.by_streams.size(), kMaxSerialisedStreams);
  EXPECT_EQ(found.stream_pairs, 99u);
}

// Everything that must have ended before a command, by searching all chains.
struct Closure {
  std::vector<std::uint32_t> order;      // timed spans by start, end, index
  std::vector<std::vector<bool>> comes;  // [a][b]: a before b, places in order

  explicit Closure(const Timeline& timeline) {
    for (std::uint32_t i = 0; i < timeline.spans.size(); ++i)
      if (timeline.spans[i].started_ns != kNoTime) order.push_back(i);
    std::sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
      const Span &first = timeline.spans[a], &second = timeline.spans[b];
      return std::tie(first.started_ns, first.ended_ns, a) < std::tie(second.started_ns, second.ended_ns, b);
    });
    const std::size_t count = order.size();
    comes.assign(count, std::vector<bool>(count));
    for (std::size_t a = 0; a < count; ++a)
      for (std::size_t b = a + 1; b < count; ++b) {
        comes[a][b] = timeline.spans[order[a]].stream == timeline.spans[order[b]].stream;
        for (const Dependency& edge : timeline.dependencies)
          if (edge.before == order[a] && edge.after == order[b]) comes[a][b] = true;
      }
    for (std::size_t k = 0; k < count; ++k)
      for (std::size_t a = 0; a < count; ++a)
        for (std::size_t b = 0; b < count; ++b)
          if (comes[a][k] && comes[k][b]) comes[a][b] = true;
  }
};

TEST(FalseSerialisation, AgreesWithSearchingAllChains) {
  std::size_t pairs_seen = 0, behind_seen = 0, left_first_seen = 0, tied_seen = 0;
  for (std::uint64_t seed = 0; seed < 400; ++seed) {
    SCOPED_TRACE(seed);
    test::RandomTimeline random(seed);
    Timeline timeline = random.timeline(40, 12);
    timeline.has_dependencies = true;
    const Closure plain(timeline);
    if (plain.order.size() > 1)
      for (std::int64_t i = random.below(8); i > 0; --i) {
        const auto a = static_cast<std::size_t>(random.below(static_cast<std::int64_t>(plain.order.size()) - 1));
        const auto b =
            a + 1 + static_cast<std::size_t>(random.below(static_cast<std::int64_t>(plain.order.size() - a - 1)));
        timeline.dependencies.push_back({plain.order[a], plain.order[b]});
      }
    const Closure closure(timeline);
    const FalseSerialisation found = false_serialisation(timeline);
    double lost = 0, worst = 0;
    std::size_t pairs = 0, back_to_back = 0, unknown = 0;
    std::map<std::tuple<std::uint16_t, std::uint16_t, std::int32_t>, double> by_streams;
    for (std::size_t b = 0; b < closure.order.size(); ++b) {
      const Span& second = timeline.spans[closure.order[b]];
      if (second.kind == SpanKind::host || second.queue == kNoQueue || second.queue >= kCopyQueues) continue;
      const Span* first = nullptr;
      for (std::size_t a = 0; a < b; ++a) {
        const Span& other = timeline.spans[closure.order[a]];
        if (other.kind == SpanKind::host || other.queue != second.queue) continue;
        if (first == nullptr || other.ended_ns >= first->ended_ns) first = &other;
      }
      if (first == nullptr || first->stream == second.stream || second.started_ns < first->ended_ns) continue;
      if (static_cast<double>(second.started_ns - first->ended_ns) > found.gap_limit_ns) continue;
      ++back_to_back;
      std::int64_t ready = second.accepted_ns != kNoTime ? second.accepted_ns : second.submitted_ns;
      if (ready == kNoTime) {
        ++unknown;
        continue;
      }
      for (std::size_t a = 0; a < closure.order.size(); ++a) {
        const Span& other = timeline.spans[closure.order[a]];
        if (closure.comes[a][b]) ready = std::max(ready, other.ended_ns);
        if (closure.comes[a][b] && &other == first) ++tied_seen;
      }
      std::int64_t waited = 0;
      for (std::int64_t ns = first->started_ns; ns < first->ended_ns; ++ns) waited += ns >= ready;
      if (waited == 0) continue;
      ++pairs;
      lost += static_cast<double>(waited);
      worst = std::max(worst, static_cast<double>(waited));
      const auto [low, high] = std::minmax(first->stream, second.stream);
      by_streams[{low, high, second.queue}] += static_cast<double>(waited);
    }
    // Head-of-line blocking: by the order in which the queue got them, whatever is ready last in front of each.
    const auto handed = [&](std::size_t i) {
      const Span& span = timeline.spans[closure.order[i]];
      return span.accepted_ns != kNoTime ? span.accepted_ns : span.submitted_ns;
    };
    const auto ready_of = [&](std::size_t i) {
      std::int64_t ready = handed(i);
      for (std::size_t a = 0; a < closure.order.size(); ++a)
        if (closure.comes[a][i]) ready = std::max(ready, timeline.spans[closure.order[a]].ended_ns);
      return ready;
    };
    std::vector<std::size_t> entered;
    for (std::size_t i = 0; i < closure.order.size(); ++i) {
      const Span& span = timeline.spans[closure.order[i]];
      if (span.kind != SpanKind::host && span.queue != kNoQueue && span.queue < kCopyQueues && handed(i) != kNoTime)
        entered.push_back(i);
    }
    std::stable_sort(entered.begin(), entered.end(),
                     [&](std::size_t a, std::size_t b) { return handed(a) < handed(b); });
    std::size_t behind = 0;
    double behind_ns = 0;
    for (std::size_t b = 0; b < entered.size(); ++b) {
      const Span& second = timeline.spans[closure.order[entered[b]]];
      const Span* first = nullptr;
      std::int64_t until = kNoTime;
      for (std::size_t a = 0; a < b; ++a) {
        const Span& other = timeline.spans[closure.order[entered[a]]];
        if (other.queue != second.queue || other.stream == second.stream || ready_of(entered[a]) <= until) continue;
        first = &other;
        until = ready_of(entered[a]);
      }
      if (first == nullptr) continue;
      const bool left_first = first->launched_ns != kNoTime && second.launched_ns != kNoTime &&
                              first->launched_ns <= second.launched_ns && until <= second.started_ns;
      if (first->started_ns > second.started_ns && !left_first) continue;
      left_first_seen += first->started_ns > second.started_ns ? 1 : 0;
      const std::int64_t waited = std::min(until, second.started_ns) - ready_of(entered[b]);
      if (waited <= 0) continue;
      ++behind;
      behind_ns += static_cast<double>(waited);
      worst = std::max(worst, static_cast<double>(waited));
      const auto [low, high] = std::minmax(first->stream, second.stream);
      by_streams[{low, high, second.queue}] += static_cast<double>(waited);
    }
    behind_seen += behind;
    EXPECT_EQ(found.behind, behind);
    EXPECT_EQ(found.behind_ns, behind_ns);
    EXPECT_LE(found.wall_ns, found.lost_ns + found.behind_ns);
    pairs_seen += pairs;
    EXPECT_EQ(found.back_to_back, back_to_back);
    EXPECT_EQ(found.unknown, unknown);
    EXPECT_EQ(found.pairs, pairs);
    EXPECT_EQ(found.not_ready, back_to_back - unknown - pairs);
    EXPECT_EQ(found.lost_ns, lost);
    EXPECT_EQ(found.stream_pairs, by_streams.size());
    if (pairs + behind > 0) {
      EXPECT_EQ(found.worst.at(0).lost_ns, worst);
    }
    for (const SerialisedStreams& streams : found.by_streams)
      EXPECT_EQ(streams.lost_ns, (by_streams[{streams.a, streams.b, streams.queue}]));
  }
  // The random cases hold what they are for.
  EXPECT_GT(pairs_seen, 100u);
  EXPECT_GT(behind_seen, 40u);
  EXPECT_GT(left_first_seen, 0u);
  EXPECT_GT(tied_seen, 20u);
}

}  // namespace
}  // namespace weir
