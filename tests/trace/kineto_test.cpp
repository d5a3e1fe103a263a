#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "trace/import/import.h"
#include "trace/import/importer.h"
#include "trace/import/list.h"
#include "trace/importer_testing.h"
#include "trace/kineto_testing.h"
#include "trace/merge.h"

namespace weir {
namespace {

std::uint64_t dropped_exactly(const Timeline& timeline, std::string_view reason) {
  for (const Dropped& one : timeline.dropped)
    if (one.reason == reason) return one.count;
  return 0;
}

std::uint64_t all_dropped(const Timeline& timeline) {
  std::uint64_t count = 0;
  for (const Dropped& one : timeline.dropped) count += one.count;
  return count;
}

std::string name_of(const Timeline& timeline, std::size_t span) {
  return timeline.names.at(timeline.spans.at(span).name);
}

TEST(Kineto, KeysComeInAnyOrder) {
  const Timeline timeline = import_kineto(R"({"traceEvents": [
    {"args": {"stream": 20, "correlation": 27, "device": 3, "queue": 5}, "dur": 123, "ts": 1712867402348700, "tid": 20,
     "pid": 3, "name": "gemm", "cat": "kernel", "ph": "X"},
    {"name": "cudaLaunchKernel", "args": {"correlation": 27, "cbid": 211}, "cat": "cuda_runtime", "ph": "X",
     "pid": 9, "tid": 4444, "ts": 1712867402348690.5, "dur": 4},
    {"name": "aten::mm", "cat": "cpu_op", "ph": "X", "pid": 9, "tid": 4444, "ts": 1, "dur": 4, "args": {}}],
    "distributedInfo": {"backend": "nccl", "rank": 5},
    "deviceProperties": [{"name": "NVIDIA A100", "id": 3}], "baseTimeNanoseconds": 1719853884000000000})");
  ASSERT_EQ(timeline.spans.size(), 1U);
  const Span& span = timeline.spans[0];
  EXPECT_EQ(span.started_ns, 1712867402348700000);
  EXPECT_EQ(span.ended_ns, 1712867402348823000);
  EXPECT_EQ(span.submitted_ns, 1712867402348690500);
  EXPECT_EQ(span.accepted_ns, 1712867402348694500);
  EXPECT_EQ(timeline.streams.at(span.stream).id, 20U);
  EXPECT_EQ(timeline.devices.at(0).id, 3);
  EXPECT_EQ(timeline.devices.at(0).label, "GPU 3: NVIDIA A100");
  ASSERT_EQ(timeline.queues.size(), 1U);
  EXPECT_EQ(timeline.queues[0].label, "queue 5");
  EXPECT_EQ(span.queue, timeline.queues[0].id);
  EXPECT_EQ(timeline.processes.at(0).rank, 5);
  ASSERT_EQ(timeline.calls.size(), 1U);
  EXPECT_EQ(timeline.calls[0].kind, CallKind::launch);
  EXPECT_FALSE(timeline.has_dependencies);
  ASSERT_EQ(timeline.notes.size(), 2U);  // of the base, and of times in whole microseconds
  EXPECT_TRUE(timeline.dropped.empty());
}

TEST(Kineto, KnowsEverySpellingOfItsCategories) {
  const auto event = [](const std::string& category, int at) {
    return "{\"ph\":\"X\",\"cat\":\"" + category +
           "\",\"name\":\"n\",\"pid\":0,\"tid\":\"stream 7\",\"ts\":" + std::to_string(at) + ",\"dur\":1}";
  };
  const Timeline timeline =
      import_kineto("[" + event("Kernel", 1) + "," + event("gpu_memcpy", 2) + "," + event("Memcpy", 3) + "," +
                    event("gpu_memset", 4) + "," + event("Memset", 5) + "," + event("host_function", 6) + "," +
                    event("Runtime", 7) + "," + event("cuda_driver", 8) + "," + event("hip_runtime", 9) + "," +
                    event("gpu_user_annotation", 10) + "," + event("hardware_queue", 11) + "]");
  ASSERT_EQ(timeline.spans.size(), 6U);
  const SpanKind kinds[] = {SpanKind::kernel, SpanKind::copy,   SpanKind::copy,
                            SpanKind::memset, SpanKind::memset, SpanKind::host};
  for (std::size_t i = 0; i < 6; ++i) EXPECT_EQ(timeline.spans[i].kind, kinds[i]) << i;
  EXPECT_EQ(timeline.calls.size(), 3U);
  ASSERT_EQ(timeline.streams.size(), 1U);
  EXPECT_EQ(timeline.streams[0].id, 7U);
  EXPECT_TRUE(timeline.dropped.empty());
}

TEST(Kineto, CountsWhatHasNoUsableTime) {
  const auto event = [](const std::string& times) {
    return "{\"ph\": \"X\", \"cat\": \"kernel\", \"name\": \"k\", \"pid\": 0, \"tid\": 7" + times + "}";
  };
  const Timeline timeline =
      import_events(event(", \"ts\": 5") + "," + event(", \"dur\": 5") + "," + event(", \"ts\": 1, \"dur\": -2") + "," +
                    event(", \"ts\": NaN, \"dur\": 2") + "," + event(", \"ts\": 1e300, \"dur\": 2") + "," +
                    event(", \"ts\": 9223372036854775, \"dur\": 1000") + "," + event(", \"ts\": 4, \"dur\": 0"));
  EXPECT_EQ(timeline.spans.size(), 1U);
  EXPECT_EQ(dropped_exactly(timeline, "event without a duration"), 1U);
  EXPECT_EQ(dropped_exactly(timeline, "event without a start"), 1U);
  EXPECT_EQ(dropped_exactly(timeline, "event of negative duration"), 1U);
  EXPECT_EQ(dropped_exactly(timeline, "event whose time is not a number, or out of range"), 3U);
}

TEST(Kineto, LeavesOutNumbersBeyond64Bits) {
  const Timeline timeline = import_events(
      kineto_kernel(1, "k", ", \"bytes\": 99999999999999999999999999, \"External id\": 18446744073709551616"));
  ASSERT_EQ(timeline.spans.size(), 1U);
  EXPECT_EQ(timeline.spans[0].bytes, 0U);
  EXPECT_EQ(dropped_exactly(timeline, "number out of range"), 2U);
}

TEST(Kineto, ReadsOddTexts) {
  const Timeline timeline =
      import_events(kineto_kernel(1, R"(say "hi", {you})") + ",\n" + kineto_kernel(2, "bad\xff\x01utf") + "," +
                    kineto_kernel(3, R"(esc\"aped\u0041\\)") + ",,\n" + kineto_kernel(4) + ",");
  ASSERT_EQ(timeline.spans.size(), 4U);
  EXPECT_EQ(name_of(timeline, 0), R"(say "hi", {you})");
  EXPECT_EQ(name_of(timeline, 1), "bad\xff\x01utf");
  EXPECT_EQ(name_of(timeline, 2), "esc\"apedA\\");
  EXPECT_TRUE(timeline.dropped.empty());
}

TEST(Kineto, GoesOnBehindDamage) {
  // Each of these damages one event or stands between two.
  const std::string damages[] = {
      "garbage",
      "12, \"text\", [1, 2]",
      "}}}",
      R"({"ph": "X", "cat": "cpu_op", "name": "cut", "args": {"a": [1, 2)",
      R"({"ph": "X", "cat": "kernel", "name": "cut)",
      R"({"ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": )",
      "{\"ph\": \"X\", \"cat\": \"kernel\", \"name\": \"no end,\n \"pid\": 0, \"tid\": 7, \"ts\": 1,\n \"dur\": 1}",
      R"({"ph": "X", "cat": "kernel", name: 5, "pid": 0})",
      R"({"name": "x", "ph": "X", "cat": "cpu_op", "args": {{{)",
  };
  for (const std::string& damage : damages) {
    for (const char* const separator : {", ", ",\n  "}) {
      const Timeline timeline =
          import_kineto("{\"traceEvents\": [" + kineto_kernel(10) + separator + damage + separator + kineto_kernel(20) +
                        separator + kineto_kernel(30) + "], \"distributedInfo\": {\"rank\": 6}}");
      EXPECT_EQ(timeline.spans.size(), 3U) << damage;
      EXPECT_GE(all_dropped(timeline), 1U) << damage;
      EXPECT_LE(all_dropped(timeline), 2U) << damage;
      EXPECT_EQ(timeline.processes.at(0).rank, 6) << damage;
      ASSERT_FALSE(timeline.dropped.empty()) << damage;
      EXPECT_NE(timeline.dropped[0].first.find("byte"), std::string::npos);
    }
  }
}

TEST(Kineto, UsesWhatIsEnoughOfADamagedEvent) {
  const Timeline timeline = import_events(
      R"({"ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": 7, "ts": 1, "dur": 2, "args": {"stream": 7, oh)" +
      std::string(", ") + kineto_kernel(5));
  EXPECT_EQ(timeline.spans.size(), 2U);
  EXPECT_EQ(dropped_exactly(timeline, "damaged event, used in part"), 1U);
}

TEST(Kineto, ReadsAsFarAsACutFileGoes) {
  const std::string whole =
      "{\"schemaVersion\": 1, \"traceEvents\": [" + kineto_kernel(1) + "," + kineto_kernel(9) + "]}";
  const std::size_t begin = whole.find("traceEvents") + 15;
  std::size_t most = 0;
  for (std::size_t size = begin; size <= whole.size(); ++size) {
    const Timeline timeline = import_kineto(whole.substr(0, size));
    EXPECT_GE(timeline.spans.size(), most);
    most = timeline.spans.size();
    EXPECT_EQ(all_dropped(timeline), size < whole.size() ? 1U : 0U) << size;
  }
  EXPECT_EQ(most, 2U);
  // An array alone need not be closed.
  EXPECT_TRUE(import_kineto("[" + kineto_kernel(1) + ",\n").dropped.empty());
  EXPECT_EQ(import_kineto("[" + kineto_kernel(1) + "] and more").dropped.size(), 1U);
}

TEST(Kineto, PairsBeginsWithEnds) {
  const Timeline timeline = import_events(
      R"({"ph": "B", "cat": "cpu_op", "name": "outer", "pid": 0, "tid": 7, "ts": 1},
         {"ph": "B", "cat": "kernel", "name": "k", "pid": 0, "tid": 7, "ts": 2, "args": {"stream": 7}},
         {"ph": "B", "cat": "kernel", "name": "other", "pid": 0, "tid": 8, "ts": 3, "args": {"stream": 8}},
         {"ph": "E", "pid": 0, "tid": 7, "ts": 5}, {"ph": "E", "pid": 0, "tid": 7, "ts": 6},
         {"ph": "E", "pid": 0, "tid": 7, "ts": 7})");
  ASSERT_EQ(timeline.spans.size(), 1U);
  EXPECT_EQ(name_of(timeline, 0), "k");
  EXPECT_EQ(timeline.spans[0].ended_ns, 5000);
  EXPECT_EQ(dropped_exactly(timeline, "event that ends and never began"), 1U);
  EXPECT_EQ(dropped_exactly(timeline, "event that begins and never ends"), 1U);
}

TEST(Kineto, JoinsCollectivesWithWhatIsSaidOfThem) {
  const Timeline timeline = import_events(
      // by the call within the operation
      R"({"ph": "X", "cat": "user_annotation", "name": "nccl:all_reduce", "pid": 1, "tid": 3, "ts": 12, "dur": 10,
          "args": {"External id": 8, "Input Dims": [[394241, 2]], "Input type": ["float"]}},
         {"ph": "X", "cat": "cpu_op", "name": "record_param_comms", "pid": 1, "tid": 3, "ts": 10, "dur": 20,
          "args": {"External id": 7, "Group size": 8, "Process Group Name": "dp"}},
         {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 1, "tid": 3, "ts": 15, "dur": 1,
          "args": {"correlation": 40}},
         {"ph": "X", "cat": "kernel", "name": "ncclDevKernel_Generic", "pid": 0, "tid": 20, "ts": 50,
          "dur": 5, "args": {"stream": 20, "correlation": 40}},)"
      // by the external id
      R"({"ph": "X", "cat": "kernel", "name": "ncclDevKernel_Generic", "pid": 0, "tid": 20, "ts": 60,
          "dur": 5, "args": {"stream": 20, "correlation": 41, "External id": 99}
},
         {"ph": "X", "cat": "cpu_op", "name": "record_param_comms", "pid": 1, "tid": 3, "ts": 31, "dur": 1,
          "args": {"Collective name": "broadcast", "In msg nelems": 53, "Out msg nelems": 50, "dtype": "Long",
          "External id": 99}},)"
      // in the kernel itself
      R"({"ph": "X", "cat": "kernel", "name": "mscclKernel", "pid": 0, "tid": 20, "ts": 70, "dur": 5, "args": {
          "stream": 20, "Collective name": "_allgather_base", "In msg nelems": 100, "Out msg nelems": 400,
          "dtype": "BFloat16", "Group size": 4, "Process Group Name": "tp"}})");
  ASSERT_EQ(timeline.collectives.size(), 3U);
  const CollectiveFacts& reduce = timeline.collectives[0];
  const CollectiveFacts& broadcast = timeline.collectives[1];
  const CollectiveFacts& gather = timeline.collectives[2];
  EXPECT_EQ(reduce.kind, CollectiveKind::all_reduce);
  EXPECT_EQ(reduce.bytes, 394241U * 2 * 4);
  EXPECT_EQ(reduce.ranks, 8U);
  EXPECT_EQ(timeline.names.at(reduce.group), "dp");
  EXPECT_EQ(broadcast.kind, CollectiveKind::broadcast);
  EXPECT_EQ(broadcast.bytes, 53U * 8);
  EXPECT_EQ(gather.kind, CollectiveKind::all_gather);
  EXPECT_EQ(gather.bytes, 800U);
  EXPECT_EQ(gather.ranks, 4U);
  EXPECT_EQ(timeline.ranges.size(), 1U);
}

TEST(Kineto, ReadsWaitsAndSynchronisation) {
  const Timeline timeline = import_events(kineto_kernel(10) + R"(,
      {"ph": "X", "cat": "kernel", "name": "b", "pid": 0, "tid": 8, "ts": 20, "dur": 3,
       "args": {"device": 0, "stream": 8, "correlation": 30}},
      {"ph": "X", "cat": "cuda_sync", "name": "Stream Wait Event", "pid": 0, "tid": 8, "ts": 15, "dur": 1, "args": {
       "cuda_sync_kind": "Stream Wait Event", "wait_on_stream": 7, "wait_on_cuda_event_record_corr_id": 12,
       "stream": 8, "correlation": 20, "device": 0}},
      {"ph": "X", "cat": "cuda_sync", "name": "Event Sync", "pid": 0, "tid": -1, "ts": 14, "dur": 2, "args": {
       "cuda_sync_kind": "Event Sync", "wait_on_stream": 7, "wait_on_cuda_event_record_corr_id": -1,
       "stream": -1, "correlation": 21, "device": 0}},
      {"ph": "X", "cat": "cuda_sync", "name": "Context Sync", "pid": 0, "tid": -1, "ts": 14, "dur": 20, "args": {
       "cuda_sync_kind": "Context Sync", "stream": -1, "correlation": 22, "device": 0}})");
  EXPECT_TRUE(timeline.has_dependencies);
  ASSERT_EQ(timeline.dependencies.size(), 1U);
  EXPECT_EQ(timeline.dependencies[0].before, 0U);
  EXPECT_EQ(timeline.dependencies[0].after, 1U);
  EXPECT_EQ(timeline.spans[0].seen_ns, 16000);
  EXPECT_EQ(timeline.spans[1].seen_ns, 34000);
  EXPECT_TRUE(timeline.dropped.empty());
}

TEST(Kineto, SplitsFusedRanks) {
  const Timeline timeline =
      import_events(kineto_kernel(1, "k", ", \"rank\": 2") + "," + kineto_kernel(2, "k", ", \"rank\": 0") + "," +
                    kineto_kernel(3, "k", ", \"rank\": 2"));
  ASSERT_EQ(timeline.processes.size(), 2U);
  EXPECT_EQ(timeline.processes[0].rank, 2);
  EXPECT_EQ(timeline.processes[1].rank, 0);
  EXPECT_EQ(timeline.devices.size(), 2U);
}

TEST(Kineto, ReadsBackWhatWeirExports) {
  const Timeline timeline = import_kineto(R"({"schemaVersion":1,"deviceProperties":[],"distributedInfo":{"rank":1},
    "traceEvents":[{"ph":"X","cat":"gpu_memcpy","name":"copy","pid":0,"tid":2,"ts":10.001,"dur":2.002,"args":{
      "device":0,"context":0,"stream":2,"correlation":4,"bytes":64,"queue":3,"copy engine":true,"iteration":5,
      "enqueued":1.001,"submitted":2.002,"accepted":3.003,"launched":4.004,"seen":99.999}},
    {"ph":"X","cat":"hardware_queue","name":"copy","pid":1000000,"tid":3,"ts":10.001,"dur":2.002,"args":{}},
    {"ph":"s","id":4,"cat":"event_wait","name":"w","pid":0,"tid":2,"ts":1}],"weir":{"version":"x"}})");
  ASSERT_EQ(timeline.spans.size(), 1U);
  const Span& span = timeline.spans[0];
  EXPECT_EQ(span.enqueued_ns, 1001);
  EXPECT_EQ(span.submitted_ns, 2002);
  EXPECT_EQ(span.accepted_ns, 3003);
  EXPECT_EQ(span.launched_ns, 4004);
  EXPECT_EQ(span.started_ns, 10001);
  EXPECT_EQ(span.ended_ns, 12003);
  EXPECT_EQ(span.seen_ns, 99999);
  EXPECT_EQ(span.iteration, 5U);
  EXPECT_EQ(span.bytes, 64U);
  EXPECT_GE(span.queue, kCopyQueues);
  EXPECT_TRUE(timeline.dropped.empty());
}

TEST(Kineto, TrustsGapsOfCuptiAndOfExportsThatDo) {
  const auto call = [](const std::string& name) {
    return R"({"ph": "X", "cat": "cuda_runtime", "name": ")" + name +
           R"(", "pid": 9, "tid": 9, "ts": 1, "dur": 1, "args": {"correlation": 5}}, )";
  };
  EXPECT_TRUE(import_events(call("cudaLaunchKernel") + kineto_kernel(5)).has_exact_gaps);
  EXPECT_FALSE(import_events(kineto_kernel(5)).has_exact_gaps);
  EXPECT_FALSE(import_events(call("hipLaunchKernel") + kineto_kernel(5)).has_exact_gaps);
  EXPECT_FALSE(
      import_events(call("cudaLaunchKernel") + kineto_kernel(5, "k", R"(, "kind": "Dispatch Kernel")")).has_exact_gaps);
  // Whole microseconds say nothing of gaps that are shorter.
  const Timeline coarse = import_events(
      call("cudaLaunchKernel") +
      R"({"ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": 7, "ts": 5, "dur": 2, "args": {"stream": 7}})");
  EXPECT_FALSE(coarse.has_exact_gaps);
  EXPECT_EQ(coarse.notes.size(), 1U);

  const auto exported = [&](const std::string& about) {
    return import_kineto("{\"traceEvents\": [" + call("cudaLaunchKernel") + kineto_kernel(5) + "], \"weir\": " + about +
                         "}");
  };
  EXPECT_TRUE(exported(R"({"source": "a \"clock\"", "has_exact_gaps": true})").has_exact_gaps);
  EXPECT_EQ(exported(R"({"source": "a \"clock\"", "has_exact_gaps": true})").source, "a \"clock\"");
  EXPECT_FALSE(exported(R"({"has_exact_gaps": false, "notes": ["n"]})").has_exact_gaps);
  EXPECT_FALSE(exported("{}").has_exact_gaps);
  EXPECT_EQ(exported("{}").source, "Kineto");
}

TEST(Kineto, NumbersAreReadAlikeHoweverTheyAreWritten) {
  const auto started = [](const std::string& ts) {
    const Timeline timeline =
        import_events(R"({"ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": 7, "dur": 0, "ts": )" + ts +
                      R"(, "args": {}})" + std::string(64, ' '));
    return timeline.spans.empty() ? kNoTime : timeline.spans[0].started_ns;
  };
  EXPECT_EQ(started("1661203462598772"), 1661203462598772000);
  EXPECT_EQ(started("1106964728033.929"), 1106964728033929);
  EXPECT_EQ(started("1.5"), 1500);
  EXPECT_EQ(started("1.2345"), 1235);
  EXPECT_EQ(started("1.5e3"), 1500000);
  EXPECT_EQ(started("-0"), 0);
  EXPECT_EQ(started("-1.5"), -1500);
  EXPECT_EQ(started("\"1.5\""), 1500);
  EXPECT_EQ(started("5."), 5000);
  EXPECT_EQ(started("   7"), 7000);
  EXPECT_EQ(started("9999999999999999"), kNoTime);
  EXPECT_EQ(started("9223372036854775.808"), kNoTime);
  EXPECT_EQ(started("18446744073709551616"), kNoTime);
  EXPECT_EQ(started("1e400"), kNoTime);
}

// Each of these took time that grew with the square of its length: at this size from 3 s to more than 45 s (stopped),
// now 0.14 s or less; one Neoverse-V1 core under load, 2026-11-15.
TEST(Kineto, RepeatedDamageTakesLinearTime) {
  const auto repeated = [](const std::string& text, int times = 100'000) {
    std::string made;
    for (int i = 0; i < times; ++i) made += text;
    return made;
  };
  EXPECT_GT(all_dropped(import_kineto("{\"traceEvents\": [], " + repeated("\"weir\":"))), 0U);
  EXPECT_GT(all_dropped(import_events(repeated("{ \"cat\":\""))), 0U);
  EXPECT_GT(all_dropped(import_kineto("{\"traceEvents\": [], " + repeated("\"weir\":") + "\n\"x\" y")), 0U);
  // Longer than the longest text.
  EXPECT_GT(all_dropped(import_kineto("{\"traceEvents\": [], " + repeated("\"weir\":", 3'000'000))), 0U);

  std::string bases;
  for (int i = 0; i < 100'000; ++i) bases += ", \"baseTimeNanoseconds\": " + std::to_string(i);
  EXPECT_EQ(import_kineto("{\"traceEvents\": []" + bases + "}").notes.size(), 1U);
  const std::string most = std::to_string(INT64_MAX);
  EXPECT_EQ(all_dropped(
                import_kineto("{\"baseTimeNanoseconds\": " + most + ", \"traceEvents\": [" + kineto_kernel(5) + "]}")),
            1U);

  std::string shared;
  for (int i = 0; i < 30'000; ++i) {
    shared += R"({"ph": "X", "cat": "cpu_op", "name": "record_param_comms", "pid": 1, "tid": 1, "ts": 1, "dur": 1,
      "args": {"External id": 5}},)";
    shared += kineto_kernel(i + 1, "ncclKernel", ", \"External id\": 5") + ",";
  }
  EXPECT_EQ(import_events(shared).collectives.size(), 30'000U);
}

// Exactly, in either order: nanoseconds since 1970 as doubles would be 256 ns apart.
TEST(Kineto, AddsTheBaseToAllTimes) {
  const std::string events = R"("traceEvents": [
    {"ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": 7, "ts": 1212075528731.107, "dur": 0.003,
     "args": {"device": 0, "stream": 7, "correlation": 5, "enqueued": 1212075528730.001}},
    {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 9, "tid": 4, "ts": 1212075528730.999, "dur": 0.1,
     "args": {"correlation": 5}},
    {"ph": "X", "cat": "user_annotation", "name": "ProfilerStep#3", "pid": 9, "tid": 4, "ts": -1.5, "dur": 2}])";
  const std::string base = R"("baseTimeNanoseconds": 1719853884000000001)";
  for (const std::string& text : {"{" + base + ", " + events + "}", "{" + events + ", " + base + "}"}) {
    const Timeline timeline = import_kineto(text);
    ASSERT_EQ(timeline.spans.size(), 1U);
    EXPECT_EQ(timeline.spans[0].started_ns, 1721065959528731108);
    EXPECT_EQ(timeline.spans[0].ended_ns, 1721065959528731111);
    EXPECT_EQ(timeline.spans[0].enqueued_ns, 1721065959528730002);
    EXPECT_EQ(timeline.spans[0].submitted_ns, 1721065959528731000);
    EXPECT_EQ(timeline.calls.at(0).started_ns, 1721065959528731000);
    EXPECT_EQ(timeline.ranges.at(0).started_ns, 1719853883999998501);
    EXPECT_NE(timeline.notes.at(0).find("baseTimeNanoseconds was added"), std::string::npos);
  }
}

TEST(Kineto, BasesPlaceFilesOfOneMachine) {
  std::vector<Timeline> parts;
  for (const char* base : {"1719853884000000000", "1719853889000000000"})
    parts.push_back(import_kineto(R"({"baseTimeNanoseconds": )" + std::string(base) + R"(, "traceEvents": [)" +
                                  kineto_kernel(5) + "]}"));
  const Timeline merged = merge(std::move(parts));
  ASSERT_EQ(merged.spans.size(), 2U);
  EXPECT_EQ(merged.spans[1].started_ns - merged.spans[0].started_ns, 5'000'000'000);
}

TEST(Kineto, ReadsSequenceNumbersOfCollectives) {
  const Timeline timeline =
      import_events(kineto_kernel(5, "ncclDevKernel_AllReduce", R"(, "Collective name": "allreduce", "Seq": 0)") + "," +
                    kineto_kernel(9, "ncclDevKernel_AllReduce", R"(, "Collective name": "allreduce", "Seq": 41)") +
                    "," + kineto_kernel(12, "ncclDevKernel_AllReduce", R"(, "Collective name": "allreduce")"));
  ASSERT_EQ(timeline.collectives.size(), 3U);
  EXPECT_EQ(timeline.collectives[0].sequence, 1U);
  EXPECT_EQ(timeline.collectives[1].sequence, 42U);
  EXPECT_EQ(timeline.collectives[2].sequence, 0U);
}

TEST(Kineto, SaysThatArgumentsWereCutOff) {
  EXPECT_EQ(dropped_exactly(import_kineto(R"({"traceEvents": [{"ph": "X", "cat": "kernel", "args": {"a": [[1, )"),
                            "event cut off by the file's end"),
            1U);
}

TEST(Kineto, HasNoNeedOfGpuWork) {
  EXPECT_TRUE(import_kineto(R"({"schemaVersion": 1, "traceEvents": []})").spans.empty());
  EXPECT_TRUE(import_kineto("[]").spans.empty());
}

TEST(Kineto, RejectsWhatIsNoTrace) {
  for (const char* const text : {"{}", "{\"a\": [1, 2]}", "hello", "{\"rocprofiler-sdk-tool\": []}", "\x01\x02", "{"}) {
    try {
      import_kineto(text);
      ADD_FAILURE() << text;
    } catch (const Error& error) {
      EXPECT_EQ(error.fault, Fault::input);
      EXPECT_NE(std::string(error.what()).find("not a Kineto trace"), std::string::npos);
    }
  }
}

TEST(Kineto, SniffsItsOwn) {
  const auto sniff = importer_list::kineto().sniff;
  EXPECT_TRUE(sniff("\n{\n  \"schemaVersion\": 1,\n  \"deviceProperties\": ["));
  EXPECT_TRUE(sniff("[{\"ph\": \"X\""));
  EXPECT_TRUE(sniff("\xEF\xBB\xBF{\"traceEvents\": []}"));
  EXPECT_FALSE(sniff("{\"schema\": \"weir.result/2\"}"));
  EXPECT_FALSE(sniff("Kernel_Name,\"traceEvents\""));
  EXPECT_FALSE(sniff(""));
}

class Chunks : public ByteSource {
 public:
  Chunks(const std::string& text, std::size_t chunk) : text_(text), chunk_(chunk) {}

 protected:
  std::size_t fetch(char* to, std::size_t capacity) override {
    const std::size_t count = std::min({capacity, chunk_, text_.size() - taken_});
    text_.copy(to, count, taken_);
    taken_ += count;
    return count;
  }

 private:
  const std::string& text_;
  std::size_t chunk_, taken_ = 0;
};

TEST(Kineto, BoundariesOfChunksDoNotMatter) {
  std::string text = "{\"traceEvents\": [\n";
  for (int i = 0; i < 4000; ++i) {
    text += kineto_kernel(i * 10, i % 7 == 0 ? "a \"quoted\" name"
                                             : "name\\u0041" + std::string(static_cast<std::size_t>(i) % 97, 'x')) +
            ",\n";
    if (i % 501 == 0) text += "garbage {\"ph\": \"X\", \"cat\": \"kernel\", \"name\": \"cut\n";
    text += R"({"ph": "X", "cat": "cpu_op", "name": "op", "args": {"deep": [[1, {"a": "}"}], "]"]}},)";
  }
  text += "]}";
  const auto read = [&](std::size_t chunk) {
    Chunks source(text, chunk);
    TimelineBuilder builder;
    const std::uint16_t process = builder.add_process(0, "test");
    builder.begin_file("test");
    importer_list::kineto().read({"test", {}, &source, process, {}}, builder);
    return builder.finish();
  };
  const Timeline whole = read(text.size());
  EXPECT_EQ(whole.spans.size(), 4000U);
  EXPECT_GE(all_dropped(whole), 8U);
  for (const std::size_t chunk : {std::size_t{1}, std::size_t{7}, std::size_t{64}, std::size_t{4096}}) {
    const Timeline cut = read(chunk);
    ASSERT_EQ(cut.spans.size(), whole.spans.size());
    ASSERT_EQ(cut.names, whole.names);
    ASSERT_EQ(all_dropped(cut), all_dropped(whole));
    for (std::size_t i = 0; i < cut.spans.size(); ++i) {
      ASSERT_EQ(cut.spans[i].started_ns, whole.spans[i].started_ns);
      ASSERT_EQ(cut.spans[i].name, whole.spans[i].name);
    }
  }
}

}  // namespace
}  // namespace weir
