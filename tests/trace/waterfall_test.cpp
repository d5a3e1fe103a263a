#include "trace/analyse/waterfall.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "measure/statistics.h"
#include "support/random_timeline.h"

namespace weir {
namespace {

Span way(SpanKind kind, std::int64_t submitted, std::int64_t accepted, std::int64_t started, std::int64_t ended,
         std::int64_t seen = kNoTime) {
  Span made = test::command(kind, 0, started, ended, 0, submitted);
  made.accepted_ns = accepted;
  made.seen_ns = seen;
  return made;
}

TEST(Waterfall, FollowsTheStagesThatAreKnown) {
  Timeline timeline;
  for (std::int64_t i = 0; i < 11; ++i)
    timeline.spans.push_back(way(SpanKind::kernel, 0, 10, 110 + i * 10, 200 + i * 10, 1000));
  timeline.spans.push_back(way(SpanKind::copy, kNoTime, kNoTime, 0, 50));
  const Waterfall found = waterfall(timeline);
  ASSERT_EQ(found.classes.size(), 2u);
  const ClassWaterfall& kernels = found.classes[0];
  EXPECT_EQ(kernels.kind, SpanKind::kernel);
  EXPECT_EQ(kernels.commands, 11u);
  ASSERT_EQ(kernels.hops.size(), 4u);
  EXPECT_EQ(kernels.hops[1].from, Stage::accepted);
  EXPECT_EQ(kernels.hops[1].to, Stage::started);
  EXPECT_EQ(kernels.hops[1].count, 11u);
  EXPECT_EQ(kernels.hops[1].mean_ns, 150);
  EXPECT_EQ(kernels.hops[1].p50_ns, 150);
  EXPECT_EQ(kernels.hops[1].p95_ns, 195);
  EXPECT_EQ(kernels.hops[1].p99_ns, 199);
  EXPECT_EQ(kernels.hops[1].total_ns, 1650);
  // The host waited for the last of them only, so the others' way ends when they do.
  EXPECT_EQ(kernels.waited_for, 1u);
  EXPECT_EQ(kernels.way_ns, 250);
  EXPECT_EQ(kernels.hops[1].share, 0.6);
  EXPECT_EQ(kernels.hops[3].mean_ns, 750);
  EXPECT_FALSE(kernels.hops[3].share);
  ASSERT_TRUE(kernels.dominating && kernels.dominating_to_end);
  EXPECT_EQ(*kernels.dominating, 1u);
  EXPECT_EQ(*kernels.dominating_to_end, 1u);
  EXPECT_EQ(kernels.words_to_end,
            "accepted -> started: 60 % of the way to their end; commands wait for those before them on their stream "
            "and queue");
  ASSERT_EQ(kernels.missing.size(), 2u);
  EXPECT_EQ(kernels.missing[0].stage, Stage::enqueued);
  EXPECT_EQ(kernels.missing[1].stage, Stage::launched);
  EXPECT_FALSE(kernels.missing[1].reason.empty());
  const ClassWaterfall& copies = found.classes[1];
  ASSERT_EQ(copies.hops.size(), 1u);
  EXPECT_EQ(copies.words, "started -> ended: 100 % of the way; commands run");
  EXPECT_EQ(copies.missing.size(), 5u);
}

// Each is waited for: launch, synchronise, launch, synchronise.
TEST(Waterfall, LeadsToTheHostThatWaits) {
  Timeline timeline;
  for (std::int64_t i = 0; i < 10; ++i) {
    const std::int64_t at = 100'000 * i;
    timeline.spans.push_back(way(SpanKind::kernel, at, at + 10, at + 20, at + 100, at + 150));
    timeline.calls.push_back({0, 1, 0, 0, CallKind::synchronize, at + 11, at + 150});
  }
  ClassWaterfall found = waterfall(timeline).classes.at(0);
  EXPECT_EQ(found.waited_for, 10u);
  EXPECT_EQ(found.way_ns, 150);
  EXPECT_EQ(found.hops.back().share, 50.0 / 150);
  // A host that begins to wait only when all have ended did not wait for any of them.
  for (HostCall& call : timeline.calls) call.started_ns = call.ended_ns - 20;
  found = waterfall(timeline).classes.at(0);
  EXPECT_EQ(found.waited_for, 0u);
  EXPECT_EQ(found.way_ns, 100);
  EXPECT_FALSE(found.hops.back().share);
  EXPECT_EQ(found.hops.back().p50_ns, 50);
}

// A training loop: thousands of commands, and the host looks once, much later.
TEST(Waterfall, AHostThatLooksLaterIsNotOnTheWay) {
  Timeline timeline;
  for (std::int64_t i = 0; i < 2000; ++i)
    timeline.spans.push_back(
        way(SpanKind::kernel, i * 5'000, i * 5'000 + 4'000, i * 5'000 + 9'000, i * 5'000 + 12'000, 500'000'000));
  timeline.calls = {{0, 1, 0, 0, CallKind::synchronize, 400'000'000, 500'000'000}};
  const ClassWaterfall found = waterfall(timeline).classes.at(0);
  EXPECT_EQ(found.waited_for, 0u);
  EXPECT_EQ(found.way_ns, 12'000);
  double shares = 0;
  for (const Hop& hop : found.hops) shares += hop.share.value_or(0);
  EXPECT_DOUBLE_EQ(shares, 1);
  EXPECT_GT(found.hops.back().p50_ns, 400e6);  // still there, as a figure of its own
  EXPECT_EQ(found.words.find("seen"), std::string::npos) << found.words;
}

TEST(Waterfall, CountsClocksThatDisagreeApart) {
  Timeline timeline;
  timeline.spans = {way(SpanKind::kernel, 0, kNoTime, 10, 11), way(SpanKind::kernel, 100, kNoTime, 70, 71),
                    way(SpanKind::kernel, 0, kNoTime, 30, 31), way(SpanKind::kernel, kNoTime, 5, 30, 31)};
  const ClassWaterfall found = waterfall(timeline).classes.at(0);
  ASSERT_EQ(found.hops.size(), 2u);
  EXPECT_EQ(found.hops[0].count, 2u);
  EXPECT_EQ(found.hops[0].negative, 1u);
  EXPECT_EQ(found.hops[0].worst_negative_ns, 30);
  EXPECT_EQ(found.hops[0].unknown, 1u);
  EXPECT_EQ(found.hops[0].mean_ns, 20);
  EXPECT_NE(found.words.find("clocks disagree"), std::string::npos);
  // One of four has it: that would speak for nobody else.
  EXPECT_NE(found.missing.at(1).reason.find("1 of 4"), std::string::npos);
}

TEST(Waterfall, SaysWhyThereIsNothing) {
  Timeline timeline;
  EXPECT_FALSE(waterfall(timeline).reason.empty());
  timeline.spans = {way(SpanKind::kernel, kNoTime, kNoTime, kNoTime, kNoTime), way(SpanKind::copy, 5, 5, 5, 5)};
  const Waterfall found = waterfall(timeline);
  ASSERT_EQ(found.classes.size(), 2u);
  EXPECT_TRUE(found.classes[0].hops.empty());
  EXPECT_FALSE(found.classes[0].dominating);
  EXPECT_FALSE(found.classes[0].words.empty());
  EXPECT_FALSE(found.classes[1].dominating);
  EXPECT_EQ(found.classes[1].words, "no hop took any time");
}

TEST(Waterfall, AgreesWithLists) {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(seed);
    test::RandomTimeline random(seed);
    const Timeline timeline = random.timeline(60, 40);
    for (const ClassWaterfall& found : waterfall(timeline).classes) {
      std::vector<Span> own;
      for (const Span& span : timeline.spans)
        if (span.kind == found.kind) own.push_back(span);
      EXPECT_EQ(found.commands, own.size());
      std::vector<Stage> known;
      for (int i = 0; i < static_cast<int>(kStages); ++i) {
        const auto stage = static_cast<Stage>(i);
        const auto has =
            std::count_if(own.begin(), own.end(), [&](const Span& span) { return time_of(span, stage) != kNoTime; });
        if (static_cast<double>(has) >= 0.5 * static_cast<double>(own.size())) known.push_back(stage);
      }
      ASSERT_EQ(found.hops.size(), known.empty() ? 0 : known.size() - 1);
      EXPECT_EQ(found.missing.size(), kStages - known.size());
      double shares = 0, longest = 0;
      for (std::size_t i = 0; i < found.hops.size(); ++i) {
        const Hop& hop = found.hops[i];
        EXPECT_EQ(hop.from, known[i]);
        EXPECT_EQ(hop.to, known[i + 1]);
        EXPECT_EQ(hop.unknown + hop.negative + hop.count, own.size());
        shares += hop.share.value_or(0);
        if (hop.share) longest = std::max(longest, hop.mean_ns);
        if (hop.to == Stage::seen && hop.share) continue;  // of those only that the host waited for
        std::vector<double> lengths;
        std::size_t negative = 0;
        for (const Span& span : own) {
          const std::int64_t from = time_of(span, hop.from), to = time_of(span, hop.to);
          if (from == kNoTime || to == kNoTime) continue;
          if (to < from) {
            ++negative;
          } else {
            lengths.push_back(static_cast<double>(to - from));
          }
        }
        EXPECT_EQ(hop.negative, negative);
        EXPECT_EQ(hop.count, lengths.size());
        if (lengths.empty()) continue;
        EXPECT_NEAR(hop.mean_ns, mean(lengths), 1e-9);
        EXPECT_EQ(hop.p50_ns, quantile(lengths, 0.5));
        EXPECT_EQ(hop.p95_ns, quantile(lengths, 0.95));
        EXPECT_EQ(hop.p99_ns, quantile(lengths, 0.99));
      }
      if (longest > 0) {
        EXPECT_NEAR(shares, 1, 1e-9);
        EXPECT_EQ(found.hops[found.dominating.value()].mean_ns, longest);
      }
    }
  }
}

}  // namespace
}  // namespace weir
