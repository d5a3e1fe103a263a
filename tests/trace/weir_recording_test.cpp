#include <cstring>
#include <random>

#include "trace/importer_testing.h"
#include "trace/recording_testing.h"

namespace weir {
namespace {

const Span& group_named(const Timeline& timeline, std::string_view name) {
  for (const Span& span : timeline.spans)
    if (name_of(timeline, span) == name) return span;
  throw std::runtime_error("no span " + std::string(name));
}

bool has_group(const Timeline& timeline, std::string_view name) {
  return std::any_of(timeline.spans.begin(), timeline.spans.end(),
                     [&](const Span& span) { return name_of(timeline, span) == name; });
}

// A thread, and streams 13 and 14 at the places 0 and 1.
RecordingBuilder empty_recording(std::uint32_t chunks = 4) {
  RecordingBuilder builder(chunks);
  builder.add_thread(77);
  builder.add_stream(13);
  builder.add_stream(14);
  return builder;
}

Timeline timeline_of(const RecordingBuilder& builder) { return import_as("weir_recording", builder.bytes()); }

TEST(WeirRecording, spans_stand_for_groups_between_marks) {
  RecordingBuilder builder = empty_recording();
  builder.launch(0, 0, "first", 100, 110);
  builder.launch(0, 0, "second", 120, 130);
  builder.call(0, record::Kind::copy, "cuMemcpyHtoDAsync_v2", 0, 140, 150, {}, 4096);
  builder.mark(0, 0, 3, 500, 20);
  builder.call(0, record::Kind::copy, "cuMemcpyDtoHAsync_v2", 0, 600, 610, {}, 512);
  builder.mark(0, 0, 4, 700, 900);
  builder.call(0, record::Kind::graph_launch, "cuGraphLaunch", 0, 650, 720, {}, 0x99);
  builder.mark(0, 0, 5, 1000, 10);
  builder.launch(0, 0, "last but one", 1100, 1110);
  builder.launch(0, 0, "last", 1120, 1130);
  builder.header().beat_ns = 5000;
  const ImportedTrace trace = import_sniffed(builder.bytes());
  EXPECT_EQ(trace.files.at(0).format, "weir_recording");
  const Timeline& timeline = trace.timeline;
  EXPECT_TRUE(timeline.dropped.empty());
  ASSERT_EQ(timeline.spans.size(), 4U);
  const Span& first = group_named(timeline, "Memcpy HtoD and 2 before it");
  EXPECT_EQ(first.started_ns, 100);
  EXPECT_EQ(first.submitted_ns, 100);
  EXPECT_EQ(first.ended_ns, 500);
  EXPECT_EQ(first.kind, SpanKind::kernel);
  EXPECT_EQ(stream_id(timeline, first), 13U);
  EXPECT_EQ(first.queue, kNoQueue);
  const Span& copy = group_named(timeline, "Memcpy DtoH");
  EXPECT_EQ(copy.started_ns, 600);  // after the mark before it
  EXPECT_EQ(copy.ended_ns, 700);
  EXPECT_EQ(copy.kind, SpanKind::copy);
  EXPECT_EQ(copy.bytes, 512U);
  const Span& graph = group_named(timeline, "graph");
  EXPECT_EQ(graph.started_ns, 700);  // submitted before that
  EXPECT_EQ(graph.submitted_ns, 650);
  EXPECT_EQ(graph.ended_ns, 1000);
  const Span& rest = group_named(timeline, "last and 1 before it, not known to have ended");
  EXPECT_EQ(rest.started_ns, 1100);
  EXPECT_EQ(rest.ended_ns, 5000);
  ASSERT_EQ(timeline.calls.size(), 7U);
  EXPECT_EQ(timeline.calls[0].thread, 77U);
  EXPECT_EQ(timeline.names.at(timeline.calls[0].name), "cuLaunchKernel");
  EXPECT_EQ(timeline.names.at(timeline.calls[2].name), "cuMemcpyHtoDAsync");
  EXPECT_EQ(first.call, 0U);
  EXPECT_FALSE(timeline.has_exact_gaps);
  EXPECT_TRUE(timeline.has_dependencies);
  EXPECT_EQ(timeline.source, "groups of commands between marks of a flight recorder, CLOCK_MONOTONIC");
  EXPECT_TRUE(has_note(timeline, "process 4711: ./program two words"));
  EXPECT_TRUE(has_note(timeline, "it still runs, or it was killed"));
  EXPECT_TRUE(has_note(timeline, "each of the 4 spans stands for a group of up to 3 commands"));
  EXPECT_TRUE(has_note(timeline, "Nine of ten of their ends are known to 20.0 ns, all of them to 900 ns"));
  EXPECT_TRUE(has_note(timeline, "`weir record --exact`"));
  EXPECT_FALSE(has_note(timeline, "overwritten"));
}

TEST(WeirRecording, what_the_host_waited_for_has_ended) {
  RecordingBuilder builder = empty_recording();
  builder.launch(0, 0, "a", 100, 110);
  builder.launch(0, 1, "b", 120, 130);
  builder.call(0, record::Kind::stream_synchronize, "cuStreamSynchronize", 0, 140, 300);
  builder.launch(0, 0, "c", 310, 320);
  builder.call(0, record::Kind::context_synchronize, "cuCtxSynchronize", record::kNone, 330, 600);
  builder.call(0, record::Kind::synchronous_copy, "cuMemcpyDtoH_v2", 0, 700, 800, {}, 64);
  builder.launch(0, 1, "d", 810, 820);
  builder.stream(1).ended = 2;  // as the table of streams says, without a mark
  builder.stream(1).ended_ns = 900;
  const Timeline timeline = timeline_of(builder);
  ASSERT_EQ(timeline.spans.size(), 5U);
  EXPECT_EQ(group_named(timeline, "a").ended_ns, 300);
  EXPECT_EQ(group_named(timeline, "a").seen_ns, 300);
  EXPECT_EQ(group_named(timeline, "b").ended_ns, 600);
  EXPECT_EQ(group_named(timeline, "c").ended_ns, 600);
  EXPECT_EQ(group_named(timeline, "Memcpy DtoH").ended_ns, 800);
  EXPECT_EQ(group_named(timeline, "d").ended_ns, 900);
}

// A failed wait says nothing, and neither does one that began before the command was there.
TEST(WeirRecording, other_waits_say_nothing) {
  RecordingBuilder builder = empty_recording();
  builder.add_thread(78);
  builder.launch(0, 0, "a", 100, 110);
  builder.call(0, record::Kind::stream_synchronize, "cuStreamSynchronize", 0, 140, 300, {}, 0, record::flag::kFailed);
  builder.call(1, record::Kind::stream_synchronize, "cuStreamSynchronize", 0, 105, 310);
  const Timeline timeline = timeline_of(builder);
  ASSERT_EQ(timeline.spans.size(), 1U);
  EXPECT_TRUE(has_group(timeline, "a, not known to have ended"));
}

TEST(WeirRecording, an_event_makes_groups_depend) {
  RecordingBuilder builder = empty_recording();
  builder.launch(0, 1, "before", 80, 90);
  builder.mark(0, 1, 1, 95);
  builder.launch(0, 0, "producer", 100, 110);
  builder.call(0, record::Kind::event_record, "cuEventRecord", 0, 120, 125, {}, 0xe0);
  builder.mark(0, 0, 1, 200);
  builder.launch(0, 0, "later", 210, 220);
  builder.mark(0, 0, 2, 300);
  builder.call(0, record::Kind::stream_wait_event, "cuStreamWaitEvent", 1, 130, 135, {}, 0xe0);
  builder.launch(0, 1, "consumer", 140, 150);
  builder.mark(0, 1, 2, 400);
  builder.call(0, record::Kind::event_record, "cuEventRecord", 1, 410, 420, {}, 0xe1, record::flag::kCaptured);
  builder.call(0, record::Kind::stream_wait_event, "cuStreamWaitEvent", 0, 430, 435, {}, 0xe1, record::flag::kCaptured);
  builder.call(0, record::Kind::stream_wait_event, "cuStreamWaitEvent", 0, 440, 445, {}, 0xe2);
  const Timeline timeline = timeline_of(builder);
  ASSERT_EQ(timeline.dependencies.size(), 1U);
  EXPECT_EQ(name_of(timeline, timeline.spans.at(timeline.dependencies[0].before)), "producer");
  EXPECT_EQ(name_of(timeline, timeline.spans.at(timeline.dependencies[0].after)), "consumer");
  EXPECT_EQ(dropped(timeline, "event that was not recorded"), 1U);
}

// Nothing is claimed of a group that contains what came before the wait, or after the event.
TEST(WeirRecording, groups_around_an_event_do_not_depend) {
  RecordingBuilder builder = empty_recording();
  builder.launch(0, 0, "producer", 100, 110);
  builder.call(0, record::Kind::event_record, "cuEventRecord", 0, 120, 125, {}, 0xe0);
  builder.launch(0, 0, "later", 126, 128);
  builder.launch(0, 1, "before", 129, 129);
  builder.call(0, record::Kind::stream_wait_event, "cuStreamWaitEvent", 1, 130, 135, {}, 0xe0);
  builder.launch(0, 1, "consumer", 140, 150);
  builder.mark(0, 0, 2, 200);
  builder.mark(0, 1, 2, 300);
  const Timeline timeline = timeline_of(builder);
  EXPECT_EQ(timeline.spans.size(), 2U);
  EXPECT_TRUE(timeline.dependencies.empty());
  EXPECT_TRUE(timeline.dropped.empty());
}

TEST(WeirRecording, what_is_older_than_something_overwritten_is_left_out) {
  RecordingBuilder builder = empty_recording();
  builder.header().is_exact = 1;
  for (const std::int64_t at : {100, 1'000'000}) {
    const auto call = builder.launch(0, 0, "kernel(int)", at, at + 10);
    builder.device(0, call.correlation, 0, at + 20, at + 30, "kernel(int)", 107);
  }
  EXPECT_EQ(timeline_of(builder).spans.size(), 2U);
  builder.header().overwritten_ns = 500;
  const Timeline timeline = timeline_of(builder);
  ASSERT_EQ(timeline.spans.size(), 1U);
  EXPECT_EQ(timeline.calls.size(), 1U);
}

TEST(WeirRecording, the_devices_records_are_commands) {
  RecordingBuilder builder = empty_recording();
  builder.header().is_exact = 1;
  const auto first = builder.launch(0, 0, "first(int)", 100, 110);
  builder.call(0, record::Kind::event_record, "cuEventRecord", 0, 120, 125, {}, 0xe0);
  builder.call(0, record::Kind::stream_wait_event, "cuStreamWaitEvent", 1, 130, 135, {}, 0xe0);
  const auto second = builder.launch(0, 1, "second(int)", 140, 150);
  const auto copy = builder.call(0, record::Kind::copy, "cuMemcpyDtoHAsync_v2", 0, 160, 170, {}, 4096);
  const auto memset = builder.call(0, record::Kind::memset, "cuMemsetD8Async", 0, 180, 190, {}, 64);
  builder.call(0, record::Kind::stream_synchronize, "cuStreamSynchronize", 0, 200, 2700);
  builder.device(0, first.correlation, 0, 1000, 2000, "first(int)", 107);
  builder.device(0, second.correlation, 1, 2100, 2200, "second(int)", 108);
  builder.device(0, copy.correlation, 0, 2300, 2400, {}, 3, 4096);
  builder.device(0, memset.correlation, 0, 2500, 2600, {}, record::kNone, 64);
  builder.device(0, memset.correlation, 0, 0, 0, {}, record::kNone, 64);
  builder.mark(0, 0, 3, 2650, 5);
  builder.range(0, "step 0", 90, 3000);
  builder.header().state = static_cast<std::uint32_t>(record::State::ended);
  const Timeline timeline = timeline_of(builder);
  ASSERT_EQ(timeline.spans.size(), 4U);
  EXPECT_EQ(dropped(timeline, "could not take"), 1U);
  const Span& span = timeline.spans[0];
  EXPECT_EQ(name_of(timeline, span), "first(int)");
  EXPECT_EQ(span.submitted_ns, 100);
  EXPECT_EQ(span.started_ns, 1000);
  EXPECT_EQ(span.seen_ns, 2700);
  EXPECT_EQ(queue_label(timeline, span), "queue 107");
  EXPECT_EQ(timeline.spans[1].seen_ns, kNoTime);
  EXPECT_EQ(name_of(timeline, timeline.spans[2]), "Memcpy DtoH");
  EXPECT_EQ(timeline.spans[2].kind, SpanKind::copy);
  EXPECT_EQ(timeline.spans[2].bytes, 4096U);
  EXPECT_GE(timeline.spans[2].queue, kCopyQueues);
  EXPECT_EQ(timeline.spans[3].kind, SpanKind::memset);
  EXPECT_EQ(timeline.spans[3].queue, kNoQueue);
  ASSERT_EQ(timeline.dependencies.size(), 1U);
  EXPECT_EQ(timeline.dependencies[0].before, 0U);
  EXPECT_EQ(timeline.dependencies[0].after, 1U);
  ASSERT_EQ(timeline.ranges.size(), 1U);
  EXPECT_TRUE(timeline.has_exact_gaps);
  EXPECT_FALSE(has_note(timeline, "stands for a group"));
  EXPECT_FALSE(has_note(timeline, "it still runs"));
  EXPECT_EQ(timeline.source, "the device's records, kept by a flight recorder, CLOCK_MONOTONIC");
}

// What CUPTI had not handed over when the program was killed is known by marks only.
TEST(WeirRecording, records_that_are_missing_leave_groups) {
  RecordingBuilder builder = empty_recording();
  builder.header().is_exact = 1;
  const auto first = builder.launch(0, 0, "first", 100, 110);
  builder.launch(0, 0, "second", 120, 130);
  builder.launch(0, 0, "third", 140, 150);
  builder.device(0, first.correlation, 0, 200, 300, "first", 107);
  builder.mark(0, 0, 1, 310);
  builder.mark(0, 0, 2, 400);
  const Timeline timeline = timeline_of(builder);
  ASSERT_EQ(timeline.spans.size(), 3U);
  EXPECT_EQ(group_named(timeline, "first").ended_ns, 300);
  EXPECT_EQ(group_named(timeline, "second").started_ns, 310);
  EXPECT_EQ(group_named(timeline, "second").ended_ns, 400);
  EXPECT_TRUE(has_group(timeline, "third, not known to have ended"));
  EXPECT_TRUE(has_note(timeline, "the last 2 commands have no record of the device"));
}

TEST(WeirRecording, a_graph_has_many_commands) {
  RecordingBuilder builder = empty_recording();
  builder.header().is_exact = 1;
  const auto graph = builder.call(0, record::Kind::graph_launch, "cuGraphLaunch", 0, 100, 110, {}, 0x99);
  builder.device(0, graph.correlation, 0, 200, 300, "root", 5);
  // Branches, on streams that the program does not have.
  builder.device(0, graph.correlation, record::kNone, 310, 400, "left", 6);
  builder.device(0, graph.correlation, record::kNone, 320, 390, "right", 7);
  builder.device(0, graph.correlation, record::kNone, 410, 420, {}, 8, 32);
  const Timeline timeline = timeline_of(builder);
  ASSERT_EQ(timeline.spans.size(), 4U);
  for (const Span& span : timeline.spans) EXPECT_EQ(span.call, 0U);
  EXPECT_EQ(stream_id(timeline, group_named(timeline, "root")), 13U);
  const Span &left = group_named(timeline, "left"), &right = group_named(timeline, "right");
  const Span& copy = group_named(timeline, "Memcpy or Memset");
  EXPECT_NE(left.stream, right.stream);
  EXPECT_TRUE(copy.stream == left.stream || copy.stream == right.stream);
  EXPECT_EQ(timeline.streams.at(left.stream).label, "branch 1 of graphs, context 1");
}

TEST(WeirRecording, a_place_serves_one_stream_after_another) {
  RecordingBuilder builder = empty_recording();
  builder.launch(0, 0, "old", 100, 110);
  builder.launch(0, 0, "old", 120, 130);
  builder.mark(0, 0, 2, 200);
  builder.call(0, record::Kind::other, "cuStreamDestroy_v2", 0, 210, 220);
  builder.replace_stream(0, 21);
  builder.mark(0, 0, 2, 225);  // of the stream that was destroyed
  builder.launch(0, 0, "new", 230, 240);
  builder.mark(0, 0, 1, 300);
  const Timeline timeline = timeline_of(builder);
  ASSERT_EQ(timeline.spans.size(), 2U);
  const Span& old = group_named(timeline, "old and 1 before it");
  EXPECT_EQ(old.ended_ns, 200);
  EXPECT_EQ(timeline.streams.at(old.stream).label, "destroyed stream 0 of context 1");
  const Span& fresh = group_named(timeline, "new");
  EXPECT_EQ(stream_id(timeline, fresh), 21U);
  EXPECT_EQ(fresh.ended_ns, 300);
  EXPECT_EQ(dropped(timeline, "mark that is not of the commands"), 1U);
}

// Marks are seen late; what had ended by then cannot have ended later.
TEST(WeirRecording, a_later_mark_may_know_better) {
  RecordingBuilder builder = empty_recording();
  builder.launch(0, 0, "a", 100, 110);
  builder.launch(0, 0, "b", 120, 130);
  builder.mark(0, 0, 2, 250);
  builder.mark(0, 0, 1, 300);
  const Timeline timeline = timeline_of(builder);
  ASSERT_EQ(timeline.spans.size(), 1U);
  EXPECT_EQ(group_named(timeline, "b and 1 before it").ended_ns, 250);
}

TEST(WeirRecording, a_mark_before_its_command_is_none) {
  RecordingBuilder builder = empty_recording();
  builder.launch(0, 0, "a", 100, 110);
  builder.launch(0, 0, "b", 120, 130);
  builder.mark(0, 0, 2, 115);
  builder.stream(0).ended = 0;
  const Timeline timeline = timeline_of(builder);
  EXPECT_EQ(dropped(timeline, "mark that is not of the commands"), 1U);
  EXPECT_TRUE(has_group(timeline, "b and 1 before it, not known to have ended"));
}

TEST(WeirRecording, numbers_of_commands_and_calls_may_wrap) {
  RecordingBuilder builder = empty_recording();
  builder.stream(0).submitted = UINT32_MAX - 1;
  record::Entry entry{};
  entry.kind = static_cast<std::uint8_t>(record::Kind::launch);
  entry.function = builder.add_function("cuLaunchKernel");
  entry.context = 1;
  for (std::uint32_t i = 0; i < 6; ++i) {
    entry.started_ns = 100 + i * 10;
    entry.ended_ns = 105 + i * 10;
    entry.correlation = UINT32_MAX - 2 + i;
    entry.number = UINT32_MAX - 2 + i;  // one of them is 0, which is no number
    entry.name = builder.add_text("k" + std::to_string(i));
    builder.append(0, entry);
  }
  builder.stream(0).submitted = std::uint64_t{UINT32_MAX} + 3;
  builder.mark(0, 0, UINT32_MAX - 1, 200);
  builder.mark(0, 0, std::uint64_t{UINT32_MAX} + 3, 300);
  const Timeline timeline = timeline_of(builder);
  ASSERT_EQ(timeline.spans.size(), 2U);
  EXPECT_EQ(group_named(timeline, "k1 and 1 before it").ended_ns, 200);
  EXPECT_EQ(group_named(timeline, "k5 and 3 before it").ended_ns, 300);
  EXPECT_TRUE(timeline.dropped.empty());
}

// Ranks are aligned by the ends of collectives, which nobody knows here.
TEST(WeirRecording, groups_are_no_collectives) {
  RecordingBuilder builder = empty_recording();
  builder.launch(0, 0, "ncclDevKernel_AllReduce_Sum_f32(int)", 100, 110);
  builder.mark(0, 0, 1, 200);
  builder.launch(0, 0, "gemm", 210, 220);
  builder.launch(0, 0, "ncclDevKernel_AllReduce_Sum_f32(int)", 230, 240);
  const Timeline timeline = timeline_of(builder);
  ASSERT_EQ(timeline.spans.size(), 2U);
  EXPECT_EQ(group_named(timeline, "group (ncclDevKernel_AllReduce_Sum_f32(int))").kind, SpanKind::kernel);
  EXPECT_EQ(
      group_named(timeline, "group (ncclDevKernel_AllReduce_Sum_f32(int) and 1 before it), not known to have ended")
          .kind,
      SpanKind::kernel);
  EXPECT_TRUE(timeline.collectives.empty());
  EXPECT_TRUE(has_note(timeline, "collectives count as compute"));
}

// Not every recorder numbers calls.
TEST(WeirRecording, commands_are_found_without_correlations) {
  RecordingBuilder builder = empty_recording();
  record::Entry entry{};
  entry.context = 1;
  const auto add = [&](record::Kind kind, std::uint32_t stream, std::int64_t at, std::uint32_t number) {
    entry.kind = static_cast<std::uint8_t>(kind);
    entry.function = builder.add_function(number == 0 ? "hipEvent" : "hipModuleLaunchKernel");
    entry.stream = stream;
    entry.started_ns = at;
    entry.ended_ns = at + 5;
    entry.number = number;
    entry.object = 0xe0;
    builder.append(0, entry);
  };
  add(record::Kind::launch, 0, 100, 1);
  add(record::Kind::event_record, 0, 110, 0);
  add(record::Kind::stream_wait_event, 1, 120, 0);
  add(record::Kind::launch, 1, 130, 1);
  builder.stream(0).submitted = builder.stream(1).submitted = 1;
  builder.mark(0, 0, 1, 200);
  builder.mark(0, 1, 1, 300);
  const Timeline timeline = timeline_of(builder);
  ASSERT_EQ(timeline.spans.size(), 2U);
  EXPECT_EQ(timeline.calls.at(timeline.spans[0].call).started_ns, 100);
  EXPECT_EQ(timeline.calls.at(timeline.spans[1].call).started_ns, 130);
  ASSERT_EQ(timeline.dependencies.size(), 1U);
}

TEST(WeirRecording, correlations_may_wrap) {
  RecordingBuilder builder = empty_recording();
  builder.header().is_exact = 1;
  std::uint32_t correlation = UINT32_MAX - 2;
  const auto add = [&](record::Kind kind, std::uint32_t stream, std::int64_t at) {
    record::Entry entry{};
    entry.kind = static_cast<std::uint8_t>(kind);
    entry.stream = stream;
    entry.context = 1;
    entry.started_ns = at;
    entry.ended_ns = at + 5;
    entry.correlation = ++correlation == 0 ? ++correlation : correlation;
    entry.number = record::is_command(kind) ? 1 : 0;
    entry.object = 0xe0;
    builder.append(0, entry);
    return entry.correlation;
  };
  const std::uint32_t first = add(record::Kind::launch, 0, 100);
  add(record::Kind::event_record, 0, 110);
  add(record::Kind::stream_wait_event, 1, 120);
  const std::uint32_t second = add(record::Kind::launch, 1, 130);
  ASSERT_GT(first, second);
  builder.stream(0).submitted = builder.stream(1).submitted = 1;
  builder.device(0, first, 0, 200, 300, "producer");
  builder.device(0, second, 1, 310, 400, "consumer");
  const Timeline timeline = timeline_of(builder);
  ASSERT_EQ(timeline.spans.size(), 2U);
  ASSERT_EQ(timeline.dependencies.size(), 1U);
  EXPECT_EQ(timeline.dependencies[0].before, 0U);
}

TEST(WeirRecording, a_ring_keeps_the_newest) {
  RecordingBuilder builder = empty_recording(3);
  const auto each = static_cast<std::int64_t>(record::kChunkEntries);
  for (std::int64_t i = 0; i < each * 9; ++i) {
    builder.launch(0, 0, "kernel", 1000 + i * 10, 1005 + i * 10);
    if (i % 100 == 99) builder.mark(0, 0, static_cast<std::uint64_t>(i + 1), 1009 + i * 10);
  }
  const Timeline timeline = timeline_of(builder);
  EXPECT_GT(timeline.calls.size(), 2000U);
  EXPECT_LT(timeline.calls.size(), static_cast<std::size_t>(each) * 3);
  EXPECT_TRUE(has_note(timeline, "older ones were overwritten"));
  EXPECT_TRUE(has_group(timeline, "kernel and 99 before it"));
  EXPECT_TRUE(timeline.dropped.empty());
  // All that is kept is in a group, and only the first one began before what is kept.
  for (const Span& span : timeline.spans) EXPECT_GE(span.started_ns, timeline.calls.at(0).started_ns);
}

TEST(WeirRecording, says_what_went_wrong) {
  RecordingBuilder builder = empty_recording();
  builder.header().message = builder.add_text("CUPTI is used by another profiler");
  builder.header().state = static_cast<std::uint32_t>(record::State::refused);
  builder.header().lost = 12;
  builder.header().is_off = 1;
  builder.launch(0, record::kNone, "kernel", 100, 110);
  builder.enter(0, record::Kind::stream_synchronize, "cuStreamSynchronize", 0, 200);
  builder.header().beat_ns = 1'000'000'200;
  const Timeline timeline = timeline_of(builder);
  EXPECT_TRUE(has_note(timeline, "while recording: CUPTI is used by another profiler"));
  EXPECT_TRUE(has_note(timeline, "nothing of this program was recorded"));
  EXPECT_TRUE(has_note(timeline, "switched off"));
  EXPECT_TRUE(has_note(timeline, "thread 77 (python3) was in cuStreamSynchronize for the last 1.00 s"));
  EXPECT_EQ(dropped(timeline, "no place for it"), 12U);
  EXPECT_EQ(dropped(timeline, "had no place for"), 1U);
  ASSERT_EQ(timeline.calls.size(), 2U);
  EXPECT_EQ(timeline.names.at(timeline.calls[1].name), "in cuStreamSynchronize, not known to have returned");
}

TEST(WeirRecording, an_empty_recording_is_an_empty_timeline) {
  const Timeline timeline = timeline_of(RecordingBuilder());
  EXPECT_TRUE(timeline.spans.empty());
  EXPECT_TRUE(timeline.calls.empty());
  EXPECT_NE(rejection_of("weir_recording", "{}").find("WEIRREC1"), std::string::npos);
  EXPECT_NE(rejection_of("weir_recording", "WEIRREC1").find("version 0"), std::string::npos);
}

TEST(WeirRecording, files_are_processes_of_their_own) {
  const ScratchFolder folder;
  RecordingBuilder first = empty_recording(), second = empty_recording();
  first.launch(0, 0, "a", 100, 110);
  second.launch(0, 0, "b", 100, 110);
  second.header().pid = 4712;
  const auto traces =
      import_traces({folder.write("4711.weirrec", first.bytes()), folder.write("4712.weirrec", second.bytes())}, {});
  ASSERT_EQ(traces.size(), 2U);
  EXPECT_TRUE(has_note(traces[0].timeline, "process 4711"));
  EXPECT_TRUE(has_note(traces[1].timeline, "process 4712"));
  EXPECT_EQ(traces[0].files.at(0).bytes, first.bytes().size());
}

TEST(WeirRecording, memory_is_limited) {
  RecordingBuilder builder = empty_recording();
  for (int i = 0; i < 4000; ++i) builder.launch(0, 0, "kernel", 100 + i, 101 + i);
  ImportOptions options;
  options.limits.memory_bytes = 100'000;
  const ScratchFolder folder;
  EXPECT_THROW(import_memory(builder.bytes(), "test", options), Error);
  EXPECT_THROW(import_traces({folder.write("1.weirrec", builder.bytes())}, options), Error);
}

void check_imported(const Timeline& timeline) {
  std::int64_t before = INT64_MIN;
  for (const Span& span : timeline.spans) {
    ASSERT_GE(span.started_ns, before);
    ASSERT_GE(span.ended_ns, span.started_ns);
    before = span.started_ns;
    ASSERT_LT(span.stream, timeline.streams.size());
    ASSERT_TRUE(span.call == kNoCall || span.call < timeline.calls.size());
  }
  for (const Dependency& edge : timeline.dependencies) {
    ASSERT_LT(edge.before, timeline.spans.size());
    ASSERT_LT(edge.after, timeline.spans.size());
  }
}

// Everything that a recording may have.
std::string varied_recording(bool is_exact) {
  RecordingBuilder builder = empty_recording();
  builder.header().is_exact = is_exact ? 1 : 0;
  for (std::uint32_t i = 0; i < 400; ++i) {
    const std::int64_t at = 1000 + i * 100;
    const std::uint32_t on = i % 2;
    const auto call = i % 7 == 0 ? builder.call(0, record::Kind::graph_launch, "cuGraphLaunch", on, at, at + 5, {}, 9)
                                 : builder.launch(0, on, "kernel", at, at + 5);
    if (is_exact) builder.device(0, call.correlation, i % 11 == 0 ? record::kNone : on, at + 20, at + 60, "kernel", on);
    if (i % 5 == 0) builder.call(0, record::Kind::event_record, "cuEventRecord", on, at + 6, at + 7, {}, i % 3);
    if (i % 5 == 1)
      builder.call(0, record::Kind::stream_wait_event, "cuStreamWaitEvent", on, at + 6, at + 7, {}, i % 3);
    if (i % 9 == 0) builder.mark(0, on, builder.stream(on).submitted, at + 70, 9);
    if (i % 50 == 0)
      builder.call(0, record::Kind::context_synchronize, "cuCtxSynchronize", record::kNone, at + 71, at + 80);
    if (i % 90 == 0) builder.call(0, record::Kind::other, "cuStreamDestroy_v2", on, at + 81, at + 82);
    if (i % 90 == 0) builder.replace_stream(on, 20 + i);
    if (i % 60 == 0) builder.range(0, "step", at, at + 99);
  }
  builder.enter(0, record::Kind::stream_synchronize, "cuStreamSynchronize", 0, 90'000);
  return builder.bytes();
}

TEST(WeirRecording, every_prefix_and_all_damage_is_read_or_refused) {
  std::mt19937 random(30);
  std::uniform_int_distribution<int> value(0, 255), many(1, 200);
  for (const bool is_exact : {false, true}) {
    const std::string whole = varied_recording(is_exact);
    check_imported(import_as("weir_recording", whole));
    for (std::size_t size = sizeof(record::Header); size < whole.size(); size += 997)
      check_imported(import_as("weir_recording", std::string_view(whole).substr(0, size)));
    // Of the whole, most bytes are of no use; of the entries, all are.
    record::Header header{};
    std::memcpy(&header, whole.data(), sizeof(header));
    std::uniform_int_distribution<std::size_t> anywhere(12, whole.size() - 1);
    std::uniform_int_distribution<std::size_t> entries(header.chunks_at, header.chunks_at + 30'000);
    for (int round = 0; round < 200; ++round) {
      std::string bytes = whole;
      for (int i = many(random); i > 0; --i)
        bytes[round % 2 == 0 ? anywhere(random) : entries(random)] = static_cast<char>(value(random));
      check_imported(import_as("weir_recording", bytes));
    }
  }
}

}  // namespace
}  // namespace weir
