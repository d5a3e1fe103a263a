#include "report/page/timeline.h"

#include <gtest/gtest.h>

#include <random>

#include "report/page/decoded_lane.h"
#include "report/page/lane_encoding.h"

namespace weir::page {
namespace {

using weir::testing::busy_of;
using weir::testing::decode_lane;
using weir::testing::DecodedSpan;
using weir::testing::group_of;

Timeline two_streams() {
  Timeline timeline;
  timeline.source = "a clock";
  timeline.names = {"gemm", "all_reduce", "launch"};
  timeline.processes = {{0, "program"}};
  timeline.devices = {{0, 0, "GPU 0"}};
  timeline.streams = {{0, 9, "stream 9"}, {0, 7, "stream 7"}};
  timeline.queues = {{3, 0, "queue 3"}};
  return timeline;
}

Span span_of(std::uint16_t stream, std::int64_t from, std::int64_t to, std::uint32_t name = 0,
             std::int32_t queue = kNoQueue) {
  Span span;
  span.stream = stream;
  span.started_ns = from;
  span.ended_ns = to;
  span.name = name;
  span.queue = queue;
  span.kind = name == 1 ? SpanKind::collective : SpanKind::kernel;
  return span;
}

bool has_note(const DrawnTimeline& drawn, const std::string& part) {
  for (const std::string& note : drawn.notes)
    if (note.find(part) != std::string::npos) return true;
  return false;
}

TEST(LaneEncoding, gives_back_what_went_in_and_the_length_of_the_union) {
  std::mt19937_64 random(7);
  for (int round = 0; round < 200; ++round) {
    std::vector<LaneSpan> spans;
    const std::size_t count = random() % 40;
    for (std::size_t i = 0; i < count; ++i) {
      const std::uint64_t start = random() >> (11 + random() % 50);
      const std::uint64_t length = random() >> (20 + random() % 44);
      spans.push_back({start, start + length, static_cast<std::uint32_t>(random() >> (32 + random() % 32))});
    }
    const EncodedLane lane = encode_lane(spans);
    const std::vector<DecodedSpan> decoded = decode_lane(lane.spans);
    ASSERT_EQ(decoded.size(), count);
    ASSERT_EQ(lane.count, count);
    std::uint64_t end = 0;
    for (std::size_t i = 0; i < count; ++i) {
      EXPECT_EQ(decoded[i].start, spans[i].start_ns);
      EXPECT_EQ(decoded[i].start + decoded[i].duration, spans[i].end_ns);
      EXPECT_EQ(decoded[i].name, spans[i].name);
      end = std::max(end, spans[i].end_ns);
    }
    EXPECT_EQ(lane.busy_ns, busy_of(decoded));
    EXPECT_EQ(lane.end_ns, end);
  }
}

TEST(DrawnTimeline, has_lanes_of_streams_queues_and_threads_with_their_spans) {
  Timeline timeline = two_streams();
  timeline.spans = {span_of(0, 1000, 1500, 0, 3), span_of(1, 1100, 1900, 1, 3), span_of(0, 1600, 1700)};
  HostCall call;
  call.thread = 42;
  call.name = 2;
  call.started_ns = 900;
  call.ended_ns = 950;
  timeline.calls = {call};
  const DrawnTimeline drawn = draw_timeline(timeline, 100);
  EXPECT_EQ(drawn.spans, 4U);
  EXPECT_EQ(drawn.fields["origin_ns"], 900);
  EXPECT_EQ(drawn.fields["end_ns"], 1000);
  EXPECT_EQ(drawn.fields["source_of_times"], "a clock");
  EXPECT_EQ(drawn.fields["left_out"], 0);
  EXPECT_TRUE(drawn.fields["left_out_reason"].is_null());

  const Json* streams = group_of(drawn.fields, "Streams of GPU 0");
  ASSERT_NE(streams, nullptr) << drawn.fields.dump();
  ASSERT_EQ((*streams)["lanes"].size(), 2U);
  EXPECT_EQ((*streams)["lanes"][0]["label"], "stream 7") << "by their number";
  const Json& lane = (*streams)["lanes"][1];
  EXPECT_EQ(lane["count"], 2);
  EXPECT_EQ(lane["busy_ns"], 600);
  const auto spans = decode_lane(lane["spans"].get<std::string>());
  ASSERT_EQ(spans.size(), 2U);
  EXPECT_EQ(spans[0].start, 100U);
  EXPECT_EQ(spans[0].duration, 500U);
  EXPECT_EQ(spans[1].start, 700U);
  EXPECT_EQ(drawn.fields["names"][spans[0].name]["text"], "gemm");
  EXPECT_EQ(drawn.fields["names"][spans[0].name]["kind"], "kernel");

  const Json* queues = group_of(drawn.fields, "Hardware queues of GPU 0");
  ASSERT_NE(queues, nullptr);
  EXPECT_EQ((*queues)["lanes"][0]["label"], "queue 3");
  EXPECT_EQ((*queues)["lanes"][0]["count"], 2);
  EXPECT_EQ((*queues)["lanes"][0]["busy_ns"], 900) << "what runs at once counts once";
  EXPECT_TRUE(has_note(drawn, "1 commands name no hardware queue"));

  const Json* threads = group_of(drawn.fields, "host threads");
  ASSERT_NE(threads, nullptr);
  EXPECT_EQ((*threads)["lanes"][0]["label"], "thread 42");
  const auto calls = decode_lane((*threads)["lanes"][0]["spans"].get<std::string>());
  ASSERT_EQ(calls.size(), 1U);
  EXPECT_EQ(drawn.fields["names"][calls[0].name]["kind"], "host");
}

TEST(DrawnTimeline, takes_steps_from_ranges_and_else_from_the_commands) {
  Timeline timeline = two_streams();
  timeline.spans = {span_of(0, 1000, 1500), span_of(1, 1100, 1900), span_of(0, 2000, 2100)};
  timeline.spans[2].iteration = 1;
  {
    const DrawnTimeline drawn = draw_timeline(timeline, 100);
    const Json* steps = group_of(drawn.fields, "steps");
    ASSERT_NE(steps, nullptr);
    const auto spans = decode_lane((*steps)["lanes"][0]["spans"].get<std::string>());
    ASSERT_EQ(spans.size(), 2U);
    EXPECT_EQ(spans[0].duration, 900U);
    EXPECT_EQ(drawn.fields["names"][spans[1].name]["text"], "step 1");
    EXPECT_EQ(drawn.fields["names"][spans[1].name]["kind"], "step");
  }
  timeline.names.push_back("ProfilerStep#5");
  timeline.ranges = {{3, 0, 800, 2500}};
  const DrawnTimeline drawn = draw_timeline(timeline, 100);
  const Json* steps = group_of(drawn.fields, "steps");
  ASSERT_NE(steps, nullptr);
  const auto spans = decode_lane((*steps)["lanes"][0]["spans"].get<std::string>());
  ASSERT_EQ(spans.size(), 1U);
  EXPECT_EQ(drawn.fields["names"][spans[0].name]["text"], "ProfilerStep#5");
  EXPECT_EQ(drawn.fields["origin_ns"], 800);
  EXPECT_EQ(drawn.fields["end_ns"], 1700);
}

TEST(DrawnTimeline, counts_what_cannot_be_drawn_and_draws_the_rest) {
  Timeline timeline = two_streams();
  timeline.spans = {span_of(0, -500, -400),
                    span_of(0, -450, -200),  // overlaps
                    span_of(1, 100, 90),     // backwards
                    span_of(1, kNoTime, 90),
                    span_of(1, 50, std::int64_t{1} << 54),  // no end that can be true
                    span_of(1, INT64_MAX - 1, INT64_MAX),
                    span_of(1, INT64_MIN + 1, INT64_MIN + 2),
                    span_of(0, 0, 0)};
  const DrawnTimeline drawn = draw_timeline(timeline, 100);
  EXPECT_EQ(drawn.spans, 3U);
  EXPECT_EQ(drawn.fields["origin_ns"], -500);
  EXPECT_EQ(drawn.fields["end_ns"], 500);
  EXPECT_TRUE(has_note(drawn, "1 of the trace end before they start"));
  EXPECT_TRUE(has_note(drawn, "1 of the trace have no start or no end"));
  EXPECT_TRUE(has_note(drawn, "3 of the trace lie more than 52 days"));
  const Json& lane = (*group_of(drawn.fields, "Streams of GPU 0"))["lanes"][0];
  EXPECT_EQ(lane["count"], 3);
  EXPECT_EQ(lane["busy_ns"], 300);
}

TEST(DrawnTimeline, draws_a_stretch_from_the_middle_where_there_are_too_many) {
  Timeline timeline = two_streams();
  for (int i = 0; i < 100; ++i) timeline.spans.push_back(span_of(i % 2 == 0 ? 0 : 1, i * 10, i * 10 + 5));
  const DrawnTimeline drawn = draw_timeline(timeline, 20);
  EXPECT_EQ(drawn.spans, 20U);
  EXPECT_EQ(drawn.fields["left_out"], 80);
  EXPECT_EQ(drawn.fields["origin_ns"], 400) << "80 are left out, half of them before";
  EXPECT_NE(drawn.fields["left_out_reason"].get<std::string>().find("100 commands and host calls; the 20"),
            std::string::npos);
  std::size_t count = 0;
  for (const Json& lane : (*group_of(drawn.fields, "Streams of GPU 0"))["lanes"])
    count += lane["count"].get<std::size_t>();
  EXPECT_EQ(count, 20U);
}

TEST(DrawnTimeline, keeps_to_the_limit_where_all_start_at_one_time) {
  Timeline timeline = two_streams();
  for (int i = 0; i < 50; ++i) timeline.spans.push_back(span_of(0, 10, 20 + i));
  EXPECT_EQ(draw_timeline(timeline, 7).spans, 7U);
  EXPECT_EQ(draw_timeline(timeline, 50).spans, 50U);
  EXPECT_EQ(draw_timeline(timeline, 0).spans, 0U);
  EXPECT_EQ(draw_timeline(timeline, 0).fields["left_out"], 50);
}

// One piece for all that one call of an operator launched; what a graph launched belongs to one call; what no operator
// launched is between them.
TEST(DrawnTimeline, has_operators_above_their_kernels) {
  Timeline timeline = two_streams();
  timeline.names.push_back("aten::mm");
  timeline.operations = {{3, kNoName, kNoModule, Phase::forward}, {kNoName, kNoName, 0, Phase::forward}};
  struct Launch {
    std::uint32_t operation;
    bool is_first;
  };
  for (const Launch& launch :
       {Launch{0, true}, Launch{0, false}, Launch{0, true}, Launch{1, false}, Launch{0, true}, Launch{0, false}}) {
    timeline.calls.push_back({.name = 2, .thread = 42, .started_ns = 900, .ended_ns = 950});
    timeline.calls.back().operation = launch.operation;
    timeline.calls.back().is_first_of_operation = launch.is_first;
  }
  // The fifth call, the first of its operator, submits nothing, as where a collective records an event.
  const std::uint32_t calls[] = {0, 1, 2, 2, 3, 2, 5, kNoCall};
  for (std::size_t i = 0; i < std::size(calls); ++i) {
    const auto at = static_cast<std::int64_t>(1000 + 100 * i);
    timeline.spans.push_back(span_of(0, at, at + 50));
    timeline.spans.back().call = calls[i];
  }
  const DrawnTimeline drawn = draw_timeline(timeline, 100);
  EXPECT_EQ(drawn.spans, 14U) << "operators are drawn from commands and take no room from them";
  const Json* operators = group_of(drawn.fields, "Operators of GPU 0");
  ASSERT_NE(operators, nullptr) << drawn.fields.dump();
  ASSERT_EQ((*operators)["lanes"].size(), 1U);
  const Json& lane = (*operators)["lanes"][0];
  EXPECT_EQ(lane["label"], "stream 9");
  const auto spans = decode_lane(lane["spans"].get<std::string>());
  const std::uint64_t origin = drawn.fields["origin_ns"].get<std::uint64_t>();
  ASSERT_EQ(spans.size(), 4U);
  const std::pair<std::uint64_t, std::uint64_t> expected[] = {{1000, 1150}, {1200, 1350}, {1500, 1550}, {1600, 1650}};
  for (std::size_t i = 0; i < spans.size(); ++i) {
    EXPECT_EQ(origin + spans[i].start, expected[i].first) << i;
    EXPECT_EQ(origin + spans[i].start + spans[i].duration, expected[i].second) << i;
    EXPECT_EQ(drawn.fields["names"][spans[i].name]["text"], "aten::mm");
    EXPECT_EQ(drawn.fields["names"][spans[i].name]["kind"], "operator");
  }
  timeline.operations.clear();
  EXPECT_EQ(group_of(draw_timeline(timeline, 100).fields, "Operators of GPU 0"), nullptr);
}

TEST(DrawnTimeline, survives_what_is_empty_or_has_no_lanes) {
  EXPECT_EQ(draw_timeline({}, 10).spans, 0U);
  EXPECT_TRUE(draw_timeline({}, 10).fields["groups"].empty());
  Timeline bare;
  bare.spans = {span_of(5, 1, 2, kNoName, 77)};
  bare.calls.push_back({kNoName, 1, 0, 9, CallKind::launch, 0, 3});
  const DrawnTimeline drawn = draw_timeline(bare, 10);
  EXPECT_EQ(drawn.spans, 2U);
  const Json* streams = group_of(drawn.fields, "Streams of device");
  ASSERT_NE(streams, nullptr) << drawn.fields.dump();
  EXPECT_EQ((*streams)["lanes"][0]["label"], "stream 5");
  EXPECT_NE(group_of(drawn.fields, "Hardware queues of device"), nullptr);
}

TEST(DrawnTimeline, bounds_names_and_lanes) {
  Timeline timeline = two_streams();
  timeline.names.assign(70'000, std::string(3000, 'x'));
  timeline.streams.clear();
  for (std::uint16_t i = 0; i < 3000; ++i) timeline.streams.push_back({0, i, ""});
  for (std::uint32_t i = 0; i < 70'000; ++i)
    timeline.spans.push_back(span_of(static_cast<std::uint16_t>(i % 3000), i, i + 1, i));
  const DrawnTimeline drawn = draw_timeline(timeline, 1'000'000);
  EXPECT_LT(drawn.fields["names"].dump().size(), 12U << 20);
  EXPECT_EQ((*group_of(drawn.fields, "Streams of GPU 0"))["lanes"].size(), 2000U);
  EXPECT_TRUE(has_note(drawn, "3000 lanes, of which the 2000"));
  EXPECT_TRUE(has_note(drawn, "names are too many to keep"));
  for (const Json& lane : (*group_of(drawn.fields, "Streams of GPU 0"))["lanes"])
    for (const DecodedSpan& span : decode_lane(lane["spans"].get<std::string>()))
      ASSERT_LT(span.name, drawn.fields["names"].size());
}

}  // namespace
}  // namespace weir::page
