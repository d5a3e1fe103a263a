// The Chrome/Kineto export: what other tools look for, odd texts, and the way back through our own importer.
#include "trace/export/chrome_json.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <map>
#include <set>
#include <string>

#include "base/error.h"
#include "trace/clock_alignment.h"
#include "trace/import/import.h"
#include "weir_build.h"

namespace weir {
namespace {

namespace fs = std::filesystem;

class ChromeJson : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = (fs::temp_directory_path() / "weir_chrome_XXXXXX").string();
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    folder_ = name;
  }
  void TearDown() override { fs::remove_all(folder_); }
  fs::path file(const std::string& name = "trace.json") const { return folder_ / name; }
  Json written(const Timeline& timeline, const ChromeExport& options = {}) const {
    write_chrome_json(timeline, options, file(), true);
    return read_json(file());
  }

 private:
  fs::path folder_;
};

// A kernel on each of two streams and queues, a copy on an engine that waits for the first, a collective, a host
// function and a command without times.
Timeline sample() {
  Timeline t;
  t.source = "made by hand";
  t.names = {"gemm", "Memcpy HtoD (Pinned -> Device)", "all_reduce", "note", "cuLaunchKernel", "ProfilerStep#1"};
  t.processes = {{3, "job"}};
  t.devices = {{0, 2, "Some GPU"}};
  t.streams = {{0, 7, "stream 7"}, {0, 9, "stream 9"}};
  t.queues = {{4, 0, "queue 4"}, {5, 0, "queue 5"}, {kCopyQueues + 1, 0, "copy engine 1"}};
  const auto add = [&](SpanKind kind, std::uint32_t name, std::uint16_t stream, std::int32_t queue, std::int64_t from,
                       std::int64_t to) -> Span& {
    Span span;
    span.kind = kind;
    span.name = name;
    span.stream = stream;
    span.queue = queue;
    span.started_ns = from;
    span.ended_ns = to;
    span.iteration = 1;
    span.command = static_cast<std::uint32_t>(t.spans.size());
    return t.spans.emplace_back(span);
  };
  Span& first = add(SpanKind::kernel, 0, 0, 4, 1'234'567, 1'240'000);
  first.submitted_ns = 1'230'000;
  first.accepted_ns = 1'231'001;
  first.launched_ns = 1'234'000;
  first.seen_ns = 1'300'000;
  first.call = 0;
  add(SpanKind::kernel, 0, 1, 5, 1'235'000, 1'236'000);
  add(SpanKind::copy, 1, 1, kCopyQueues + 1, 1'241'000, 1'242'000).bytes = 4096;
  add(SpanKind::collective, 2, 0, 4, 1'250'000, 1'260'000).bytes = 1024;
  add(SpanKind::host, 3, 0, kNoQueue, 1'270'000, 1'280'000);
  add(SpanKind::kernel, 0, 0, kNoQueue, kNoTime, kNoTime);
  t.calls = {{4, 11, 1, 0, CallKind::launch, 1'230'000, 1'231'001}};
  t.dependencies = {{0, 2}};
  t.has_dependencies = true;
  t.collectives = {{3, CollectiveKind::all_reduce, 8, kNoName, 1024}};
  t.ranges = {{5, 0, 1'229'000, 1'300'000}};
  return t;
}

std::vector<Json> of_category(const Json& trace, const std::string& category) {
  std::vector<Json> found;
  for (const Json& event : trace["traceEvents"])
    if (event["cat"] == category) found.push_back(event);
  return found;
}

// Viewers read microseconds as doubles, which hold no nanoseconds since 1970.
TEST_F(ChromeJson, TimesSince1970CountFromABase) {
  Timeline timeline = sample();
  const std::int64_t now = 1'700'000'000'000'000'001;
  shift_clock(timeline, now);
  timeline.collectives[0].sequence = 12;
  const Json json = written(timeline);
  EXPECT_EQ(json["baseTimeNanoseconds"].get<std::int64_t>() % 1'000'000'000, 0);
  for (const Json& event : json["traceEvents"]) EXPECT_LT(event["ts"].get<double>(), 3e6);
  EXPECT_FALSE(written(sample()).contains("baseTimeNanoseconds"));
  written(timeline);
  const Timeline read = import_traces({file()}, {}).at(0).timeline;
  ASSERT_EQ(read.spans.size(), 5u);
  EXPECT_EQ(read.spans[0].started_ns, now + 1'234'567);
  EXPECT_EQ(read.spans[0].seen_ns, now + 1'300'000);
  EXPECT_EQ(read.calls.at(0).started_ns, now + 1'230'000);
  EXPECT_EQ(read.ranges.at(0).ended_ns, now + 1'300'000);
  EXPECT_EQ(read.collectives.at(0).sequence, 12u);
}

TEST_F(ChromeJson, has_what_kineto_has) {
  const Json trace = written(sample(), {.process_id = 4711, .world_size = 8, .device_properties = {{"numSms", 132}}});
  EXPECT_EQ(trace["schemaVersion"], 1);
  EXPECT_EQ(trace["distributedInfo"]["rank"], 3);
  EXPECT_EQ(trace["distributedInfo"]["world_size"], 8);
  EXPECT_EQ(trace["deviceProperties"], Json::parse(R"([{"id":2,"name":"Some GPU","numSms":132}])"));
  const auto kernels = of_category(trace, "kernel");
  ASSERT_EQ(kernels.size(), 3u);
  EXPECT_EQ(kernels[0]["name"], "gemm");
  EXPECT_EQ(kernels[0]["pid"], 2);
  EXPECT_EQ(kernels[0]["tid"], 7);
  EXPECT_EQ(kernels[0]["ts"], 1234.567);
  EXPECT_EQ(kernels[0]["dur"], 5.433);
  const Json& args = kernels[0]["args"];
  EXPECT_EQ(args["stream"], 7);
  EXPECT_EQ(args["device"], 2);
  EXPECT_EQ(args["queue"], 4);
  EXPECT_EQ(args["correlation"], 4);
  EXPECT_EQ(args["iteration"], 1);
  EXPECT_EQ(args["submitted"], 1230.0);
  EXPECT_EQ(args["accepted"], 1231.001);
  EXPECT_EQ(args["seen"], 1300.0);
  EXPECT_FALSE(args.contains("enqueued"));
  const auto calls = of_category(trace, "cuda_runtime");
  ASSERT_GE(calls.size(), 1u);
  EXPECT_EQ(calls[0]["pid"], 4711);
  EXPECT_EQ(calls[0]["tid"], 11);
  EXPECT_EQ(calls[0]["args"]["correlation"], 4);
  const auto copies = of_category(trace, "gpu_memcpy");
  ASSERT_EQ(copies.size(), 1u);
  EXPECT_EQ(copies[0]["args"]["bytes"], 4096);
  EXPECT_EQ(copies[0]["args"]["queue"], 1);
  EXPECT_EQ(copies[0]["args"]["copy engine"], true);
  EXPECT_EQ(kernels[2]["args"]["Collective name"], "all_reduce");
  EXPECT_EQ(kernels[2]["args"]["Group size"], 8);
  EXPECT_EQ(of_category(trace, "host_function").size(), 1u);
  EXPECT_EQ(of_category(trace, "user_annotation")[0]["name"], "ProfilerStep#1");
  EXPECT_EQ(trace["weir"]["left_out_without_times"], 1);
}

TEST_F(ChromeJson, shows_queues_and_waits) {
  const Json trace = written(sample());
  std::map<std::int64_t, int> queues;
  for (const Json& event : of_category(trace, "hardware_queue")) {
    EXPECT_EQ(event["pid"], 1'000'002);
    ++queues[event["tid"].get<std::int64_t>()];
  }
  EXPECT_EQ(queues, (std::map<std::int64_t, int>{{4, 2}, {5, 1}, {kCopyQueues + 1, 1}}));
  const auto waits = of_category(trace, "cuda_sync");
  ASSERT_EQ(waits.size(), 1u);
  EXPECT_EQ(waits[0]["name"], "Stream Wait Event");
  EXPECT_EQ(waits[0]["args"]["stream"], 9);
  EXPECT_EQ(waits[0]["args"]["wait_on_stream"], 7);
  EXPECT_EQ(waits[0]["args"]["correlation"], 11);                       // of command 2, less 1
  EXPECT_EQ(waits[0]["args"]["wait_on_cuda_event_record_corr_id"], 5);  // of command 0, and 1
  // An arrow has two ends, each within the slice that it ties.
  std::map<std::string, Json> ends;
  for (const Json& event : of_category(trace, "event_wait")) ends[event["ph"].string()] = event;
  EXPECT_EQ(ends["s"]["id"], ends["f"]["id"]);
  EXPECT_EQ(ends["s"]["tid"], 7);
  EXPECT_LT(ends["s"]["ts"].get<double>(), 1240.0);
  EXPECT_EQ(ends["f"]["tid"], 9);
  EXPECT_EQ(ends["f"]["ts"], 1241.0);
}

TEST_F(ChromeJson, commands_that_overlap_on_a_queue_get_lanes_of_their_own) {
  Timeline timeline = sample();
  timeline.spans[1].queue = 4;
  std::set<std::int64_t> lanes;
  const Json trace = written(timeline);
  for (const Json& event : of_category(trace, "hardware_queue"))
    if (event["tid"].get<std::int64_t>() % 100'000'000 == 4) lanes.insert(event["tid"].get<std::int64_t>());
  EXPECT_EQ(lanes.size(), 2u);
}

TEST_F(ChromeJson, queues_keep_the_numbers_that_the_hardware_has) {
  Timeline timeline = sample();
  timeline.queues[0].label = "queue 17";
  const Json trace = written(timeline);
  EXPECT_EQ(of_category(trace, "kernel")[0]["args"]["queue"], 17);
  EXPECT_EQ(of_category(trace, "hardware_queue")[0]["tid"], 17);
}

TEST_F(ChromeJson, odd_texts_are_escaped_or_mended) {
  Timeline timeline = sample();
  timeline.names[0] = "a\"b\\c\n\t\x01<T, \"x\">\xff\xfe";
  timeline.devices[0].label = "GPU \"1\"\xc3";
  const Json trace = written(timeline, {.about = {{"path", "\xff"}}});  // parses, or this throws
  EXPECT_EQ(of_category(trace, "kernel")[0]["name"].get<std::string>().substr(0, 14), "a\"b\\c\n\t\x01<T, \"x");
}

TEST_F(ChromeJson, negative_and_huge_times_keep_their_digits) {
  Timeline timeline = sample();
  timeline.spans.resize(1);
  timeline.spans[0].started_ns = -1'500;
  timeline.spans[0].ended_ns = 1'700'000'000'123'456'789;
  timeline.dependencies.clear();
  timeline.collectives.clear();
  write_chrome_json(timeline, {}, file(), true);
  const Json kernel = of_category(read_json(file()), "kernel")[0];
  EXPECT_EQ(kernel["ts"], -1.5);
  EXPECT_EQ(kernel["dur"], 1'700'000'000'123'458.289);
}

TEST_F(ChromeJson, an_empty_timeline_is_still_a_trace) {
  const Json trace = written({});
  EXPECT_TRUE(trace["traceEvents"].is_array());
  EXPECT_TRUE(of_category(trace, "kernel").empty());
}

TEST_F(ChromeJson, replaces_nothing_unless_told_and_leaves_no_half_file) {
  write_chrome_json(sample(), {}, file(), false);
  EXPECT_THROW(write_chrome_json(sample(), {}, file(), false), Error);
  EXPECT_THROW(write_chrome_json(sample(), {}, file("no/folder.json"), false), Error);
  EXPECT_EQ(std::distance(fs::directory_iterator(file().parent_path()), fs::directory_iterator()), 1);
}

TEST_F(ChromeJson, only_the_commands_of_its_process) {
  Timeline timeline = sample();
  timeline.processes.push_back({4, "other"});
  timeline.devices.push_back({1, 0, "Another GPU"});
  timeline.streams.push_back({1, 1, "stream 1"});
  timeline.spans[1].stream = 2;
  EXPECT_EQ(of_category(written(timeline), "kernel").size(), 2u);
  const Json other = written(timeline, {.process = 1});
  EXPECT_EQ(of_category(other, "kernel").size(), 1u);
  EXPECT_EQ(other["distributedInfo"]["rank"], 4);
  EXPECT_EQ(other["deviceProperties"].size(), 1u);
}

// Commands of one call share its correlation, so that cannot tell who waits for whom.
TEST_F(ChromeJson, waits_within_a_graph_come_back) {
  Timeline timeline = sample();
  timeline.dependencies.clear();
  for (Span& span : timeline.spans) span.call = 0;
  timeline.dependencies = {{1, 0}, {1, 3}, {0, 2}};
  write_chrome_json(timeline, {}, file(), false);
  const Timeline after = import_traces({file()}, {}).at(0).timeline;
  std::set<std::pair<std::uint32_t, std::uint32_t>> found;
  for (const Dependency& each : after.dependencies) found.emplace(each.before, each.after);
  EXPECT_EQ(found, (std::set<std::pair<std::uint32_t, std::uint32_t>>{{1, 0}, {1, 3}, {0, 2}}));
}

// What the importer must give back, in the file and in the packed one.
TEST_F(ChromeJson, comes_back_through_the_importer) {
  for (const char* name : {"back.json", "back.json.gz"}) {
    if (WEIR_HAVE_ZLIB == 0 && std::string(name).ends_with(".gz")) continue;
    write_chrome_json(sample(), {.process_id = 4711}, file(name), false);
    const auto traces = import_traces({file(name)}, {});
    ASSERT_EQ(traces.size(), 1u);
    EXPECT_EQ(traces[0].files[0].format, "kineto");
    const Timeline before = sample();
    const Timeline& after = traces[0].timeline;
    EXPECT_TRUE(after.dropped.empty()) << after.dropped[0].reason;
    ASSERT_EQ(after.spans.size(), 5u);
    for (std::size_t i = 0; i < after.spans.size(); ++i) {
      const Span &was = before.spans[i], &is = after.spans[i];
      EXPECT_EQ(after.names[is.name], before.names[was.name]) << i;
      EXPECT_EQ(is.kind, was.kind) << i;
      EXPECT_EQ(is.started_ns, was.started_ns) << i;
      EXPECT_EQ(is.ended_ns, was.ended_ns) << i;
      EXPECT_EQ(is.submitted_ns, was.submitted_ns) << i;
      EXPECT_EQ(is.accepted_ns, was.accepted_ns) << i;
      EXPECT_EQ(is.launched_ns, was.launched_ns) << i;
      EXPECT_EQ(is.seen_ns, was.seen_ns) << i;
      EXPECT_EQ(is.bytes, was.bytes) << i;
      EXPECT_EQ(is.iteration, was.iteration) << i;
      EXPECT_EQ(is.queue >= kCopyQueues, was.queue >= kCopyQueues) << i;
      EXPECT_EQ(is.queue == kNoQueue, was.queue == kNoQueue) << i;
      EXPECT_EQ(after.streams[is.stream].id, before.streams[was.stream].id) << i;
    }
    EXPECT_NE(after.spans[0].queue, after.spans[1].queue);
    EXPECT_EQ(after.spans[0].queue, after.spans[3].queue);
    EXPECT_TRUE(after.has_dependencies);
    ASSERT_EQ(after.dependencies.size(), 1u);
    EXPECT_EQ(after.dependencies[0].before, 0u);
    EXPECT_EQ(after.dependencies[0].after, 2u);
    ASSERT_EQ(after.collectives.size(), 1u);
    EXPECT_EQ(after.collectives[0].kind, CollectiveKind::all_reduce);
    EXPECT_EQ(after.collectives[0].bytes, 1024u);
    EXPECT_EQ(after.collectives[0].ranks, 8u);
    EXPECT_EQ(after.processes[0].rank, 3);
    ASSERT_FALSE(after.ranges.empty());
    EXPECT_EQ(after.names[after.ranges[0].name], "ProfilerStep#1");
  }
}

}  // namespace
}  // namespace weir
