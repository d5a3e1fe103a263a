#include <gtest/gtest.h>

#include "base/error.h"
#include "trace/import/import.h"
#include "trace/import/list.h"

namespace weir {
namespace {

Timeline import_rocprof(const std::string& text) {
  return import_memory(text, "test.json", {.format = "rocprof_json"}).timeline;
}

const std::string kAgents =
    R"("agents":[{"size":312,"id":{"handle":10},"type":1,"name":"EPYC","logical_node_type_id":0},
       {"size":312,"id":{"handle":13},"type":2,"name":"gfx942","product_name":"AMD Instinct MI300X",
        "logical_node_type_id":1}])";
const std::string kStrings =
    R"("strings":{"callback_records":[{"kind":"X","operations":["wrong"]}],"buffer_records":[
       {"kind":"NONE","operations":[]},{"kind":"HIP_RUNTIME_API","operations":["hipLaunchKernel","hipMemcpyAsync"]},
       {"kind":"MEMORY_COPY","operations":["MEMORY_COPY_NONE","MEMORY_COPY_HOST_TO_DEVICE"]}]})";
const std::string kSymbols =
    R"j("kernel_symbols":[{"size":0,"kernel_id":8,"kernel_name":"_Z4gemm.kd","formatted_kernel_name":"gemm(int)",
        "demangled_kernel_name":"long","truncated_kernel_name":"t"},
        {"kernel_id":9,"kernel_name":"ncclDevKernel_Generic.kd"},
        {"kernel_id":10,"kernel_name":"__amd_rocclr_copyBufferAligned.kd"},
        {"kernel_id":11,"kernel_name":"__amd_rocclr_fillBufferAligned.kd"}])j";

std::string dispatch(int correlation, int kernel, int stream, int queue) {
  const auto number = [](int value) { return std::to_string(value); };
  return R"({"size":184,"kind":11,"operation":2,"thread_id":908,"correlation_id":{"internal":)" + number(correlation) +
         R"(,"external":0},"start_timestamp":)" + number(correlation * 100) + R"(,"end_timestamp":)" +
         number(correlation * 100 + 50) +
         R"(,"dispatch_info":{"size":72,"agent_id":{"handle":13},"queue_id":{"handle":)" + number(queue) +
         R"(},"kernel_id":)" + number(kernel) + R"(,"grid_size":{"x":512,"y":1,"z":1}},"stream_id":{"handle":)" +
         number(stream) + "}}";
}

std::string records(const std::string& dispatches) {
  return R"("buffer_records":{"kernel_dispatch":[)" + dispatches +
         R"(],"scratch_memory":[{"size":1}],"hip_api":[{"size":56,"kind":1,"operation":0,"thread_id":908,
         "correlation_id":{"internal":1,"external":0},"start_timestamp":50,"end_timestamp":60}],
         "memory_copy":[{"size":88,"kind":2,"operation":1,"correlation_id":{"internal":7,"external":0},
         "start_timestamp":10,"end_timestamp":20,"dst_agent_id":{"handle":13},"src_agent_id":{"handle":10},
         "bytes":4096,"stream_id":{"handle":3}}]})";
}

std::string tool(const std::string& processes) { return "{\"rocprofiler-sdk-tool\":[" + processes + "]}"; }

void expect_all(const Timeline& timeline) {
  ASSERT_EQ(timeline.spans.size(), 3U);
  const Span& copy = timeline.spans[0];
  EXPECT_EQ(copy.kind, SpanKind::copy);
  EXPECT_EQ(copy.bytes, 4096U);
  EXPECT_EQ(timeline.names.at(copy.name), "MEMORY_COPY_HOST_TO_DEVICE");
  EXPECT_GE(copy.queue, kCopyQueues);
  const Span& gemm = timeline.spans[1];
  EXPECT_EQ(timeline.names.at(gemm.name), "gemm(int)");
  EXPECT_EQ(gemm.started_ns, 100);
  EXPECT_EQ(gemm.ended_ns, 150);
  EXPECT_EQ(gemm.submitted_ns, 50);
  EXPECT_EQ(timeline.names.at(timeline.calls.at(gemm.call).name), "hipLaunchKernel");
  EXPECT_EQ(timeline.streams.at(gemm.stream).id, 2U);
  EXPECT_EQ(timeline.spans[2].kind, SpanKind::collective);
  EXPECT_EQ(timeline.names.at(timeline.spans[2].name), "ncclDevKernel_Generic.kd");
  ASSERT_EQ(timeline.devices.size(), 1U);
  EXPECT_EQ(timeline.devices[0].label, "GPU 1: AMD Instinct MI300X");
  EXPECT_EQ(timeline.queues.size(), 3U);
  EXPECT_TRUE(timeline.dropped.empty());
}

const std::string kTwo = dispatch(1, 8, 2, 16) + "," + dispatch(2, 9, 5, 17);

TEST(RocprofJson, ReadsDispatchesCopiesAndCalls) {
  expect_all(import_rocprof(
      tool("{\"metadata\":{\"pid\":908}," + kAgents + "," + kStrings + "," + kSymbols + "," + records(kTwo) + "}")));
}

TEST(RocprofJson, KernelsMayBeNamedAfterTheirDispatches) {
  expect_all(import_rocprof(tool("{" + kAgents + "," + kStrings + "," + records(kTwo) + "," + kSymbols + "}")));
}

TEST(RocprofJson, CopiesThatKernelsMakeAreNoCompute) {
  const std::string three = dispatch(1, 8, 2, 16) + "," + dispatch(2, 10, 2, 16) + "," + dispatch(3, 11, 2, 16);
  // The names may come before or after.
  for (const std::string& process : {kSymbols + "," + records(three), records(three) + "," + kSymbols}) {
    const Timeline timeline = import_rocprof(tool("{" + kAgents + "," + process + "}"));
    ASSERT_EQ(timeline.spans.size(), 4U);
    EXPECT_EQ(timeline.spans[1].kind, SpanKind::kernel);
    EXPECT_EQ(timeline.spans[2].kind, SpanKind::copy);
    EXPECT_EQ(timeline.spans[3].kind, SpanKind::memset);
    EXPECT_EQ(timeline.spans[3].queue, timeline.spans[1].queue);
  }
}

TEST(RocprofJson, ReadsSeveralProcesses) {
  const std::string one = "{" + kAgents + "," + kSymbols + "," + records(kTwo) + "}";
  const std::string other = "{" + records(dispatch(4, 8, 2, 16)) + "}";
  const Timeline timeline = import_rocprof(tool(one + "," + other));
  EXPECT_EQ(timeline.processes.size(), 2U);
  EXPECT_EQ(timeline.devices.size(), 2U);
  // Its own process has not named that kernel.
  EXPECT_EQ(timeline.names.at(timeline.spans.back().name), "kernel 8");
}

TEST(RocprofJson, GoesOnBehindDamage) {
  for (const std::string damage : {"garbage", "{\"size\":184,\"kind\":11,\"oper", "{\"size\":1,\"kind\":[}", "{}}"}) {
    const Timeline timeline =
        import_rocprof(tool("{" + kAgents + "," + kStrings + "," + kSymbols + "," +
                            records(dispatch(1, 8, 2, 16) + "," + damage + "," + dispatch(2, 9, 5, 17)) + "}"));
    EXPECT_GE(timeline.spans.size(), 2U) << damage;
    EXPECT_FALSE(timeline.dropped.empty()) << damage;
  }
  const std::string whole = tool("{" + kAgents + "," + kSymbols + "," + records(kTwo) + "}");
  const Timeline cut = import_rocprof(whole.substr(0, whole.find("\"scratch_memory\"")));
  EXPECT_EQ(cut.spans.size(), 2U);
  EXPECT_EQ(cut.dropped.size(), 1U);
}

TEST(RocprofJson, CountsRecordsWithoutTimes) {
  const Timeline timeline =
      import_rocprof(tool(R"({"buffer_records":{"kernel_dispatch":[{"size":1,"kind":11,"start_timestamp":5},
                  {"size":1,"kind":11,"start_timestamp":5,"end_timestamp":18446744073709551615},
                  {"size":1,"kind":11,"start_timestamp":5,"end_timestamp":4}]}})"));
  EXPECT_TRUE(timeline.spans.empty());
  std::uint64_t count = 0;
  for (const Dropped& one : timeline.dropped) count += one.count;
  EXPECT_EQ(count, 3U);
}

TEST(RocprofJson, RejectsOthers) {
  EXPECT_THROW(import_rocprof("{\"traceEvents\": []}"), Error);
  EXPECT_THROW(import_rocprof("hello"), Error);
  const auto sniff = importer_list::rocprof_json().sniff;
  EXPECT_TRUE(sniff(" {\"rocprofiler-sdk-tool\":[{"));
  EXPECT_FALSE(sniff("{\"traceEvents\": []}"));
}

}  // namespace
}  // namespace weir
