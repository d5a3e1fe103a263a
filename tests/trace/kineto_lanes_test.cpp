// What Kineto's traces say of devices, streams, hardware queues and grids.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "trace/importer_testing.h"
#include "trace/kineto_testing.h"

namespace weir {
namespace {

TEST(KinetoLanes, TakesRocmStreamsForQueues) {
  const Timeline timeline = import_events(
      R"({"ph": "X", "cat": "gpu_memcpy", "name": "Memcpy HtoD", "pid": 2, "tid": 0, "ts": 2, "dur": 1,
          "args": {"device": 2, "stream": 0, "correlation": 117, "kind": "HtoD"}},
         {"ph": "X", "cat": "cuda_runtime", "name": "hipMemcpyWithStream", "pid": 5, "tid": 5, "ts": 1, "dur": 4,
          "args": {"stream": "0x0", "correlation": 117, "size": "2560", "kind": "1"}},
         {"ph": "X", "cat": "kernel", "name": "k", "pid": 2, "tid": 4, "ts": 3, "dur": 1,
          "args": {"device": 2, "stream": 4, "correlation": 118, "kind": "Dispatch Kernel"}},
         {"ph": "X", "cat": "kernel", "name": "newer", "pid": 2, "tid": 4, "ts": 5, "dur": 1,
          "args": {"device": 2, "stream": 9, "queue": 4, "correlation": 119, "kind": "Dispatch Kernel"}})");
  ASSERT_EQ(timeline.spans.size(), 3U);
  EXPECT_EQ(timeline.spans[0].bytes, 2560U);
  EXPECT_EQ(timeline.spans[0].seen_ns, 5000);
  EXPECT_EQ(timeline.queues.size(), 2U);
  EXPECT_EQ(timeline.streams.size(), 3U);
  EXPECT_EQ(timeline.spans[1].queue, timeline.spans[2].queue);
  ASSERT_EQ(timeline.notes.size(), 1U);
  EXPECT_NE(timeline.notes[0].find("hardware queues"), std::string::npos);
}

// As PyTorch writes them since mid-2026.
TEST(KinetoLanes, ReadsChannelsOfCuda) {
  const Timeline timeline = import_events(
      R"({"ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": 7, "ts": 1, "dur": 1,
          "args": {"device": 0, "stream": 7, "correlation": 1, "channel": 9, "channel_type": 1}},
         {"ph": "X", "cat": "gpu_memcpy", "name": "Memcpy HtoD", "pid": 0, "tid": 7, "ts": 2, "dur": 1,
          "args": {"device": 0, "stream": 7, "correlation": 2, "channel": 9, "channel_type": 2}},
         {"ph": "X", "cat": "gpu_memset", "name": "Memset", "pid": 0, "tid": 7, "ts": 3, "dur": 1,
          "args": {"device": 0, "stream": 7, "correlation": 3, "channel_type": 1, "channel": 10}},
         {"ph": "X", "cat": "kernel", "name": "unknown", "pid": 0, "tid": 7, "ts": 4, "dur": 1,
          "args": {"device": 0, "stream": 7, "correlation": 4, "channel": 0, "channel_type": 0}})");
  ASSERT_EQ(timeline.spans.size(), 4U);
  ASSERT_EQ(timeline.queues.size(), 3U);
  const auto label = [&](std::size_t span) {
    for (const auto& queue : timeline.queues)
      if (queue.id == timeline.spans[span].queue) return queue.label;
    return std::string();
  };
  EXPECT_EQ(label(0), "queue 9");
  EXPECT_GE(timeline.spans[1].queue, kCopyQueues) << "copy engines are numbered for themselves";
  EXPECT_EQ(label(2), "queue 10");
  EXPECT_EQ(timeline.spans[3].queue, kNoQueue);
}

TEST(KinetoLanes, ReadsEnginesOfIntelsGpus) {
  const Timeline timeline = import_as("kineto", R"({"traceEvents": [
  {"ph": "X", "cat": "kernel", "name": "a", "pid": 0, "tid": 7, "ts": 1, "dur": 10,
   "args": {"device": 0, "stream": 7, "correlation": 1, "engine_ordinal": 0, "engine_index": 0}},
  {"ph": "X", "cat": "kernel", "name": "b", "pid": 0, "tid": 8, "ts": 20, "dur": 10,
   "args": {"device": 0, "stream": 8, "correlation": 2, "engine_index": 0, "engine_ordinal": 0}},
  {"ph": "X", "cat": "gpu_memcpy", "name": "c", "pid": 0, "tid": 7, "ts": 40, "dur": 10,
   "args": {"device": 0, "stream": 7, "correlation": 3, "engine_ordinal": 1, "engine_index": 3}},
  {"ph": "X", "cat": "gpu_memcpy", "name": "d", "pid": 0, "tid": 7, "ts": 60, "dur": 10,
   "args": {"device": 0, "stream": 7, "correlation": 4, "engine_ordinal": 1}},
  {"ph": "X", "cat": "gpu_memcpy", "name": "e", "pid": 0, "tid": 7, "ts": 80, "dur": 10,
   "args": {"device": 0, "stream": 7, "correlation": 5, "engine_ordinal": 18446744073709551615, "engine_index": 3}}
  ]})");
  ASSERT_EQ(timeline.spans.size(), 5U);
  ASSERT_EQ(timeline.queues.size(), 2U);
  EXPECT_EQ(timeline.queues[0].label, "engine 0.0");
  EXPECT_EQ(timeline.queues[1].label, "engine 1.3");
  EXPECT_EQ(timeline.spans[0].queue, timeline.spans[1].queue) << "two queues of SYCL on one engine";
  EXPECT_EQ(timeline.spans[2].queue, timeline.queues[1].id);
  EXPECT_EQ(timeline.spans[3].queue, kNoQueue) << "half of a number";
  EXPECT_EQ(timeline.spans[4].queue, kNoQueue) << "out of range";
}

TEST(KinetoLanes, ReadsQueuesOfRocmBesideItsStreams) {
  const Timeline timeline = import_events(
      R"({"ph": "X", "cat": "gpu_memcpy", "name": "Memcpy HtoD", "pid": 2, "tid": 1, "ts": 2, "dur": 1,
          "args": {"device": 2, "stream": 1, "correlation": 117, "kind": "HtoD", "hsa_queue": 0}},
         {"ph": "X", "cat": "kernel", "name": "k", "pid": 2, "tid": 1, "ts": 3, "dur": 1,
          "args": {"device": 2, "stream": 1, "hsa_queue": 4, "correlation": 118, "kind": "Dispatch Kernel"}},
         {"ph": "X", "cat": "kernel", "name": "k", "pid": 2, "tid": 2, "ts": 4, "dur": 1,
          "args": {"device": 2, "stream": 2, "hsa_queue": 4, "correlation": 119, "kind": "Dispatch Kernel"}})");
  ASSERT_EQ(timeline.spans.size(), 3U);
  EXPECT_EQ(timeline.streams.size(), 2U);
  ASSERT_EQ(timeline.queues.size(), 1U);
  EXPECT_EQ(timeline.spans[0].queue, kNoQueue);
  EXPECT_EQ(timeline.spans[1].queue, timeline.spans[2].queue);
  EXPECT_TRUE(timeline.notes.empty());
}

TEST(KinetoLanes, ReadsGridsAndBlocksOfKernels) {
  const Timeline timeline =
      import_events(kineto_kernel(10, "k", R"(, "grid": [64, 8, 2], "block": [32, 4, 1])") + "," +
                    kineto_kernel(20, "k", R"(, "grid": [4294967295, 65535, 65535], "block": [70000, 1, 1])") + "," +
                    kineto_kernel(30, "k", R"(, "grid": [64, "x", 1], "block": [])") + "," +
                    kineto_kernel(40, "k", R"(, "grid": [7], "block": "256")") + "," + kineto_kernel(50));
  ASSERT_EQ(timeline.spans.size(), 5U);
  const auto grid = [&](std::size_t i) { return std::pair(timeline.spans[i].blocks, timeline.spans[i].threads); };
  EXPECT_EQ(grid(0), std::pair(1024U, std::uint16_t{128}));
  EXPECT_EQ(grid(1), std::pair(UINT32_MAX, std::uint16_t{UINT16_MAX})) << "the most that fits";
  EXPECT_EQ(grid(2), std::pair(0U, std::uint16_t{0})) << "not known";
  EXPECT_EQ(grid(3), std::pair(7U, std::uint16_t{0}));
  EXPECT_EQ(grid(4), std::pair(0U, std::uint16_t{0}));
  EXPECT_TRUE(timeline.dropped.empty());
}

TEST(KinetoLanes, CountsRocmGridsInBlocksWhateverTheCallCountsIn) {
  const auto call = [](int correlation, const std::string& name, const std::string& grid) {
    return fmt::format(R"({{"ph": "X", "cat": "cuda_runtime", "name": "{}", "pid": 5, "tid": 5, "ts": {}, "dur": 1,
                           "args": {{"correlation": {}, "grid": {}, "block": [256, 1, 1]}}}},)",
                       name, correlation, correlation, grid);
  };
  const auto kernel = [](int correlation, const std::string& more) {
    return kineto_kernel(correlation, "k", R"(, "kind": "Dispatch Kernel")" + more);
  };
  const Timeline timeline = import_events(
      call(1, "hipExtModuleLaunchKernel", "[1025, 4, 1]") + call(2, "hipLaunchKernel", "[1024, 4, 1]") +
      call(3, "hipExtModuleLaunchKernel", "[512, 1, 1]") +
      kernel(1, R"(, "grid": [1025, 4, 1], "block": [256, 1, 1])") + "," +
      kernel(2, R"(, "grid": [1024, 4, 1], "block": [256, 1, 1])") + "," + kernel(3, "") + "," + kernel(4, ""));
  ASSERT_EQ(timeline.spans.size(), 4U);
  EXPECT_EQ(timeline.spans[0].blocks, 20U) << "five blocks hold 1,025 threads";
  EXPECT_EQ(timeline.spans[1].blocks, 4096U);
  EXPECT_EQ(timeline.spans[2].blocks, 2U) << "older traces have grids in calls only";
  EXPECT_EQ(timeline.spans[2].threads, 256U);
  EXPECT_EQ(timeline.spans[3].blocks, 0U);
}

TEST(KinetoLanes, ReadsWhatADeviceIsAndPrioritiesOfItsStreams) {
  const Timeline timeline = import_kineto(
      R"({"deviceProperties": [{"id": 0, "name": "NVIDIA H200", "maxThreadsPerMultiprocessor": 2048, "numSms": 132},
                               {"id": 1, "name": "", "numSms": "many", "maxThreadsPerMultiprocessor": [2048]}],
          "traceEvents": [)" +
      kineto_kernel(10, "k", R"(, "priority": -5)") + R"(,
         {"ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": 8, "ts": 20, "dur": 1,
          "args": {"device": 0, "stream": 8}},
         {"ph": "X", "cat": "kernel", "name": "k", "pid": 1, "tid": 7, "ts": 20, "dur": 1,
          "args": {"device": 1, "stream": 7, "priority": 0}}]})");
  ASSERT_EQ(timeline.devices.size(), 2U);
  EXPECT_EQ(timeline.devices[0].model, "NVIDIA H200");
  EXPECT_EQ(timeline.devices[0].multiprocessors, 132U);
  EXPECT_EQ(timeline.devices[0].resident_threads, 2048U);
  EXPECT_EQ(timeline.devices[1].label, "GPU 1");
  EXPECT_EQ(timeline.devices[1].model, "");
  EXPECT_EQ(timeline.devices[1].multiprocessors, 0U);
  EXPECT_EQ(timeline.devices[1].resident_threads, 0U);
  ASSERT_EQ(timeline.streams.size(), 3U);
  EXPECT_EQ(timeline.streams[0].priority, -5);
  EXPECT_EQ(timeline.streams[1].priority, std::nullopt) << "the trace has none";
  EXPECT_EQ(timeline.streams[2].priority, 0);
}

// rocprofiler counts the CPUs among its agents: the first GPU of such a machine is device 2 in its commands.
TEST(KinetoLanes, KnowsTheOnlyModelOfARocmMachineWhateverTheNumber) {
  const auto import_with = [](const std::string& properties) {
    return import_kineto(R"({"deviceProperties": [)" + properties + R"(], "traceEvents": [
        {"ph": "X", "cat": "cuda_runtime", "name": "hipLaunchKernel", "pid": 9, "tid": 9, "ts": 1, "dur": 1},
        {"ph": "X", "cat": "kernel", "name": "k", "pid": 2, "tid": 7, "ts": 20, "dur": 1,
         "args": {"device": 2, "stream": 7}}]})");
  };
  const std::string mi300 = R"({"id": 0, "name": "AMD Instinct MI300X", "numSms": 304})";
  EXPECT_EQ(import_with(mi300).devices.at(0).model, "AMD Instinct MI300X");
  EXPECT_EQ(import_with(mi300).devices.at(0).multiprocessors, 304U);
  EXPECT_EQ(import_with(mi300 + R"(, {"id": 1, "name": "AMD Instinct MI210"})").devices.at(0).model, "");
}

TEST(KinetoLanes, RealCapturesHaveGridsAndDevices) {
  const auto import_real = [](const char* name) -> std::optional<Timeline> {
    const auto path = real_file(name);
    if (!path) return std::nullopt;
    return std::move(import_traces({*path}, {}).front()).timeline;
  };
  const std::optional<Timeline> cuda = import_real("kineto/h200_gpt_training.json.gz");
  if (!cuda) GTEST_SKIP() << "WEIR_REAL_DATA is not set: no real captures to read";
  EXPECT_EQ(cuda->devices.at(0).model, "NVIDIA H200");
  EXPECT_EQ(cuda->devices.at(0).multiprocessors, 132U);
  EXPECT_EQ(cuda->devices.at(0).resident_threads, 2048U);
  for (const Span& span : cuda->spans) {
    if (span.kind != SpanKind::kernel) continue;
    ASSERT_GT(span.blocks, 0U);
    ASSERT_GT(span.threads, 0U);
    ASSERT_LE(span.threads, 1024U);
  }
  const std::optional<Timeline> rocm = import_real("kineto/mi300x_4ranks_fused_140MB.json.gz");
  ASSERT_TRUE(rocm);
  for (const Span& span : rocm->spans) {
    if (span.kind != SpanKind::kernel) continue;
    ASSERT_GT(span.blocks, 0U);
    ASSERT_LE(span.threads, 1024U);
  }
}

TEST(KinetoLanes, SaysOnceThatStreamsAreQueuesOnRocm) {
  const std::string call =
      R"({"ph": "X", "cat": "cuda_runtime", "name": "hipLaunchKernel", "pid": 9, "tid": 9, "ts": 1, "dur": 1}, )";
  const std::string kind = R"(, "kind": "Dispatch Kernel")";
  EXPECT_EQ(import_events(call + kineto_kernel(5, "k", kind) + "," + kineto_kernel(9, "k", kind)).notes.size(), 1U);
}

}  // namespace
}  // namespace weir
