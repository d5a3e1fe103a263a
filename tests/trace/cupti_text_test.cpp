#include <set>

#include "trace/importer_testing.h"

namespace weir {
namespace {

TEST(CuptiText, reads_records_between_noise) {
  const ImportedTrace trace = import_sniffed(
      "Calling CUPTI API: cuptiSubscribe(...)\n"
      "RUNTIME [ 800, 900 ] duration 100, \"cudaLaunchKernel_v7000\", cbid 211, processId 1, threadId 7, correlationId "
      "331\n"
      "CONCURRENT_KERNEL [ 1000, 2000 ] duration 1000, \"void k<int [3]>(a, \"b\")\", correlationId 331, "
      "cacheConfigRequested 0\n"
      "It took 5ms on the host\n"
      "\tgrid [ 1, 1, 1 ], block [ 32, 1, 1 ], cluster [ 0, 0, 0 ], sharedMemory (static 0, dynamic 0)\n"
      "\tdeviceId 1, contextId 4, streamId 42, graphId 0, graphNodeId 0, channelId 3, channelType COMPUTE\n"
      "MEMORY2 [ 5 ] memoryOperationType ALLOCATE, memoryKind DEVICE, size 1\n"
      "\tdeviceId 9, contextId 9, streamId 9, processId 1\n"
      "  memoryPool INVALID, memoryPoolAddress 0\n"
      "\n"
      "MEMCPY \"HtoD\" [ 2100, 2200 ] duration 100, size 32768, copyCount 1, srcKind PAGEABLE, dstKind DEVICE, "
      "correlationId 332\r\n"
      "\tdeviceId 1, contextId 4, streamId 42, graphId 0, graphNodeId 0, channelId 5, channelType ASYNC_MEMCPY\r\n"
      "MEMSET [ 2300, 2400 ] duration 100, value 0, size 64, correlationId 333\n"
      "\tdeviceId 1, contextId 4, streamId 43, graphId 0, graphNodeId 0, channelId 0, channelType INVALID\n");
  EXPECT_EQ(trace.files.at(0).format, "cupti_text");
  const Timeline& timeline = trace.timeline;
  ASSERT_EQ(timeline.spans.size(), 3U);
  EXPECT_TRUE(timeline.dropped.empty());
  const Span& kernel = timeline.spans[0];
  EXPECT_EQ(name_of(timeline, kernel), "void k<int [3]>(a, \"b\")");
  EXPECT_EQ(kernel.started_ns, 1000);
  EXPECT_EQ(kernel.submitted_ns, 800);
  EXPECT_EQ(stream_id(timeline, kernel), 42U);
  EXPECT_EQ(queue_label(timeline, kernel), "queue 3");
  EXPECT_EQ(timeline.devices.at(0).id, 1);
  EXPECT_EQ(timeline.names.at(timeline.calls.at(0).name), "cudaLaunchKernel");
  EXPECT_EQ(timeline.spans[1].bytes, 32768U);
  EXPECT_EQ(name_of(timeline, timeline.spans[1]), "Memcpy HtoD");
  EXPECT_GE(timeline.spans[1].queue, kCopyQueues);
  EXPECT_EQ(timeline.spans[2].kind, SpanKind::memset);
  EXPECT_EQ(timeline.spans[2].queue, kNoQueue);
  EXPECT_FALSE(timeline.has_dependencies);
}

TEST(CuptiText, older_versions_print_other_fields) {
  const ImportedTrace trace = import_sniffed(
      "CONCURRENT KERNEL \"_Z6vecAddPKiS0_Pii\" [ 10 - 20 ] device 0, context 1, stream 7, correlation 12\n"
      "MEMCPY HtoD [ 30 - 40 ] device 0, context 1, stream 7, size 200, correlation 13\n"
      "MEMSET value=0 [ 50 - 60 ] device 0, context 1, stream 7, correlation 14\n"
      "RUNTIME cbid=31 [ 5 - 6 ] process 1, thread 2, correlation 12\n");
  const Timeline& timeline = trace.timeline;
  ASSERT_EQ(timeline.spans.size(), 3U);
  EXPECT_EQ(name_of(timeline, timeline.spans[1]), "Memcpy HtoD");
  EXPECT_EQ(timeline.spans[1].bytes, 200U);
  EXPECT_EQ(timeline.spans[0].call, 0U);
  EXPECT_EQ(timeline.names.at(timeline.calls.at(0).name), "cbid 31");
  EXPECT_EQ(timeline.spans[0].queue, kNoQueue);
}

TEST(CuptiText, waits_become_dependencies) {
  const std::string text =
      "CONCURRENT_KERNEL [ 10, 20 ] duration 10, \"a\", correlationId 1\n\tdeviceId 0, contextId 1, streamId 7\n"
      "CUDA_EVENT contextId 1, streamId 7, correlationId 2, eventId 5\n"
      "SYNCHRONIZATION [ 11, 12 ] duration 1, type STREAM_WAIT_EVENT, contextId 1, streamId 8, correlationId 3, "
      "eventId 5\n"
      "CONCURRENT_KERNEL [ 30, 40 ] duration 10, \"b\", correlationId 4\n\tdeviceId 0, contextId 1, streamId 8\n"
      "SYNCHRONIZATION [ 31, 50 ] duration 1, type STREAM_SYNCHRONIZE, contextId 1, streamId 8, correlationId 5\n"
      "SYNCHRONIZATION [ 31, 70 ] duration 1, type CONTEXT_SYNCHRONIZE, contextId 1, correlationId 6\n";
  const Timeline timeline = import_as("cupti_text", text);
  ASSERT_EQ(timeline.dependencies.size(), 1U);
  EXPECT_EQ(timeline.dependencies[0].before, 0U);
  EXPECT_EQ(timeline.dependencies[0].after, 1U);
  EXPECT_EQ(timeline.spans[1].seen_ns, 50);
  EXPECT_EQ(timeline.spans[0].seen_ns, 70);
}

TEST(CuptiText, records_that_lack_something_are_counted) {
  const Timeline timeline =
      import_as("cupti_text",
                "CONCURRENT_KERNEL [ 10, 20 ] duration 10, \"a\", correlationId 1\n"
                "CONCURRENT_KERNEL [ 10, 99999999999999999999 ] duration 10, \"a\", correlationId 1\n"
                "\tdeviceId 0, contextId 1, streamId 7\n"
                "RUNTIME [ 10 ] \"x\", correlationId 1\n"
                "RUNTIME [ 10, 11 ] duration 1, \"x\", correlationId 1\n"
                "MEMCPY \"HtoD\" [ 10, 2");
  EXPECT_TRUE(timeline.spans.empty());
  EXPECT_EQ(dropped(timeline, "without times, device or stream"), 2U);
  EXPECT_EQ(dropped(timeline, "file ends within"), 1U);
  EXPECT_EQ(first_dropped(timeline, "without times, device or stream"), "test, line 1");
  EXPECT_EQ(dropped(timeline, "call without times"), 1U);
  EXPECT_EQ(timeline.calls.size(), 1U);
}

TEST(CuptiText, a_text_of_no_records_is_refused) {
  EXPECT_NE(rejection_of("cupti_text", "hello\nKERNEL panic\n").find("no line"), std::string::npos);
}

TEST(CuptiText, endless_lines_are_passed_over) {
  std::string text(std::size_t{3} << 20, 'x');
  text += "\nRUNTIME [ 1, 2 ] \"f\", correlationId 1\n";
  const Timeline timeline = import_as("cupti_text", text);
  EXPECT_EQ(dropped(timeline, "longer than 1 MiB"), 1U);
  EXPECT_EQ(timeline.calls.size(), 1U);
}

TEST(CuptiText, real_dump) {
  const auto path = real_file("cupti/activity_dump.txt");
  if (!path) GTEST_SKIP() << "WEIR_REAL_DATA does not name the folder of real captures";
  const auto traces = import_traces({*path}, {});
  const Timeline& timeline = traces.at(0).timeline;
  EXPECT_EQ(traces[0].files.at(0).format, "cupti_text");
  EXPECT_EQ(count(timeline, SpanKind::kernel), 16U);
  EXPECT_EQ(count(timeline, SpanKind::copy), 16U);
  EXPECT_TRUE(timeline.dropped.empty());
  std::set<std::int32_t> queues;
  for (const Span& span : timeline.spans) {
    EXPECT_NE(span.queue, kNoQueue);
    EXPECT_NE(span.call, kNoCall);
    queues.insert(span.queue);
  }
  EXPECT_GE(queues.size(), 5U);
  EXPECT_EQ(timeline.devices.size(), 2U);
}

std::string kernel_line(int context, int stream, const char* times) {
  return std::string("CONCURRENT_KERNEL [ ") + times +
         " ] duration 1, \"k\", correlationId 1\n\tdeviceId 0, contextId " + std::to_string(context) + ", streamId " +
         std::to_string(stream) + "\n";
}

TEST(CuptiText, contexts_number_their_streams_on_their_own) {
  const Timeline timeline =
      import_as("cupti_text", kernel_line(1, 7, "10, 20") + kernel_line(2, 7, "12, 22") + kernel_line(1, 7, "30, 40"));
  ASSERT_EQ(timeline.spans.size(), 3U);
  EXPECT_EQ(timeline.devices.size(), 1U);
  ASSERT_EQ(timeline.streams.size(), 2U);
  EXPECT_EQ(timeline.spans[0].stream, timeline.spans[2].stream);
  EXPECT_NE(timeline.spans[0].stream, timeline.spans[1].stream);
  EXPECT_EQ(timeline.streams[0].label, "stream 7");
  EXPECT_EQ(timeline.streams[1].label, "stream 7 of context 2");
  EXPECT_EQ(timeline.streams[1].id, 7U);
}

TEST(CuptiText, waiting_for_a_context_sees_its_commands_alone) {
  const Timeline timeline = import_as(
      "cupti_text", kernel_line(1, 7, "10, 20") + kernel_line(2, 8, "12, 22") +
                        "SYNCHRONIZATION [ 15, 25 ] duration 10, type CONTEXT_SYNCHRONIZE, contextId 2, streamId 0, "
                        "correlationId 5, eventId 0\n");
  ASSERT_EQ(timeline.spans.size(), 2U);
  EXPECT_EQ(timeline.spans[0].seen_ns, kNoTime);
  EXPECT_EQ(timeline.spans[1].seen_ns, 25);
}

TEST(CuptiText, times_that_cupti_could_not_take_are_none) {
  const Timeline timeline = import_as("cupti_text", kernel_line(1, 7, "0, 0") + kernel_line(1, 7, "1000, 1010"));
  ASSERT_EQ(timeline.spans.size(), 1U);
  EXPECT_EQ(dropped(timeline, "could not take"), 1U);
  EXPECT_TRUE(timeline.has_exact_gaps);
}

TEST(CuptiText, the_record_that_a_file_ends_within_is_dropped) {
  std::string text = kernel_line(1, 7, "10, 20") + kernel_line(1, 42, "30, 40");
  text.resize(text.size() - 2);  // stream 4
  const Timeline timeline = import_as("cupti_text", text);
  EXPECT_EQ(timeline.spans.size(), 1U);
  EXPECT_EQ(dropped(timeline, "file ends within"), 1U);
}

TEST(CuptiText, gaps_of_serialised_kernels_are_not_trusted) {
  const Timeline timeline =
      import_as("cupti_text", "KERNEL \"k\" [ 10 - 20 ] device 0, context 1, stream 7, correlation 12\n");
  ASSERT_EQ(timeline.spans.size(), 1U);
  EXPECT_FALSE(timeline.has_exact_gaps);
  EXPECT_TRUE(has_note(timeline, "one at a time"));
}

TEST(CuptiText, streams_that_ran_nothing_are_no_lanes) {
  const Timeline timeline =
      import_as("cupti_text", kernel_line(1, 7, "10, 20") +
                                  "SYNCHRONIZATION [ 1, 2 ] duration 1, type STREAM_SYNCHRONIZE, contextId 1, "
                                  "streamId 99, correlationId 5, eventId 0\n");
  EXPECT_EQ(timeline.streams.size(), 1U);
}

TEST(CuptiText, pieces_of_an_endless_line_are_no_record) {
  std::string line = "CONCURRENT_KERNEL [ 10, 20 ] \"k\", correlationId 1, deviceId 0, streamId 7 ";
  line.append((std::size_t{1} << 20) + 100, ' ');
  const Timeline timeline = import_as("cupti_text", line + "\n" + kernel_line(1, 7, "10, 20"));
  EXPECT_EQ(timeline.spans.size(), 1U);
  EXPECT_EQ(dropped(timeline, "longer than 1 MiB"), 1U);
}

}  // namespace
}  // namespace weir
