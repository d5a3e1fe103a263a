#include "trace/analyse/top_kernels.h"

#include <gtest/gtest.h>

#include <map>
#include <utility>

#include "measure/statistics.h"
#include "support/random_timeline.h"

namespace weir {
namespace {

Span named(std::uint32_t name, SpanKind kind, std::int64_t started, std::int64_t ended) {
  Span made = test::command(kind, 0, started, ended);
  made.name = name;
  return made;
}

TEST(TopKernels, SumsByNameAndKind) {
  Timeline timeline;
  timeline.spans = {named(3, SpanKind::kernel, 0, 10),     named(3, SpanKind::kernel, 5, 35),
                    named(3, SpanKind::copy, 40, 45),      named(kNoName, SpanKind::kernel, 50, 51),
                    named(1, SpanKind::kernel, 60, 60),    named(2, SpanKind::host, 0, 500),
                    named(9, SpanKind::kernel, 0, kNoTime)};
  const TopKernels found = top_kernels(timeline, 2);
  EXPECT_EQ(found.kernels, 4u);
  EXPECT_EQ(found.commands, 5u);
  EXPECT_EQ(found.total_ns, 46);
  ASSERT_EQ(found.top.size(), 2u);
  EXPECT_EQ(found.top[0].name, 3u);
  EXPECT_EQ(found.top[0].kind, SpanKind::kernel);
  EXPECT_EQ(found.top[0].count, 2u);
  EXPECT_EQ(found.top[0].total_ns, 40);
  EXPECT_EQ(found.top[0].mean_ns, 20);
  EXPECT_EQ(found.top[0].p50_ns, 20);
  EXPECT_DOUBLE_EQ(found.top[0].p99_ns, 29.8);
  EXPECT_EQ(found.top[0].min_ns, 10);
  EXPECT_EQ(found.top[0].max_ns, 30);
  EXPECT_DOUBLE_EQ(found.top[0].share, 40.0 / 46);
  EXPECT_EQ(found.top[1].kind, SpanKind::copy);
  EXPECT_EQ(found.rest_count, 2u);
  EXPECT_EQ(found.rest_ns, 1);
  EXPECT_TRUE(top_kernels(Timeline{}).top.empty());
}

TEST(TopKernels, AgreesWithLists) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    test::RandomTimeline random(seed);
    const Timeline timeline = random.timeline(80, 50);
    std::map<std::pair<std::uint32_t, SpanKind>, std::vector<double>> lists;
    for (const Span& span : timeline.spans)
      if (span.started_ns != kNoTime && span.kind != SpanKind::host)
        lists[{span.name, span.kind}].push_back(static_cast<double>(span.ended_ns - span.started_ns));
    const TopKernels found = top_kernels(timeline, SIZE_MAX);
    ASSERT_EQ(found.top.size(), lists.size());
    EXPECT_EQ(found.rest_count, 0u);
    for (std::size_t i = 0; i < found.top.size(); ++i) {
      const KernelUse& use = found.top[i];
      const std::vector<double>& list = lists.at({use.name, use.kind});
      EXPECT_EQ(use.count, list.size());
      EXPECT_NEAR(use.mean_ns, mean(list), 1e-9);
      EXPECT_EQ(use.p50_ns, quantile(list, 0.5));
      EXPECT_EQ(use.p99_ns, quantile(list, 0.99));
      EXPECT_EQ(use.min_ns, quantile(list, 0));
      EXPECT_EQ(use.max_ns, quantile(list, 1));
      if (i > 0) {
        EXPECT_GE(found.top[i - 1].total_ns, use.total_ns);
      }
    }
  }
}

}  // namespace
}  // namespace weir
