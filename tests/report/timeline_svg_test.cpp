#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "report/text/svg.h"
#include "support/text.h"

namespace weir {
namespace {

Timeline two_streams() {
  Timeline timeline;
  timeline.names = {"gemm<float>(\"a\" & b)",
                    "nccl\x01"
                    "AllReduce\xff"};
  timeline.processes = {{0, "p"}};
  timeline.devices = {{0, 0, "GPU <0>"}};
  timeline.streams = {{0, 7, "stream 7"}, {0, 9, "stream 9"}};
  timeline.queues = {{0, 0, "queue 4"}, {kCopyQueues, 0, "copy queue 1"}};
  const auto add = [&](std::uint16_t stream, SpanKind kind, std::int64_t from, std::int64_t to, std::int32_t queue) {
    Span span;
    span.stream = stream;
    span.kind = kind;
    span.name = kind == SpanKind::collective ? 1 : 0;
    span.queue = queue;
    span.started_ns = from;
    span.ended_ns = to;
    timeline.spans.push_back(span);
  };
  add(0, SpanKind::kernel, 1000, 5000, 0);
  add(1, SpanKind::collective, 3000, 9000, 0);
  add(0, SpanKind::copy, 9000, 9500, kCopyQueues);
  timeline.dependencies = {{0, 1}};
  return timeline;
}

TEST(TimelineSvg, a_lane_for_each_stream_and_queue) {
  const std::string svg = timeline_svg(two_streams(), {"a <title>"});
  EXPECT_EQ(svg.rfind("<svg xmlns=", 0), 0U);
  for (const char* label : {"stream 7", "stream 9", "queue 4", "copy queue 1", "GPU &lt;0&gt;", "a &lt;title&gt;"})
    EXPECT_NE(svg.find(label), std::string::npos) << label;
  EXPECT_NE(svg.find("gemm&lt;float&gt;(&quot;a&quot; &amp; b): 4.00 us"), std::string::npos);
  EXPECT_EQ(count(svg, "class=\"a\""), 1U);  // the arrow
}

TEST(TimelineSvg, names_cannot_break_the_document) {
  const std::string svg = timeline_svg(two_streams(), {});
  EXPECT_TRUE(std::all_of(svg.begin(), svg.end(), [](char c) { return c == '\n' || (c >= 0x20 && c < 0x7f); }));
  EXPECT_NE(svg.find("nccl?AllReduce?"), std::string::npos);
}

TEST(TimelineSvg, what_no_compute_hides_is_marked) {
  // 640 px of lanes for 8,500 ns: communication from 5,000 to 9,000 is exposed.
  SvgOptions options;
  options.width = 170 + 32 + 850;
  const std::string svg = timeline_svg(two_streams(), options);
  const auto at = svg.find("<path class=\"x\"");
  ASSERT_NE(at, std::string::npos);
  EXPECT_NE(svg.find("M586.00 ", at), std::string::npos) << svg.substr(at, 200);  // 186 + (5000 - 1000) / 10
  EXPECT_NE(svg.find("h400.00", at), std::string::npos) << svg.substr(at, 200);
  Timeline hidden = two_streams();
  hidden.spans[0].ended_ns = 9000;
  EXPECT_EQ(timeline_svg(hidden, options).find("<path class=\"x\""), std::string::npos);
}

TEST(TimelineSvg, stays_small_however_long_the_timeline_is) {
  Timeline timeline = two_streams();
  timeline.spans.clear();
  timeline.dependencies.clear();
  std::mt19937 random(3);
  for (int i = 0; i < 300'000; ++i) {
    Span span;
    span.stream = static_cast<std::uint16_t>(i % 2);
    span.kind = static_cast<SpanKind>(random() % 4);
    span.name = 0;
    span.started_ns = i * 1000;
    span.ended_ns = span.started_ns + 500 + static_cast<std::int64_t>(random() % 3000);
    timeline.spans.push_back(span);
  }
  EXPECT_LT(timeline_svg(timeline, {}).size(), 2'500'000U);
}

TEST(TimelineSvg, many_lanes_are_cut_with_a_word) {
  Timeline timeline = two_streams();
  for (std::uint16_t i = 2; i < 100; ++i) {
    timeline.streams.push_back({0, i, "stream x" + std::to_string(i)});
    Span span = timeline.spans[0];
    span.stream = i;
    timeline.spans.push_back(span);
  }
  SvgOptions options;
  options.lanes = 10;
  const std::string svg = timeline_svg(timeline, options);
  EXPECT_NE(svg.find("90 more streams, which did less, are not drawn"), std::string::npos);
}

TEST(TimelineSvg, nothing_to_draw) {
  EXPECT_NE(timeline_svg({}, {}).find("No GPU commands."), std::string::npos);
  Timeline timeline;
  timeline.spans.resize(1);  // without times and lanes
  EXPECT_NE(timeline_svg(timeline, {}).find("No GPU commands."), std::string::npos);
  timeline.spans[0].started_ns = timeline.spans[0].ended_ns = 5;
  EXPECT_NE(timeline_svg(timeline, {}).find("stream 0"), std::string::npos);
}

}  // namespace
}  // namespace weir
