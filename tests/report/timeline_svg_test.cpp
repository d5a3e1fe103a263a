#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <sstream>

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

// Ink of the lanes, by their top edge: width times opacity of everything drawn there.
std::map<std::string, double> ink_of(const std::string& svg) {
  std::map<std::string, double> ink;
  const auto attribute = [](const std::string& line, const std::string& name) {
    const std::size_t at = line.find(" " + name + "=\"");
    return at == std::string::npos
               ? ""
               : line.substr(at + name.size() + 3, line.find('"', at + name.size() + 3) - at - name.size() - 3);
  };
  std::istringstream lines(svg);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("<rect") && line.find("<title>") != std::string::npos)
      ink[attribute(line, "y")] += std::stod(attribute(line, "width"));
    const std::string opacity = attribute(line, "opacity");
    if (!line.starts_with("<path") || opacity.empty()) continue;
    // "M186 60.0h3v12.0h-3zM..."
    std::istringstream path(attribute(line, "d"));
    for (std::string run; std::getline(path, run, 'z');) {
      const std::size_t blank = run.find(' '), h = run.find('h'), v = run.find('v');
      ink[run.substr(blank + 1, h - blank - 1)] += std::stod(opacity) * std::stod(run.substr(h + 1, v - h - 1));
    }
  }
  return ink;
}

// Neighbours with idle time between them must not be joined, at any density.
TEST(TimelineSvg, a_lane_has_as_much_ink_as_it_was_busy) {
  std::mt19937 random(11);
  for (int round = 0; round < 60; ++round) {
    Timeline timeline = two_streams();
    timeline.spans.clear();
    timeline.dependencies.clear();
    const auto commands = static_cast<int>(1 + random() % (round % 3 == 0 ? 20 : round % 3 == 1 ? 3000 : 30'000));
    const std::int64_t mean_gap = 1 + static_cast<std::int64_t>(random() % 20'000);
    std::int64_t at = 0, busy = 0;
    for (int i = 0; i < commands; ++i) {
      Span span;
      span.kind = SpanKind::kernel;
      span.name = 0;
      // Some begin while the one before still runs.
      span.started_ns = std::max<std::int64_t>(0, at + static_cast<std::int64_t>(random()) % (2 * mean_gap) - 500);
      span.ended_ns = span.started_ns + 1 + static_cast<std::int64_t>(random() % (random() % 50 == 0 ? 200'000 : 4000));
      if (!timeline.spans.empty()) span.started_ns = std::max(span.started_ns, timeline.spans.back().started_ns);
      span.ended_ns = std::max(span.ended_ns, span.started_ns);
      busy += std::max<std::int64_t>(0, span.ended_ns - std::max(at, span.started_ns));
      at = std::max(at, span.ended_ns);
      timeline.spans.push_back(span);
    }
    const auto first = timeline.spans.front().started_ns;
    const double share = static_cast<double>(busy) / static_cast<double>(std::max<std::int64_t>(1, at - first));
    SvgOptions options;
    options.width = 170 + 32 + 1000;
    const auto ink = ink_of(timeline_svg(timeline, options));
    ASSERT_EQ(ink.size(), 2U);  // compute, and the only stream
    for (const auto& [lane, width] : ink) {
      EXPECT_GT(width / 1000, share - 0.012) << round << ": " << commands << " commands";
      // The faintest column is 6 % opaque.
      EXPECT_LT(width / 1000, share + 0.06 * (1 - share) + 0.012) << round << ": " << commands << " commands";
    }
  }
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
