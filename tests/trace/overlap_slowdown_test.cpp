#include "trace/analyse/overlap_slowdown.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "measure/bootstrap.h"

namespace weir {
namespace {

Span command_lasting(SpanKind kind, std::uint32_t name, std::int64_t started, std::int64_t took) {
  Span made;
  made.kind = kind;
  made.name = name;
  made.started_ns = started;
  made.ended_ns = started + took;
  return made;
}

TEST(OverlapSlowdown, ComparesAloneWithBeside) {
  Timeline timeline;
  // Kernel 1 takes 100 to 109 alone and half as much again beside a collective; kernel 2 the same in both.
  for (int i = 0; i < 40; ++i) {
    const std::int64_t at = 10'000 * i;
    const bool is_beside = i % 2 == 1;
    if (is_beside) timeline.spans.push_back(command_lasting(SpanKind::collective, 0, at, 5'000));
    timeline.spans.push_back(command_lasting(SpanKind::kernel, 1, at + 10, (100 + i % 10) * (is_beside ? 3 : 2) / 2));
    timeline.spans.push_back(command_lasting(SpanKind::kernel, 2, at + 1000, 200 + i * 7 % 11));
    timeline.spans.push_back(command_lasting(SpanKind::copy, 3, at + 2000, is_beside ? 900 : 100));
  }
  // A third with the collective for a tenth of it, and a fourth too few of.
  timeline.spans.push_back(command_lasting(SpanKind::kernel, 1, 10'000 + 4'900, 1'000));
  timeline.spans.push_back(command_lasting(SpanKind::kernel, 4, 10'000 + 100, 1'000));
  const OverlapSlowdown found = overlap_slowdown(timeline);
  EXPECT_EQ(found.names, 2u);
  EXPECT_EQ(found.clear, 1u);
  EXPECT_EQ(found.partly, 1u);
  EXPECT_EQ(found.too_few, 1u);
  ASSERT_EQ(found.kernels.size(), 2u);
  const KernelSlowdown& slow = found.kernels[0];
  EXPECT_EQ(slow.name, 1u);
  EXPECT_EQ(slow.alone, 20u);
  EXPECT_EQ(slow.beside, 20u);
  EXPECT_EQ(slow.alone_p50_ns, 104);   // 100, 102 .. 108
  EXPECT_EQ(slow.beside_p50_ns, 157);  // of 101, 103 .. 109: half as much again, rounded down
  EXPECT_TRUE(slow.is_clear);
  EXPECT_DOUBLE_EQ(slow.cost_ns, 20 * 53);
  EXPECT_DOUBLE_EQ(found.cost_ns, 20 * 53);
  EXPECT_EQ(found.kernels[1].name, 2u);
  EXPECT_FALSE(found.kernels[1].is_clear);
  const KernelSlowdown& even = found.kernels[1];
  EXPECT_DOUBLE_EQ(*found.ratio, (20 * 157 + 20 * even.beside_p50_ns) / (20 * 104 + 20 * even.alone_p50_ns));
}

TEST(OverlapSlowdown, SaysWhyThereIsNothing) {
  Timeline timeline;
  EXPECT_EQ(overlap_slowdown(timeline).reason, "no collective ran");
  timeline.spans = {command_lasting(SpanKind::collective, 0, 0, 100), command_lasting(SpanKind::kernel, 1, 200, 100)};
  EXPECT_EQ(overlap_slowdown(timeline).reason, "no kernel ran beside a collective");
  timeline.spans.push_back(command_lasting(SpanKind::kernel, 1, 20, 50));
  EXPECT_NE(overlap_slowdown(timeline).reason.find("5 times"), std::string::npos);
  EXPECT_FALSE(overlap_slowdown(timeline).ratio);
}

TEST(OverlapSlowdown, AgreesWithCountingMoments) {
  SplitMix random(21);
  for (int round = 0; round < 50; ++round) {
    Timeline timeline;
    for (int i = 0; i < 12; ++i)
      timeline.spans.push_back(command_lasting(SpanKind::collective, 0, random.below(1000), random.below(60)));
    for (int i = 0; i < 120; ++i)
      timeline.spans.push_back(
          command_lasting(SpanKind::kernel, 1 + random.below(3), random.below(1000), random.below(40)));
    std::map<std::uint32_t, std::pair<std::size_t, std::size_t>> expected;
    std::size_t partly = 0;
    for (const Span& span : timeline.spans) {
      if (span.kind != SpanKind::kernel || span.ended_ns == span.started_ns) continue;
      std::int64_t shared = 0;
      for (std::int64_t t = span.started_ns; t < span.ended_ns; ++t)
        shared += std::any_of(timeline.spans.begin(), timeline.spans.end(), [&](const Span& other) {
          return other.kind == SpanKind::collective && other.started_ns <= t && t < other.ended_ns;
        });
      if (shared == 0)
        ++expected[span.name].first;
      else if (2 * shared >= span.ended_ns - span.started_ns)
        ++expected[span.name].second;
      else
        ++partly;
    }
    const OverlapSlowdown found = overlap_slowdown(timeline);
    ASSERT_EQ(found.partly, partly);
    for (const KernelSlowdown& kernel : found.kernels) {
      ASSERT_EQ(kernel.alone, expected[kernel.name].first);
      ASSERT_EQ(kernel.beside, expected[kernel.name].second);
    }
  }
}

}  // namespace
}  // namespace weir
