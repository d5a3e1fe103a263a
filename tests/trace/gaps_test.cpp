#include "trace/analyse/gaps.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "measure/statistics.h"
#include "support/random_timeline.h"

namespace weir {
namespace {

using test::command;

TEST(Gaps, FindsThemBetweenUnionsAndWithinStreams) {
  Timeline timeline;
  timeline.spans = {
      command(SpanKind::kernel, 0, 0, 100),    // 0
      command(SpanKind::kernel, 1, 50, 60),    // 1
      command(SpanKind::copy, 1, 101, 110),    // 2: a gap of 1 on the device, of 41 on the stream
      command(SpanKind::kernel, 0, 112, 112),  // 3: takes no time, so the gap goes on
      command(SpanKind::host, 0, 105, 115),    // 4: occupies its stream only
      command(SpanKind::kernel, 0, 114, 120),  // 5: a gap of 4 on the device, of 5 on stream 0 (100-105)
  };
  const GapsFound found = gaps(timeline);
  ASSERT_TRUE(found.device) << found.reason;
  EXPECT_EQ(found.device->count, 2u);
  EXPECT_EQ(found.device->total_ns, 5);
  EXPECT_EQ(found.device->p50_ns, 2.5);
  EXPECT_EQ(found.device->max_ns, 4);
  ASSERT_EQ(found.device->histogram.size(), 3u);
  EXPECT_EQ(found.device->histogram[0].from_ns, 1);
  EXPECT_EQ(found.device->histogram[0].count, 1u);
  EXPECT_EQ(found.device->histogram[1].count, 0u);
  EXPECT_EQ(found.device->histogram[2].from_ns, 4);
  EXPECT_EQ(found.device->histogram[2].total_ns, 4);
  ASSERT_EQ(found.device->longest.size(), 2u);
  EXPECT_EQ(found.device->longest[0].from_ns, 110);
  EXPECT_EQ(found.device->longest[0].to_ns, 114);
  EXPECT_EQ(found.device->longest[0].before, 2u);
  EXPECT_EQ(found.device->longest[0].after, 5u);
  EXPECT_EQ(found.device->longest[1].before, 0u);
  EXPECT_EQ(found.within_streams->count, 2u);
  EXPECT_EQ(found.within_streams->total_ns, 5 + 41);
  EXPECT_EQ(found.within_streams->max_ns, 41);
}

TEST(Gaps, SaysWhyThereIsNone) {
  Timeline timeline;
  EXPECT_FALSE(gaps(timeline).device);
  EXPECT_FALSE(gaps(timeline).reason.empty());
  timeline.spans = {command(SpanKind::kernel, 0, 0, 10), command(SpanKind::kernel, 1, 10, 20)};
  EXPECT_FALSE(gaps(timeline).device);
  EXPECT_NE(gaps(timeline).reason.find("busy"), std::string::npos);
}

TEST(Gaps, HoldsTheLongestAndBoundsTheLists) {
  Timeline timeline;
  timeline.spans = {command(SpanKind::kernel, 0, INT64_MIN + 1, INT64_MIN + 2),
                    command(SpanKind::kernel, 0, INT64_MAX - 1, INT64_MAX)};
  const GapsFound huge = gaps(timeline);
  EXPECT_EQ(huge.device->histogram.size(), 1u);
  EXPECT_EQ(huge.device->histogram[0].from_ns, 9223372036854775808.0);
  timeline.spans.clear();
  for (std::int64_t i = 0; i < 1000; ++i)
    timeline.spans.push_back(
        command(SpanKind::kernel, static_cast<std::uint16_t>(i % 100), i * 3000, i * 3000 + i + 1));
  const GapsFound many = gaps(timeline);
  EXPECT_EQ(many.device->longest.size(), kMaxLongGaps);
  EXPECT_EQ(many.device->longest[0].before, 0u);
  EXPECT_EQ(many.within_streams->count, 900u);
}

// Runs of nanoseconds in which none of `spans` runs, between two in which one does.
std::vector<double> idle_runs(const std::vector<Span>& spans) {
  std::vector<double> runs;
  double idle = 0;
  bool has_run = false;
  for (std::int64_t ns = 0; ns < test::kHorizon; ++ns) {
    const bool is_busy =
        std::any_of(spans.begin(), spans.end(), [&](const Span& span) { return test::runs_at(span, ns); });
    if (is_busy && has_run && idle > 0) runs.push_back(idle);
    idle = is_busy ? 0 : idle + 1;
    has_run |= is_busy;
  }
  return runs;
}

void expect_gaps(const std::optional<IdleGaps>& found, std::vector<double> wanted) {
  ASSERT_EQ(found.has_value(), !wanted.empty());
  if (!found) return;
  std::sort(wanted.begin(), wanted.end());
  EXPECT_EQ(found->count, wanted.size());
  EXPECT_NEAR(found->mean_ns, mean(wanted), 1e-9);
  EXPECT_EQ(found->p50_ns, quantile(wanted, 0.5));
  EXPECT_EQ(found->p95_ns, quantile(wanted, 0.95));
  EXPECT_EQ(found->p99_ns, quantile(wanted, 0.99));
  EXPECT_EQ(found->max_ns, wanted.back());
  for (const GapBin& bin : found->histogram) {
    const auto is_in = [&](double length) { return length >= bin.from_ns && length < 2 * bin.from_ns; };
    EXPECT_EQ(bin.count, static_cast<std::size_t>(std::count_if(wanted.begin(), wanted.end(), is_in)));
  }
  for (std::size_t i = 0; i < found->longest.size(); ++i)
    EXPECT_EQ(static_cast<double>(found->longest[i].to_ns - found->longest[i].from_ns), wanted[wanted.size() - 1 - i]);
}

TEST(Gaps, AgreeWithEveryNanosecond) {
  for (std::uint64_t seed = 0; seed < 400; ++seed) {
    SCOPED_TRACE(seed);
    test::RandomTimeline random(seed);
    const Timeline timeline = random.timeline(40, 12);
    std::vector<Span> work;
    for (const Span& span : timeline.spans)
      if (span.kind != SpanKind::host) work.push_back(span);
    const GapsFound found = gaps(timeline);
    expect_gaps(found.device, idle_runs(work));
    if (found.device) {
      for (const LongGap& gap : found.device->longest) {
        EXPECT_EQ(timeline.spans[gap.before].ended_ns, gap.from_ns);
        EXPECT_EQ(timeline.spans[gap.after].started_ns, gap.to_ns);
      }
    }
    std::vector<double> pooled;
    std::map<std::uint16_t, std::vector<Span>> streams;
    for (const Span& span : timeline.spans) streams[span.stream].push_back(span);
    for (const auto& [stream, own] : streams) {
      const std::vector<double> runs = idle_runs(own);
      pooled.insert(pooled.end(), runs.begin(), runs.end());
    }
    expect_gaps(found.within_streams, pooled);
  }
}

}  // namespace
}  // namespace weir
