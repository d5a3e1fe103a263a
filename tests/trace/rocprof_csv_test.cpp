#include "trace/import/csv_reader.h"
#include "trace/import/list.h"
#include "trace/importer_testing.h"

namespace weir {
namespace {

const std::string kKernelHeader =
    "\"Kind\",\"Agent_Id\",\"Queue_Id\",\"Stream_Id\",\"Thread_Id\",\"Dispatch_Id\",\"Kernel_Id\",\"Kernel_Name\","
    "\"Correlation_Id\",\"Start_Timestamp\",\"End_Timestamp\"\n";

TEST(RocprofCsv, reads_kernels_with_stream_and_queue) {
  const ImportedTrace trace =
      import_sniffed(kKernelHeader +
                     "\"KERNEL_DISPATCH\",\"Agent 4\",2,17,1,1,10,\"void add<float>(float*, int)\",1,1000,2000\n"
                     "\"KERNEL_DISPATCH\",\"Agent 4\",3,18,1,2,10,\"ncclDevKernel_AllReduce\",2,1500,2500\n");
  EXPECT_EQ(trace.files.at(0).format, "rocprof_csv");
  const Timeline& timeline = trace.timeline;
  ASSERT_EQ(timeline.spans.size(), 2U);
  EXPECT_EQ(name_of(timeline, timeline.spans[0]), "void add<float>(float*, int)");
  EXPECT_EQ(stream_id(timeline, timeline.spans[0]), 17U);
  EXPECT_EQ(queue_label(timeline, timeline.spans[0]), "queue 2");
  EXPECT_EQ(timeline.devices.at(0).id, 4);
  EXPECT_EQ(timeline.spans[1].kind, SpanKind::collective);
  EXPECT_FALSE(timeline.has_dependencies);
}

TEST(RocprofCsv, quotes_line_ends_and_marks) {
  const Timeline timeline = import_as("rocprof_csv",
                                      "\xEF\xBB\xBF"
                                      "Kind,Agent_Id,Queue_Id,Stream_Id,Kernel_Name,Start_Timestamp,End_Timestamp\r\n"
                                      "K,4,1,1,\"a \"\"b\"\", c\r\nd\",10,20\r\n"
                                      "\r\n"
                                      "K,4,1,1,\"e \"f\" g\",30,40\r\n"
                                      "K,4,1,1,plain,50,60");
  ASSERT_EQ(timeline.spans.size(), 3U);
  EXPECT_EQ(name_of(timeline, timeline.spans[0]), "a \"b\", c\r\nd");
  EXPECT_EQ(name_of(timeline, timeline.spans[1]), "e \"f\" g");
  EXPECT_EQ(name_of(timeline, timeline.spans[2]), "plain");
  EXPECT_TRUE(timeline.dropped.empty());
}

TEST(RocprofCsv, what_does_not_fit_is_dropped_with_its_line) {
  const Timeline timeline = import_as("rocprof_csv", kKernelHeader +
                                                         "\"K\",\"Agent 4\",1,1,1,1,1,\"two\nlines\",1,10,20\n"
                                                         "\"K\",\"Agent 4\",1\n"
                                                         "\"K\",\"Agent 4\",1,1,1,1,1,\"k\",1,ten,20\n"
                                                         "\"K\",\"Agent 4\",1,1,1,1,1,\"k\",1,20,10\n"
                                                         "\"K\",\"nobody\",1,1,1,1,1,\"k\",1,10,20\n"
                                                         "\"K\",\"Agent 4\",1,1,1,1,1,\"k\",1,99999999999999999999,20\n"
                                                         "\"K\",\"Agent 4\",1,1,1,1,1,\"never closed,1,10,20\n");
  EXPECT_EQ(timeline.spans.size(), 1U);
  EXPECT_EQ(first_dropped(timeline, "columns than the header"), "test, line 4");
  EXPECT_EQ(dropped(timeline, "without a number"), 2U);
  EXPECT_EQ(first_dropped(timeline, "without a number"), "test, line 5");
  EXPECT_EQ(first_dropped(timeline, "ends before it starts"), "test, line 6");
  EXPECT_EQ(first_dropped(timeline, "without an agent"), "test, line 7");
  EXPECT_EQ(first_dropped(timeline, "file ends within"), "test, line 9");
}

TEST(RocprofCsv, a_quote_that_nobody_closed_costs_one_row) {
  std::string text = kKernelHeader + "\"K\",\"Agent 4\",1,1,1,1,1,\"open,1,10,20\n";
  const std::string row = "K,Agent 4,1,1,1,1,1,k,1,10,20\n";
  while (text.size() < (std::size_t{3} << 20)) text += row;
  const Timeline timeline = import_as("rocprof_csv", text);
  EXPECT_EQ(first_dropped(timeline, "longer than 1 MiB"), "test, line 2");
  EXPECT_EQ(dropped(timeline, "longer than 1 MiB"), 1U);
  EXPECT_EQ(timeline.spans.size(), (text.size() - text.find(row)) / row.size());
}

TEST(RocprofCsv, many_open_quotes_do_not_take_forever) {
  std::string text = kKernelHeader;
  while (text.size() < (std::size_t{20} << 20)) text += "\"K\",\"never closed \"here\n";
  EXPECT_GT(dropped(import_as("rocprof_csv", text), "longer than 1 MiB"), 16U);
}

TEST(RocprofCsv, without_streams_queues_stand_in) {
  const Timeline timeline =
      import_as("rocprof_csv",
                "Kind,Agent_Id,Queue_Id,Kernel_Name,Correlation_Id,Start_Timestamp,End_Timestamp\n"
                "K,4,3,k,1,10,20\n");
  ASSERT_EQ(timeline.spans.size(), 1U);
  EXPECT_EQ(stream_id(timeline, timeline.spans[0]), 3U);
  EXPECT_TRUE(has_note(timeline, "hardware queues stand in"));
}

TEST(RocprofCsv, older_columns) {
  const Timeline timeline = import_as("rocprof_csv",
                                      "\"Index\",\"KernelName\",\"gpu-id\",\"queue-id\",\"BeginNs\",\"EndNs\"\n"
                                      "0,\"k.kd\",1,0,10,20\n");
  ASSERT_EQ(timeline.spans.size(), 1U);
  EXPECT_EQ(timeline.devices.at(0).id, 1);
}

TEST(RocprofCsv, copies_belong_to_the_gpu_at_one_end) {
  const Timeline timeline =
      import_as("rocprof_csv",
                "\"Kind\",\"Direction\",\"Stream_Id\",\"Source_Agent_Id\",\"Destination_Agent_Id\",\"Correlation_Id\","
                "\"Start_Timestamp\",\"End_Timestamp\"\n"
                "\"MEMORY_COPY\",\"MEMORY_COPY_HOST_TO_DEVICE\",5,\"Agent 0\",\"Agent 4\",1,10,20\n"
                "\"MEMORY_COPY\",\"MEMORY_COPY_DEVICE_TO_HOST\",5,\"Agent 4\",\"Agent 0\",2,30,40\n"
                "\"MEMORY_COPY\",\"MEMORY_COPY_DEVICE_TO_DEVICE\",5,\"Agent 4\",\"Agent 5\",3,50,60\n");
  EXPECT_EQ(count(timeline, SpanKind::copy), 3U);
  ASSERT_EQ(timeline.devices.size(), 1U);
  EXPECT_EQ(timeline.devices[0].id, 4);
  EXPECT_EQ(timeline.spans[0].queue, kNoQueue);
}

TEST(RocprofCsv, files_of_one_process_come_together) {
  ScratchFolder folder;
  const auto kernels = folder.write("12_kernel_trace.csv", kKernelHeader + "K,Agent 4,1,1,1,1,1,k,33,1000,2000\n");
  const std::string calls_header =
      "Domain,Function,Process_Id,Thread_Id,Correlation_Id,Start_Timestamp,End_Timestamp\n";
  const auto calls =
      folder.write("12_hip_api_trace.csv", calls_header + "HIP_RUNTIME_API,hipLaunchKernel,12,7,33,800,900\n");
  const auto markers =
      folder.write("12_marker_api_trace.csv", calls_header + "MARKER_CORE_API,step 1,12,7,34,700,2100\n");
  const auto other = folder.write("13_kernel_trace.csv", kKernelHeader + "K,Agent 5,1,1,1,1,1,k,33,1000,2000\n");
  const auto traces = import_traces({kernels, other, calls, markers}, {});
  ASSERT_EQ(traces.size(), 2U);
  EXPECT_EQ(traces[0].files.size(), 3U);
  const Timeline& timeline = traces[0].timeline;
  ASSERT_EQ(timeline.spans.size(), 1U);
  EXPECT_EQ(timeline.processes.size(), 1U);
  EXPECT_EQ(timeline.spans[0].submitted_ns, 800);
  EXPECT_EQ(timeline.spans[0].accepted_ns, 900);
  ASSERT_EQ(timeline.ranges.size(), 1U);
  EXPECT_EQ(timeline.names.at(timeline.ranges[0].name), "step 1");
  EXPECT_EQ(traces[1].timeline.spans.at(0).submitted_ns, kNoTime);
}

TEST(RocprofCsv, headers_that_lack_columns_are_refused_by_name) {
  EXPECT_NE(rejection_of("rocprof_csv", "Kernel_Name,Start_Timestamp\nk,1\n").find("End_Timestamp, Agent_Id"),
            std::string::npos);
  EXPECT_NE(rejection_of("rocprof_csv", "a,b\n1,2\n").find("Kernel_Name"), std::string::npos);
  EXPECT_NE(rejection_of("rocprof_csv", "\"").find("first line"), std::string::npos);
}

TEST(RocprofCsv, header_alone_is_a_trace_of_nothing) {
  EXPECT_TRUE(import_as("rocprof_csv", kKernelHeader).spans.empty());
}

TEST(RocprofCsv, real_files) {
  const auto kernels = real_file("rocprof/kernel_trace.csv"), copies = real_file("rocprof/memory_copy_trace.csv"),
             calls = real_file("rocprof/hip_trace.csv");
  if (!kernels || !copies || !calls) GTEST_SKIP() << "WEIR_REAL_DATA does not name the folder of real captures";
  const auto traces = import_traces({*kernels, *copies, *calls}, {});
  ASSERT_EQ(traces.size(), 1U);
  const Timeline& timeline = traces[0].timeline;
  EXPECT_EQ(count(timeline, SpanKind::kernel), 9U);
  EXPECT_EQ(count(timeline, SpanKind::copy), 4U);
  EXPECT_EQ(timeline.calls.size(), 17U);
  EXPECT_EQ(timeline.queues.size(), 4U);
  EXPECT_TRUE(timeline.dropped.empty());
}

TEST(RocprofCsv, the_same_file_twice_is_two_captures) {
  ScratchFolder folder;
  const auto path = folder.write("1_kernel_trace.csv",
                                 "Kind,Agent_Id,Queue_Id,Kernel_Name,Correlation_Id,Start_Timestamp,End_Timestamp\n"
                                 "KERNEL_DISPATCH,4,1,k,1,10,20\n");
  const auto traces = import_traces({path, path}, {});
  ASSERT_EQ(traces.size(), 2U);
  EXPECT_EQ(traces[0].timeline.spans.size(), 1U);
  EXPECT_EQ(traces[1].timeline.spans.size(), 1U);
}

TEST(RocprofCsv, a_call_that_ends_before_it_starts_is_dropped) {
  const Timeline timeline = import_as("rocprof_csv",
                                      "Domain,Function,Process_Id,Thread_Id,Correlation_Id,Start_Timestamp,"
                                      "End_Timestamp\nHIP,hipLaunchKernel,1,1,1,20,10\nHIP,hipFree,1,1,2,20,30\n");
  EXPECT_EQ(timeline.calls.size(), 1U);
  EXPECT_EQ(dropped(timeline, "call that ends before"), 1U);
  EXPECT_EQ(first_dropped(timeline, "call that ends before"), "test, line 2");
}

}  // namespace
}  // namespace weir
