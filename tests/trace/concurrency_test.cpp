#include "trace/analyse/concurrency.h"

#include <gtest/gtest.h>

#include "support/random_timeline.h"

namespace weir {
namespace {

using test::command;

TEST(ConcurrencyProfile, CountsLevels) {
  Timeline timeline;
  timeline.spans = {command(SpanKind::kernel, 0, 0, 30),      command(SpanKind::kernel, 1, 10, 20),
                    command(SpanKind::collective, 2, 10, 40), command(SpanKind::host, 3, 0, 100),
                    command(SpanKind::copy, 3, 15, 15),       command(SpanKind::kernel, 0, 30, 35)};
  const ConcurrencyProfile found = concurrency_profile(timeline);
  ASSERT_TRUE(found.all && found.kernels);
  // 0-10 one, 10-20 three, 20-35 two, 35-40 one.
  EXPECT_EQ(found.all->exactly_ns, (std::vector<double>{15, 15, 10}));
  EXPECT_EQ(found.all->beyond_ns, 0);
  EXPECT_EQ(found.all->busy_ns, 40);
  EXPECT_EQ(found.all->overlapped_ns(), 25);
  EXPECT_EQ(found.all->max, 3u);
  EXPECT_DOUBLE_EQ(found.all->mean, 75.0 / 40);
  EXPECT_EQ(found.kernels->exactly_ns, (std::vector<double>{25, 10}));
  EXPECT_FALSE(concurrency_profile(Timeline{}).all);
}

TEST(ConcurrencyProfile, BoundsTheList) {
  Timeline timeline;
  for (std::int64_t i = 0; i < 100; ++i) timeline.spans.push_back(command(SpanKind::kernel, 0, i, 200 - i));
  const ConcurrencyProfile found = concurrency_profile(timeline);
  ASSERT_EQ(found.all->exactly_ns.size(), kMaxLevels);
  EXPECT_EQ(found.all->exactly_ns.back(), 2);
  EXPECT_EQ(found.all->beyond_ns, 200 - 2 * 64);
  EXPECT_EQ(found.all->max, 100u);
  EXPECT_EQ(found.all->busy_ns, 200);
}

TEST(ConcurrencyProfile, AgreesWithEveryNanosecond) {
  for (std::uint64_t seed = 0; seed < 400; ++seed) {
    test::RandomTimeline random(seed);
    const Timeline timeline = random.timeline(30, 40);
    std::vector<double> all(31), kernels(31);
    double area = 0;
    for (std::int64_t ns = 0; ns < test::kHorizon; ++ns) {
      std::size_t running = 0, running_kernels = 0;
      for (const Span& span : timeline.spans) {
        running += test::runs_at(span, ns) && span.kind != SpanKind::host;
        running_kernels += test::runs_at(span, ns) && span.kind == SpanKind::kernel;
      }
      ++all[running];
      ++kernels[running_kernels];
      area += static_cast<double>(running);
    }
    const ConcurrencyProfile found = concurrency_profile(timeline);
    const auto expect_levels = [&](const std::optional<ConcurrencyLevels>& levels, std::vector<double> wanted) {
      wanted.erase(wanted.begin());
      while (!wanted.empty() && wanted.back() == 0) wanted.pop_back();
      EXPECT_EQ(levels ? levels->exactly_ns : std::vector<double>{}, wanted) << seed;
      if (levels) {
        EXPECT_EQ(levels->max, wanted.size());
      }
    };
    expect_levels(found.all, all);
    expect_levels(found.kernels, kernels);
    if (found.all) {
      EXPECT_NEAR(found.all->mean * found.all->busy_ns, area, 1e-6);
    }
  }
}

}  // namespace
}  // namespace weir
