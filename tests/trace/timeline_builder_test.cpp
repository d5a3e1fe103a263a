#include "trace/timeline_builder.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace weir {
namespace {

struct Built {
  TimelineBuilder builder;
  std::uint16_t process = builder.add_process(0, "test");
  std::uint16_t device = *builder.device(process, 3);

  std::uint32_t add(std::uint64_t stream, std::uint64_t correlation, std::int64_t started, std::int64_t ended,
                    const char* name = "k") {
    TraceCommand command;
    command.process = process;
    command.stream = *builder.stream(device, stream);
    command.correlation = correlation;
    command.name = builder.name(name);
    command.started_ns = started;
    command.ended_ns = ended;
    return builder.add(command).value();
  }
  void call(const char* name, std::uint64_t correlation, std::int64_t started, std::int64_t ended,
            std::uint32_t thread = 1) {
    HostCall made;
    made.name = builder.name(name);
    made.correlation = correlation;
    made.process = process;
    made.thread = thread;
    made.started_ns = started;
    made.ended_ns = ended;
    builder.add(made);
  }
};

TEST(TimelineBuilder, sorts_and_joins_calls) {
  Built built;
  built.add(7, 2, 5000, 6000);
  built.add(7, 1, 3000, 4000);
  built.add(8, 9, 3500, 3600);  // nobody called it
  built.call("cudaLaunchKernel", 2, 1000, 1500);
  built.call("cudaGetDevice", 1, 100, 200);
  built.call("cuLaunchKernelEx", 1, 120, 190);
  const Timeline timeline = built.builder.finish();
  ASSERT_EQ(timeline.spans.size(), 3U);
  EXPECT_EQ(timeline.spans[0].started_ns, 3000);
  EXPECT_EQ(timeline.spans[1].started_ns, 3500);
  EXPECT_EQ(timeline.spans[1].call, kNoCall);
  EXPECT_EQ(timeline.spans[1].submitted_ns, kNoTime);
  // Of two calls with one id, the one that launches.
  ASSERT_NE(timeline.spans[0].call, kNoCall);
  EXPECT_EQ(timeline.names[timeline.calls[timeline.spans[0].call].name], "cuLaunchKernelEx");
  EXPECT_EQ(timeline.spans[2].submitted_ns, 1000);
  EXPECT_EQ(timeline.spans[2].accepted_ns, 1500);
  EXPECT_EQ(timeline.streams[timeline.spans[0].stream].id, 7U);
  EXPECT_EQ(timeline.devices[timeline.streams[timeline.spans[0].stream].device].id, 3);
  EXPECT_TRUE(timeline.notes.empty());
}

TEST(TimelineBuilder, a_blocking_copy_is_seen_when_its_call_returns) {
  Built built;
  TraceCommand copy;
  copy.kind = SpanKind::copy;
  copy.stream = *built.builder.stream(built.device, 0);
  copy.correlation = 5;
  copy.started_ns = 200;
  copy.ended_ns = 900;
  built.builder.add(copy);
  built.call("cudaMemcpy", 5, 100, 1000);
  const Timeline timeline = built.builder.finish();
  EXPECT_EQ(timeline.spans[0].accepted_ns, kNoTime);
  EXPECT_EQ(timeline.spans[0].seen_ns, 1000);
}

TEST(TimelineBuilder, waits_become_dependencies) {
  Built built;
  const std::uint16_t first = *built.builder.stream(built.device, 20), second = *built.builder.stream(built.device, 24);
  built.add(20, 10, 0, 100);
  built.add(20, 12, 100, 200);
  built.add(20, 30, 200, 300);  // after the record
  built.add(24, 16, 10, 20);    // before the wait
  built.add(24, 21, 210, 220);
  built.add(24, 22, 220, 230);
  built.builder.add(TraceWait{built.process, second, first, 20, 15});
  built.builder.add(TraceWait{built.process, second, first, 20, 15});  // once is enough
  built.builder.add(TraceWait{built.process, second, first, 90, 15});  // nobody waits
  built.builder.add(TraceWait{built.process, second, first, 20, 10});  // nothing to wait for
  const Timeline timeline = built.builder.finish();
  EXPECT_TRUE(timeline.has_dependencies);
  ASSERT_EQ(timeline.dependencies.size(), 1U);
  EXPECT_EQ(timeline.spans[timeline.dependencies[0].before].started_ns, 100);
  EXPECT_EQ(timeline.spans[timeline.dependencies[0].after].started_ns, 210);
}

TEST(TimelineBuilder, the_host_sees_ends_when_it_waited_for_them) {
  Built built;
  built.add(1, 1, 0, 100);
  built.add(2, 2, 0, 150);
  built.add(1, 3, 500, 600);
  built.builder.add(TraceSync{built.process, *built.builder.stream(built.device, 2), 120, 160});
  built.call("cudaDeviceSynchronize", 9, 200, 300);
  const Timeline timeline = built.builder.finish();
  EXPECT_EQ(timeline.spans[0].seen_ns, 300);  // stream 1: only the device's
  EXPECT_EQ(timeline.spans[1].seen_ns, 160);
  EXPECT_EQ(timeline.spans[2].seen_ns, kNoTime);
}

TEST(TimelineBuilder, collectives_by_name_and_by_what_is_said_of_them) {
  Built built;
  built.add(1, 1, 0, 10, "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)");
  const std::uint32_t generic = built.add(1, 2, 20, 30, "ncclDevKernel_Generic(ncclDevComm*)");
  built.add(1, 3, 40, 50, "void gemm");
  built.builder.about_collective(generic, {CollectiveKind::reduce_scatter, 8, built.builder.name("pg"), 4096});
  const Timeline timeline = built.builder.finish();
  ASSERT_EQ(timeline.collectives.size(), 2U);
  EXPECT_EQ(timeline.collectives[0].kind, CollectiveKind::all_reduce);
  EXPECT_EQ(timeline.collectives[0].ranks, 0U);
  EXPECT_EQ(timeline.collectives[1].kind, CollectiveKind::reduce_scatter);
  EXPECT_EQ(timeline.collectives[1].bytes, 4096U);
  EXPECT_EQ(timeline.spans[1].bytes, 4096U);
  EXPECT_EQ(timeline.spans[2].kind, SpanKind::kernel);
}

TEST(TimelineBuilder, what_cannot_be_used_is_counted_with_its_place) {
  TimelineBuilder builder;
  const auto process = builder.add_process(0, "test");
  builder.begin_file("a.csv", "line");
  TraceCommand command;
  command.process = process;
  command.started_ns = 10;
  command.at = 4;
  EXPECT_FALSE(builder.add(command).has_value());
  command.at = 9;
  EXPECT_FALSE(builder.add(command).has_value());
  command.ended_ns = 5;
  EXPECT_FALSE(builder.add(command).has_value());
  const Timeline timeline = builder.finish();
  ASSERT_EQ(timeline.dropped.size(), 2U);
  EXPECT_EQ(timeline.dropped[0].count, 2U);
  EXPECT_EQ(timeline.dropped[0].first, "a.csv, line 4");
  EXPECT_EQ(timeline.dropped[1].count, 1U);
  EXPECT_TRUE(timeline.spans.empty());
}

TEST(TimelineBuilder, ranks_of_one_file_are_processes) {
  TimelineBuilder builder;
  const auto file = builder.add_process(0, "fused.json");
  EXPECT_EQ(builder.process_of_rank(file, 5), file);
  const auto other = builder.process_of_rank(file, 6);
  EXPECT_NE(other, file);
  EXPECT_EQ(builder.process_of_rank(file, 5), file);
  EXPECT_EQ(builder.process_of_rank(file, 6), other);
  EXPECT_NE(*builder.device(file, 0), *builder.device(other, 0));
  const Timeline timeline = builder.finish();
  EXPECT_EQ(timeline.processes[0].rank, 5);
  EXPECT_EQ(timeline.processes[1].rank, 6);
}

TEST(TimelineBuilder, queues_of_copy_engines_stand_apart) {
  Built built;
  const std::int32_t compute = built.builder.queue(built.device, 3), copy = built.builder.queue(built.device, 3, true);
  EXPECT_LT(compute, kCopyQueues);
  EXPECT_GE(copy, kCopyQueues);
  EXPECT_EQ(built.builder.queue(built.device, 3), compute);
  EXPECT_NE(built.builder.queue(*built.builder.device(built.process, 4), 3), compute);
}

TEST(TimelineBuilder, different_clocks_are_noticed) {
  Built built;
  for (int i = 0; i < 100; ++i) {
    const auto id = static_cast<std::uint64_t>(i + 1);
    built.add(1, id, i * 1000, i * 1000 + 10);
    built.call("hipLaunchKernel", id, 1'000'000 + i * 1000, 1'000'000 + i * 1000 + 10);
  }
  const Timeline timeline = built.builder.finish();
  ASSERT_EQ(timeline.notes.size(), 1U);
  EXPECT_NE(timeline.notes[0].find("different clocks"), std::string::npos);
  EXPECT_GE(timeline.clock_error_ns, 1'000'000);
}

TEST(TimelineBuilder, more_than_the_memory_allows_is_refused_with_the_figure) {
  TimelineBuilder builder(TraceLimits{100'000});
  const auto process = builder.add_process(0, "big");
  TraceCommand command;
  command.process = process;
  command.started_ns = 0;
  command.ended_ns = 1;
  try {
    for (int i = 0; i < 100'000; ++i) builder.add(command);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.fault, Fault::input);
    EXPECT_NE(std::string(error.what()).find("97.7 KiB"), std::string::npos) << error.what();
  }
}

TEST(TimelineBuilder, what_kernels_are) {
  EXPECT_EQ(kernel_kind_of("gemm"), SpanKind::kernel);
  EXPECT_EQ(kernel_kind_of("ncclDevKernel_AllReduce_Sum_f32_RING_LL"), SpanKind::collective);
  for (const char* name :
       {"copyBuffer.kd", "copyBuffer", "copyBufferAligned", "copyBufferRect", "copyBufferRectAligned", "copyImage",
        "copyImage1DA", "copyImageToBuffer", "copyBufferToImage"})
    EXPECT_EQ(kernel_kind_of("__amd_rocclr_" + std::string(name)), SpanKind::copy) << name;
  for (const char* name : {"fillBufferAligned", "fillBufferAligned2D.kd", "fillImage", "streamOpsWrite",
                           "streamOpsWait", "streamOpsIncrement", "batchMemOp", "initHeap", "gwsInit"})
    EXPECT_EQ(kernel_kind_of("__amd_rocclr_" + std::string(name)), SpanKind::memset) << name;
  EXPECT_EQ(kernel_kind_of("__amd_rocclr_scheduler"), SpanKind::kernel);
  EXPECT_EQ(kernel_kind_of("my__amd_rocclr_copyBuffer"), SpanKind::kernel);
}

TEST(TimelineBuilder, what_calls_do) {
  EXPECT_EQ(call_kind_of("cudaLaunchKernel"), CallKind::launch);
  EXPECT_EQ(call_kind_of("cuLaunchKernelEx"), CallKind::launch);
  EXPECT_EQ(call_kind_of("hipExtModuleLaunchKernel"), CallKind::launch);
  EXPECT_EQ(call_kind_of("cudaGraphLaunch"), CallKind::launch);
  EXPECT_EQ(call_kind_of("cudaMemcpyAsync"), CallKind::copy);
  EXPECT_EQ(call_kind_of("cudaMemsetAsync"), CallKind::copy);
  EXPECT_EQ(call_kind_of("cudaStreamSynchronize"), CallKind::synchronize);
  EXPECT_EQ(call_kind_of("cudaStreamWaitEvent"), CallKind::wait);
  EXPECT_EQ(call_kind_of("cudaEventRecordWithFlags"), CallKind::record);
  EXPECT_EQ(call_kind_of("cudaGetDevice"), CallKind::other);
  EXPECT_EQ(call_kind_of("aten::Launch"), CallKind::other);
}

}  // namespace
}  // namespace weir
