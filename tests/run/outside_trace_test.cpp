// Joining a profiler's records with the commands of a process that ran below it: by thread and time of the call, with
// the profiler's clock far from the host's. What cannot be joined has no times, and the reason is given.
#include "run/outside_trace.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/error.h"

namespace weir {
namespace {

constexpr std::int64_t kAhead = 5'000'000'000'000;  // of the profiler's clock
constexpr std::uint32_t kThread = 4711;

// A step whose commands are submitted every 1,000 ns, and what a profiler recorded of them: each runs 200 ns after its
// call for 300 ns, on queue 7 for stream 0, 8 for stream 1 and so on.
struct Case {
  explicit Case(int iterations = 2) {
    const auto device = open_device("sim:h200", {});
    RunRequest request;
    request.workload = "tiny_kernel_stress";
    request.scale = Scale::tiny;
    request.streams = 3;
    built.emplace(build_run(device->info(), request));
    const auto count = static_cast<std::uint32_t>(built->step.commands().size());
    for (std::int32_t queue = 0; queue < 3; ++queue)
      records.queues.push_back({queue, 0, "queue " + std::to_string(queue + 7)});
    std::int64_t now = 1'000'000;
    for (int iteration = 1; iteration <= iterations; ++iteration)
      for (CommandId id = 0; id < count; ++id, now += 1000) add(id, iteration, now);
    outside.fixes = {{1'000'000 + kAhead, 1'000'000, 40}, {now + kAhead, now, 40}};
  }

  void add(CommandId id, int iteration, std::int64_t now) {
    Span span = untimed_span(built->step, built->placement, id, static_cast<std::uint64_t>(iteration));
    span.submitted_ns = now;
    span.accepted_ns = now + 400;
    span.call = static_cast<std::uint32_t>(outside.pass.timeline.calls.size());
    HostCall noted;
    noted.thread = kThread;
    outside.pass.timeline.calls.push_back(noted);
    outside.pass.timeline.spans.push_back(span);
    add_record(now + 30, now + 380, now + 600, now + 900, span.stream);
  }

  // On the host's clock. Returns the record.
  std::size_t add_record(std::int64_t called, std::int64_t returned, std::int64_t started, std::int64_t ended,
                         std::uint16_t stream, CallKind kind = CallKind::launch) {
    HostCall call;
    call.thread = kThread;
    call.kind = kind;
    call.started_ns = called + kAhead;
    call.ended_ns = returned + kAhead;
    Span record;
    record.call = static_cast<std::uint32_t>(records.calls.size());
    record.queue = stream;
    record.started_ns = started + kAhead;
    record.ended_ns = ended + kAhead;
    records.calls.push_back(call);
    records.spans.push_back(record);
    return records.spans.size() - 1;
  }

  const std::vector<Span>& join() {
    join_records(outside, records, built->step, "a test");
    return outside.pass.timeline.spans;
  }
  std::string source() const { return outside.pass.timeline.source; }

  std::optional<BuiltRun> built;
  OutsidePass outside;
  Timeline records;
};

// The clocks' map is a line in floating point.
void expect_near(std::int64_t is, std::int64_t wanted) { EXPECT_NEAR(static_cast<double>(is - wanted), 0, 2); }

void expect_joined(const Span& span) {
  expect_near(span.started_ns, span.submitted_ns + 600);
  expect_near(span.ended_ns, span.submitted_ns + 900);
  EXPECT_EQ(span.queue, span.stream + 7);
}

bool is_empty(const Span& span) {
  return span.started_ns == kNoTime && span.ended_ns == kNoTime && span.queue == kNoQueue;
}

TEST(OutsideTrace, commands_get_the_times_and_queues_of_their_records) {
  Case test;
  for (const Span& span : test.join()) expect_joined(span);
  EXPECT_EQ(test.source(), "records of a test around a process of its own");
  EXPECT_TRUE(test.outside.pass.timeline.has_exact_gaps);
  EXPECT_TRUE(test.outside.pass.timeline.calls.empty());
}

TEST(OutsideTrace, the_order_of_records_does_not_matter) {
  Case test;
  std::reverse(test.records.spans.begin(), test.records.spans.end());
  for (const Span& span : test.join()) expect_joined(span);
}

TEST(OutsideTrace, a_missing_record_leaves_its_command_alone_without_times) {
  Case test;
  test.records.spans.erase(test.records.spans.begin() + 3);
  const std::vector<Span>& spans = test.join();
  for (std::size_t i = 0; i < spans.size(); ++i)
    if (i == 3)
      EXPECT_TRUE(is_empty(spans[i]));
    else
      expect_joined(spans[i]);
  EXPECT_NE(test.source().find("; 1 of " + std::to_string(spans.size()) + " commands have no times"), std::string::npos)
      << test.source();
}

TEST(OutsideTrace, a_command_may_be_several_kernels) {
  Case test;
  const Span first = test.outside.pass.timeline.spans[0];
  test.add_record(first.submitted_ns + 385, first.submitted_ns + 395, first.submitted_ns + 910,
                  first.submitted_ns + 950, 0);
  const Span& span = test.join()[0];
  expect_near(span.started_ns, first.submitted_ns + 600);
  expect_near(span.launched_ns, first.submitted_ns + 910);
  expect_near(span.ended_ns, first.submitted_ns + 950);
  // One that has one of its two is not whole.
  Case lacking;
  lacking.add_record(first.submitted_ns + 385, first.submitted_ns + 395, 0, 0, 0);
  lacking.records.spans.pop_back();
  EXPECT_TRUE(is_empty(lacking.join()[0]));
  EXPECT_FALSE(is_empty(lacking.join()[1]));
}

TEST(OutsideTrace, nothing_is_joined_where_the_clocks_do_not_fit) {
  Case test;
  // Calls with records between those of the commands.
  const std::int64_t between = test.outside.pass.timeline.spans[1].accepted_ns + 100;
  test.add_record(between, between + 50, between + 100, between + 200, 0);
  for (const Span& span : test.join()) EXPECT_TRUE(is_empty(span));
  EXPECT_NE(test.source().find("because 1 calls with records lie between"), std::string::npos) << test.source();
  Case none;
  none.outside.fixes.clear();
  none.outside.no_clock = "nobody has a clock";
  for (const Span& span : none.join()) EXPECT_TRUE(is_empty(span));
  EXPECT_NE(none.source().find("nobody has a clock"), std::string::npos) << none.source();
}

TEST(OutsideTrace, a_stream_whose_records_are_not_in_order_has_no_times) {
  Case test;
  std::vector<std::size_t> of_first;
  const auto& spans = test.outside.pass.timeline.spans;
  for (std::size_t i = 0; i < spans.size(); ++i)
    if (spans[i].stream == spans[0].stream) of_first.push_back(i);
  ASSERT_GE(of_first.size(), 2U);
  const std::uint16_t stream = spans[0].stream;
  std::swap(test.records.spans[of_first[0]].call, test.records.spans[of_first[1]].call);
  for (const Span& span : test.join())
    if (span.stream == stream)
      EXPECT_TRUE(is_empty(span));
    else
      expect_joined(span);
  EXPECT_NE(test.source().find("1 streams have no times"), std::string::npos) << test.source();
}

TEST(OutsideTrace, a_kernel_needs_a_kernels_record) {
  Case test;
  test.records.spans[2].kind = SpanKind::copy;
  EXPECT_TRUE(is_empty(test.join()[2]));
  EXPECT_NE(test.source().find("1 have no times, because their records are of another kind"), std::string::npos);
}

TEST(OutsideTrace, records_of_other_threads_are_not_its) {
  Case test;
  EXPECT_TRUE(has_calls_of(test.records, test.outside));
  for (HostCall& call : test.records.calls) call.thread = kThread + 1;
  EXPECT_FALSE(has_calls_of(test.records, test.outside));
  for (const Span& span : test.join()) EXPECT_TRUE(is_empty(span));
}

TEST(OutsideTrace, calls_without_times_are_not_joined) {
  Case test;
  for (HostCall& call : test.records.calls) call.started_ns = kNoTime;
  for (const Span& span : test.join()) EXPECT_TRUE(is_empty(span));
  EXPECT_FALSE(has_device_times(test.outside.pass.timeline, test.built->step)) << "so another profiler is tried";
  Case other;
  other.join();
  EXPECT_TRUE(has_device_times(other.outside.pass.timeline, other.built->step));
}

TEST(OutsideTrace, notes_survive_their_document) {
  Case test;
  test.outside.pass.rounds = {{1, 10, 25}, {2, 30, 60}};
  const Json document = Json::parse(to_json(test.outside).dump());
  OutsidePass read = outside_pass(document, test.built->step, test.built->placement);
  ASSERT_EQ(read.pass.timeline.spans.size(), test.outside.pass.timeline.spans.size());
  EXPECT_EQ(read.pass.latency_ns, (std::vector<double>{15, 30}));
  join_records(read, test.records, test.built->step, "a test");
  for (const Span& span : read.pass.timeline.spans) expect_joined(span);
}

TEST(OutsideTrace, damaged_notes_are_an_error) {
  Case test;
  const std::string good = to_json(test.outside).dump();
  const auto reads = [&](const std::string& text) {
    return outside_pass(Json::parse(text), test.built->step, test.built->placement);
  };
  EXPECT_NO_THROW(reads(good));
  for (const char* const text : {"{}", "[]", R"({"spans":[],"rounds":[],"fixes":[[1]],"no_clock":""})",
                                 R"({"spans":[[1,999999,0,0,0,0,0,1]],"rounds":[],"fixes":[],"no_clock":""})",
                                 R"({"spans":[[1,0,"x",0,0,0,0,1]],"rounds":[],"fixes":[],"no_clock":""})",
                                 R"({"spans":[[1,0]],"rounds":[],"fixes":[],"no_clock":""})",
                                 R"({"spans":[7],"rounds":[],"fixes":[],"no_clock":""})",
                                 R"({"spans":[],"rounds":[[1,2]],"fixes":[],"no_clock":""})",
                                 R"({"spans":[],"rounds":[],"fixes":[],"no_clock":3})"})
    EXPECT_THROW(reads(text), Error) << text;
}

}  // namespace
}  // namespace weir
