#include "trace/importer_testing.h"

#if WEIR_HAVE_SQLITE
namespace weir {
namespace {

const std::string kTables =
    "CREATE TABLE rocpd_string (id integer NOT NULL PRIMARY KEY AUTOINCREMENT, string varchar(4096) NOT NULL);"
    "CREATE TABLE rocpd_op (id integer NOT NULL PRIMARY KEY, gpuId integer, queueId integer, sequenceId integer, start"
    " integer, end integer, description_id integer, opType_id integer);"
    "CREATE TABLE rocpd_api (id integer NOT NULL PRIMARY KEY, pid integer, tid integer, start integer, end integer,"
    " apiName_id integer, args_id integer);"
    "CREATE TABLE rocpd_api_ops (id integer PRIMARY KEY, api_id integer, op_id integer);"
    "CREATE TABLE rocpd_kernelapi (api_ptr_id integer PRIMARY KEY, stream varchar(18));"
    "CREATE TABLE rocpd_copyapi (api_ptr_id integer PRIMARY KEY, stream varchar(18), size integer);"
    "INSERT INTO rocpd_string VALUES (1, 'KernelExecution'), (2, 'gemm'), (3, ''), (4, 'CopyHostToDevice'),"
    " (5, 'FillBuffer'), (6, 'hipLaunchKernel'), (7, 'Barrier'), (8, 'hipMemcpyAsync');";

TEST(Rpd, joins_operations_with_calls_and_streams) {
  const ImportedTrace trace =
      import_sniffed(database_of(
          kTables + "INSERT INTO rocpd_op VALUES (1, 2, 5, 0, 1000, 2000, 2, 1), (2, 2, 0, 0, 2100, 2200, 3, 4),"
                    " (3, 2, 0, 0, 2300, 2400, 3, 5), (4, 2, 0, 0, 2500, 2600, 3, 7), (5, 2, 0, 0, NULL, 1, 3, 1);"
                    "INSERT INTO rocpd_api VALUES (11, 100, 101, 800, 900, 6, 3), (12, 100, 101, 910, 920, 8, 3), (13, "
                    "100, 101, NULL, 1,"
                    " 8, 3);"
                    "INSERT INTO rocpd_api_ops VALUES (1, 11, 1), (2, 12, 2), (3, NULL, 3);"
                    "INSERT INTO rocpd_kernelapi VALUES (11, '0x7f00aa'), (99, 'nonsense');"
                    "INSERT INTO rocpd_copyapi VALUES (12, '0x0', 4096);"));
  EXPECT_EQ(trace.files.at(0).format, "rpd");
  const Timeline& timeline = trace.timeline;
  ASSERT_EQ(timeline.spans.size(), 3U);
  EXPECT_EQ(name_of(timeline, timeline.spans[0]), "gemm");
  EXPECT_EQ(stream_id(timeline, timeline.spans[0]), 0x7f00aaU);
  EXPECT_EQ(queue_label(timeline, timeline.spans[0]), "queue 5");
  EXPECT_EQ(timeline.spans[0].submitted_ns, 800);
  EXPECT_EQ(timeline.devices.at(0).id, 2);
  EXPECT_EQ(timeline.spans[1].kind, SpanKind::copy);
  EXPECT_EQ(timeline.spans[1].bytes, 4096U);
  EXPECT_EQ(name_of(timeline, timeline.spans[1]), "CopyHostToDevice");
  EXPECT_EQ(timeline.spans[2].kind, SpanKind::memset);
  EXPECT_EQ(timeline.processes.size(), 1U);
  EXPECT_EQ(timeline.calls.size(), 2U);
  EXPECT_TRUE(has_note(timeline, "1 commands have no stream"));
  EXPECT_EQ(dropped(timeline, "rocpd_op without"), 1U);
  EXPECT_EQ(dropped(timeline, "rocpd_api without"), 1U);
  EXPECT_EQ(dropped(timeline, "rocpd_kernelapi without"), 1U);
}

TEST(Rpd, processes_of_one_file_are_ranks) {
  const Timeline timeline = import_as(
      "rpd", database_of(kTables +
                         "INSERT INTO rocpd_op VALUES (1, 0, 0, 0, 1000, 2000, 2, 1), (2, 1, 0, 0, 1000, 2000, 2, 1);"
                         "INSERT INTO rocpd_api VALUES (11, 200, 201, 800, 900, 6, 3), (12, 100, 101, 700, 750, 6, 3);"
                         "INSERT INTO rocpd_api_ops VALUES (1, 11, 1), (2, 12, 2);"));
  ASSERT_EQ(timeline.processes.size(), 2U);
  ASSERT_EQ(timeline.devices.size(), 2U);
  for (const TraceDevice& device : timeline.devices)
    EXPECT_EQ(timeline.processes[device.process].rank, device.id == 0 ? 1 : 0);
}

TEST(Rpd, databases_of_others_are_refused) {
  EXPECT_NE(rejection_of("rpd", database_of("CREATE TABLE t (a);")).find("rocpd_op"), std::string::npos);
}

// rocprofv3's tables, their names ending in the run's id.
std::string rocpd(const std::string& columns_and_rows) {
  return "CREATE TABLE rocpd_string_ab (id INTEGER PRIMARY KEY, guid TEXT, string TEXT);"
         "INSERT INTO rocpd_string_ab VALUES (1, '', 'MEMORY_COPY_DEVICE_TO_HOST'), (2, '', 'hipLaunchKernel'), (3, "
         "'', 'step');"
         "CREATE TABLE rocpd_info_agent_ab (id INTEGER PRIMARY KEY, type TEXT, product_name TEXT, name TEXT);"
         "INSERT INTO rocpd_info_agent_ab VALUES (1, 'CPU', 'EPYC', 'cpu'), (4, 'GPU', 'MI300X', 'gfx942');"
         "CREATE TABLE rocpd_info_kernel_symbol_ab (id INTEGER PRIMARY KEY, kernel_name TEXT, display_name TEXT);"
         "INSERT INTO rocpd_info_kernel_symbol_ab VALUES (9, '_Z1kv.kd', 'k()'), (10, 'plain', NULL);"
         "CREATE TABLE rocpd_event_ab (id INTEGER PRIMARY KEY, stack_id INTEGER);"
         "INSERT INTO rocpd_event_ab VALUES (1, 500), (2, 501), (3, 500);" +
         columns_and_rows;
}

void check_rocpd(const Timeline& timeline) {
  ASSERT_EQ(timeline.spans.size(), 2U);
  const Span& kernel = timeline.spans[0];
  EXPECT_EQ(name_of(timeline, kernel), "k()");
  EXPECT_EQ(stream_id(timeline, kernel), 6U);
  EXPECT_EQ(queue_label(timeline, kernel), "queue 3");
  EXPECT_EQ(kernel.started_ns, 1000);
  EXPECT_EQ(kernel.submitted_ns, 800);
  ASSERT_EQ(timeline.devices.size(), 1U);
  EXPECT_EQ(timeline.devices[0].label, "agent 4: MI300X");
  EXPECT_EQ(timeline.spans[1].kind, SpanKind::copy);
  EXPECT_EQ(timeline.spans[1].bytes, 64U);
  EXPECT_EQ(timeline.spans[1].queue, kNoQueue);
  EXPECT_EQ(timeline.calls.size(), 1U);
  ASSERT_EQ(timeline.ranges.size(), 1U);
  EXPECT_TRUE(timeline.dropped.empty());
}

TEST(Rpd, rocprofv3_with_times_in_its_rows) {
  const ImportedTrace trace = import_sniffed(database_of(rocpd(
      "CREATE TABLE rocpd_kernel_dispatch_ab (id INTEGER PRIMARY KEY, tid INTEGER, agent_id INTEGER, kernel_id INTEGER,"
      " queue_id INTEGER, stream_id INTEGER, start BIGINT, end BIGINT, event_id INTEGER);"
      "INSERT INTO rocpd_kernel_dispatch_ab VALUES (1, 7, 4, 9, 3, 6, 1000, 2000, 1);"
      "CREATE TABLE rocpd_memory_copy_ab (id INTEGER PRIMARY KEY, tid INTEGER, start BIGINT, end BIGINT, name_id "
      "INTEGER,"
      " dst_agent_id INTEGER, src_agent_id INTEGER, size INTEGER, queue_id INTEGER, stream_id INTEGER, event_id "
      "INTEGER);"
      "INSERT INTO rocpd_memory_copy_ab VALUES (1, 7, 2100, 2200, 1, 1, 4, 64, NULL, 6, 2);"
      "CREATE TABLE rocpd_region_ab (id INTEGER PRIMARY KEY, tid INTEGER, start BIGINT, end BIGINT, name_id INTEGER,"
      " event_id INTEGER);"
      "INSERT INTO rocpd_region_ab VALUES (1, 7, 800, 900, 2, 3), (2, 7, 700, 3000, 3, NULL);")));
  EXPECT_EQ(trace.files.at(0).format, "rpd");
  check_rocpd(trace.timeline);
}

TEST(Rpd, rocprofv3_with_tracks_and_timestamps) {
  check_rocpd(import_as(
      "rpd",
      database_of(rocpd(
          "CREATE TABLE rocpd_timestamp_ab (id INTEGER PRIMARY KEY, value BIGINT);"
          "INSERT INTO rocpd_timestamp_ab VALUES (1, 1000), (2, 2000), (3, 2100), (4, 2200), (5, 800), (6, 900), (7, "
          "700),"
          " (8, 3000);"
          "CREATE TABLE rocpd_track_ab (id INTEGER PRIMARY KEY, tid INTEGER, agent_id INTEGER, queue_id INTEGER, "
          "stream_id"
          " INTEGER);"
          "INSERT INTO rocpd_track_ab VALUES (1, 7, 4, 3, 6), (2, 7, NULL, NULL, NULL);"
          "CREATE TABLE rocpd_kernel_dispatch_ab (id INTEGER PRIMARY KEY, track_id INTEGER, kernel_id INTEGER, start_id"
          " INTEGER, end_id INTEGER, event_id INTEGER);"
          "INSERT INTO rocpd_kernel_dispatch_ab VALUES (1, 1, 9, 1, 2, 1);"
          "CREATE TABLE rocpd_memory_copy_ab (id INTEGER PRIMARY KEY, track_id INTEGER, start_id INTEGER, end_id "
          "INTEGER,"
          " name_id INTEGER, dst_agent_id INTEGER, src_agent_id INTEGER, size INTEGER, event_id INTEGER);"
          "INSERT INTO rocpd_memory_copy_ab VALUES (1, 1, 3, 4, 1, 1, 4, 64, 2);"
          "CREATE TABLE rocpd_region_ab (id INTEGER PRIMARY KEY, track_id INTEGER, name_id INTEGER, start_id INTEGER, "
          "end_id"
          " INTEGER, event_id INTEGER);"
          "INSERT INTO rocpd_region_ab VALUES (1, 2, 2, 5, 6, 3), (2, 2, 3, 7, 8, NULL);"))));
}

TEST(Rpd, real_file) {
  const auto path = real_file("rpd/matmul_result.rpd");
  if (!path) GTEST_SKIP() << "WEIR_REAL_DATA does not name the folder of real captures";
  const auto traces = import_traces({*path}, {});
  const Timeline& timeline = traces.at(0).timeline;
  EXPECT_EQ(traces[0].files.at(0).format, "rpd");
  EXPECT_EQ(count(timeline, SpanKind::kernel), 29U);
  EXPECT_EQ(count(timeline, SpanKind::copy), 55U);
  EXPECT_EQ(count(timeline, SpanKind::memset), 1U);
  EXPECT_EQ(timeline.calls.size(), 125U);
  for (const Span& span : timeline.spans) EXPECT_NE(span.call, kNoCall);
  EXPECT_TRUE(timeline.dropped.empty());
}

TEST(Rpd, processes_of_one_file_have_one_clock) {
  const Timeline timeline = import_as(
      "rpd", database_of("CREATE TABLE rocpd_op (id INTEGER PRIMARY KEY, gpuId INTEGER, queueId INTEGER, start INTEGER,"
                         "end INTEGER, description_id INTEGER, opType_id INTEGER);"
                         "CREATE TABLE rocpd_api (id INTEGER PRIMARY KEY, pid INTEGER, tid INTEGER, start INTEGER,"
                         "end INTEGER, apiName_id INTEGER);"
                         "INSERT INTO rocpd_api VALUES (1, 10, 1, 1, 2, 1), (2, 20, 1, 1, 2, 1);"
                         "INSERT INTO rocpd_op VALUES (1, 0, 0, 10, 20, 1, 1);"));
  ASSERT_EQ(timeline.processes.size(), 2U);
  EXPECT_GE(timeline.processes[0].clock, 0);
  EXPECT_EQ(timeline.processes[0].clock, timeline.processes[1].clock);
}

}  // namespace
}  // namespace weir
#endif
