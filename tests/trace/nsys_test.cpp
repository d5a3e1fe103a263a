#include "trace/clock_alignment.h"
#include "trace/importer_testing.h"

#if WEIR_HAVE_SQLITE
namespace weir {
namespace {

// pid 144 and 145 as Nsight writes them: the last 24 bits are the thread's.
constexpr std::int64_t kFirst = 281477392629760, kSecond = 281477409406976;

const std::string kStringTable =
    "CREATE TABLE StringIds (id INTEGER NOT NULL PRIMARY KEY, value TEXT NOT NULL);"
    "INSERT INTO StringIds VALUES (1, 'void gemm<float>(int)'), (2, 'ncclDevKernel_AllGather'),"
    "(3, 'cudaLaunchKernel_v7000'), (4, 'step 1');";

const std::string kKernelTable =
    "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER NOT NULL, end INTEGER NOT NULL, deviceId INTEGER NOT NULL,"
    "contextId INTEGER NOT NULL, greenContextId INTEGER, streamId INTEGER NOT NULL, correlationId INTEGER, globalPid "
    "INTEGER,"
    "demangledName INTEGER NOT NULL, shortName INTEGER NOT NULL);";

std::string nsys_kernel(std::int64_t start, std::int64_t end, int device, int context, int stream,
                        const char* correlation, std::int64_t process, int name) {
  return "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (" + std::to_string(start) + "," + std::to_string(end) + "," +
         std::to_string(device) + "," + std::to_string(context) + ",0," + std::to_string(stream) + "," + correlation +
         "," + std::to_string(process) + "," + std::to_string(name) + "," + std::to_string(name) + ");";
}

std::string two_processes() {
  return kStringTable + kKernelTable + nsys_kernel(1000, 2000, 0, 1, 7, "10", kFirst, 1) +
         nsys_kernel(2100, 2200, 0, 1, 8, "13", kFirst, 2) + nsys_kernel(1000, 2000, 1, 2, 7, "10", kSecond, 1) +
         "CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY (start INTEGER, end INTEGER, deviceId INTEGER, contextId INTEGER,"
         "streamId INTEGER, correlationId INTEGER, globalPid INTEGER, bytes INTEGER, copyKind INTEGER);"
         "INSERT INTO CUPTI_ACTIVITY_KIND_MEMCPY VALUES (3000, 3100, 0, 1, 7, 20, " +
         std::to_string(kFirst) +
         ", 4096, 1);"
         "CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start INTEGER, end INTEGER, eventClass INTEGER, globalTid INTEGER,"
         "correlationId INTEGER, nameId INTEGER);"
         "INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (800, 900, 0, " +
         std::to_string(kFirst + 5) + ", 10, 3), (100, 200, 0, " + std::to_string(kSecond + 6) +
         ", 10, 3), (1, 2, 0, 7, 10, 3);"
         "CREATE TABLE PROCESSES (globalPid INTEGER, pid INTEGER, name TEXT);"
         "INSERT INTO PROCESSES VALUES (" +
         std::to_string(kSecond) + ", 145, 'python');";
}

// The first stream's event, waited for by the second: device 0 in every wait, as Nsight Systems 2026.2 writes.
std::string waits(bool with_events) {
  std::string sql =
      "CREATE TABLE CUPTI_ACTIVITY_KIND_SYNCHRONIZATION (start INTEGER, end INTEGER, deviceId INTEGER, contextId "
      "INTEGER,"
      "streamId INTEGER, correlationId INTEGER, globalPid INTEGER, syncType INTEGER, eventId INTEGER, eventSyncId "
      "INTEGER);"
      "INSERT INTO CUPTI_ACTIVITY_KIND_SYNCHRONIZATION VALUES (1,2,0,1,8,12," +
      std::to_string(kFirst) + ",2,5,99), (2100,2500,0,1,8,14," + std::to_string(kFirst) +
      ",3,4294967295,0);"
      "CREATE TABLE CUPTI_ACTIVITY_KIND_CUDA_EVENT (deviceId INTEGER, contextId INTEGER, streamId INTEGER,"
      "correlationId INTEGER, globalPid INTEGER, eventId INTEGER, eventSyncId INTEGER);";
  if (with_events)
    sql += "INSERT INTO CUPTI_ACTIVITY_KIND_CUDA_EVENT VALUES (0,1,7,11," + std::to_string(kFirst) + ",5,99);";
  return sql;
}

TEST(Nsys, each_process_with_gpu_work_is_a_rank) {
  const ImportedTrace trace = import_sniffed(database_of(two_processes()));
  EXPECT_EQ(trace.files.at(0).format, "nsys");
  const Timeline& timeline = trace.timeline;
  ASSERT_EQ(timeline.spans.size(), 4U);
  ASSERT_EQ(timeline.processes.size(), 2U);
  EXPECT_EQ(timeline.processes[1].rank, 1);
  EXPECT_EQ(timeline.processes[1].label, "test, python 145");
  ASSERT_EQ(timeline.devices.size(), 2U);
  EXPECT_EQ(timeline.devices[1].process, 1U);
  EXPECT_EQ(timeline.devices[1].id, 1);
  // Calls are joined within their process; the one of neither is nobody's.
  EXPECT_EQ(timeline.calls.size(), 2U);
  for (const Span& span : timeline.spans) {
    if (span.started_ns != 1000) continue;
    const bool is_first = timeline.devices[timeline.streams[span.stream].device].process == 0;
    EXPECT_EQ(span.submitted_ns, is_first ? 800 : 100);
  }
  EXPECT_EQ(timeline.names.at(timeline.calls[0].name), "cudaLaunchKernel");
  EXPECT_EQ(timeline.calls[0].thread, 5U);
  EXPECT_EQ(count(timeline, SpanKind::collective), 1U);
  const Span& copy = timeline.spans[3];
  EXPECT_EQ(name_of(timeline, copy), "Memcpy HtoD");
  EXPECT_EQ(copy.bytes, 4096U);
  EXPECT_FALSE(timeline.has_dependencies);
  EXPECT_TRUE(has_note(timeline, "no table CUPTI_ACTIVITY_KIND_SYNCHRONIZATION"));
}

TEST(Nsys, processes_of_one_machine_have_one_clock) {
  const Timeline timeline = import_as("nsys", database_of(two_processes()));
  ASSERT_EQ(timeline.processes.size(), 2U);
  EXPECT_GE(timeline.processes[0].clock, 0);
  EXPECT_EQ(timeline.processes[0].clock, timeline.processes[1].clock);
  EXPECT_TRUE(timeline.has_exact_gaps);
  const auto alignment = align_clocks(timeline);
  ASSERT_TRUE(alignment.has_value());
  EXPECT_TRUE(alignment->is_aligned);
  EXPECT_EQ(alignment->error_ns, 0);
  // The byte before the process's id is the machine's.
  const Timeline two =
      import_as("nsys", database_of(kStringTable + kKernelTable + nsys_kernel(1000, 2000, 0, 1, 7, "10", kFirst, 1) +
                                    nsys_kernel(1000, 2000, 0, 1, 7, "10", kFirst + (std::int64_t{1} << 48), 1)));
  ASSERT_EQ(two.processes.size(), 2U);
  EXPECT_NE(two.processes[0].clock, two.processes[1].clock);
}

TEST(Nsys, a_database_that_was_cut_off_gives_what_is_left) {
  std::string rows = kStringTable + kKernelTable;
  for (int i = 0; i < 2000; ++i) rows += nsys_kernel(10 * i + 1, 10 * i + 5, 0, 1, 7, "1", kFirst, 1);
  const std::string database = database_of(rows);
  const std::string cut = database.substr(0, database.size() * 3 / 4 + 100);
  const auto check = [](const Timeline& timeline) {
    EXPECT_GT(timeline.spans.size(), 100U);
    EXPECT_LT(timeline.spans.size(), 2000U);
    EXPECT_GE(dropped(timeline, "it was cut off"), 1U);
    EXPECT_GE(dropped(timeline, "CUPTI_ACTIVITY_KIND_KERNEL cannot be read to its end"), 1U);
  };
  check(import_as("nsys", cut));
  ScratchFolder folder;
  check(import_traces({folder.write("cut.sqlite", cut)}, {}).at(0).timeline);
}

TEST(Nsys, one_value_too_long_costs_one_name) {
  const Timeline timeline = import_as(
      "nsys", database_of(kStringTable + kKernelTable +
                          "INSERT INTO StringIds VALUES (9, replace(hex(zeroblob(40000000)),'0','k'));" +
                          nsys_kernel(10, 20, 0, 1, 7, "1", kFirst, 9) + nsys_kernel(30, 40, 0, 1, 7, "2", kFirst, 1)));
  ASSERT_EQ(timeline.spans.size(), 2U);
  EXPECT_EQ(timeline.spans[0].name, kNoName);
  EXPECT_EQ(name_of(timeline, timeline.spans[1]), "void gemm<float>(int)");
  EXPECT_GE(dropped(timeline, "StringIds cannot be read"), 1U);
}

// An index with an entry too few, as damage or malice leaves it: the table has a process that the index lacks.
TEST(Nsys, an_index_that_disagrees_with_its_table_is_no_crash) {
  const std::string sql = kStringTable + kKernelTable + nsys_kernel(10, 20, 0, 1, 7, "1", kFirst, 1) +
                          "CREATE INDEX pids ON CUPTI_ACTIVITY_KIND_KERNEL (globalPid);"
                          "PRAGMA writable_schema=ON; UPDATE sqlite_master SET rootpage = (SELECT rootpage FROM"
                          " sqlite_master WHERE name = 'empty') WHERE name = 'pids';";
  const std::string database = database_of("CREATE TABLE other (a); CREATE INDEX empty ON other (a);" + sql);
  const Timeline timeline = import_as("nsys", database);
  EXPECT_EQ(timeline.spans.size() + dropped(timeline, "index lacks"), 1U);
}

TEST(Nsys, waits_are_resolved_by_the_events_records) {
  const Timeline timeline = import_as("nsys", database_of(two_processes() + waits(true)));
  EXPECT_TRUE(timeline.has_dependencies);
  ASSERT_EQ(timeline.dependencies.size(), 1U);
  EXPECT_EQ(timeline.spans[timeline.dependencies[0].before].ended_ns, 2000);
  EXPECT_EQ(stream_id(timeline, timeline.spans[timeline.dependencies[0].after]), 8U);
  EXPECT_EQ(timeline.spans[timeline.dependencies[0].after].seen_ns, 2500);
}

TEST(Nsys, waits_without_records_are_no_dependencies) {
  const Timeline timeline = import_as("nsys", database_of(two_processes() + waits(false)));
  EXPECT_FALSE(timeline.has_dependencies);
  EXPECT_TRUE(has_note(timeline, "--cuda-event-trace"));
}

TEST(Nsys, older_exports_lack_columns) {
  const Timeline timeline = import_as(
      "nsys", database_of("CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER, end INTEGER, deviceId INTEGER,"
                          "streamId INTEGER, shortName INTEGER);"
                          "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (10, 20, 0, 7, 1), (30, NULL, 0, 7, 1),"
                          "(50, 40, 0, 7, 1), (60, 70, 0, 'x', 1);" +
                          kStringTable +
                          "CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start INTEGER, end INTEGER, globalTid INTEGER,"
                          "correlationId INTEGER, nameId INTEGER);"
                          "INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (1, 2, 77, 1, 3), (1, NULL, 77, 1, 3);"));
  ASSERT_EQ(timeline.spans.size(), 1U);
  EXPECT_EQ(name_of(timeline, timeline.spans[0]), "void gemm<float>(int)");
  EXPECT_EQ(timeline.calls.size(), 1U);
  EXPECT_EQ(dropped(timeline, "without start, end, device or stream"), 2U);
  EXPECT_EQ(first_dropped(timeline, "without start, end, device or stream"), "test, row 2");
  EXPECT_EQ(dropped(timeline, "ends before it starts"), 1U);
  EXPECT_EQ(dropped(timeline, "call without"), 1U);
}

TEST(Nsys, channels_are_queues_where_a_column_has_them) {
  const Timeline timeline = import_as(
      "nsys",
      database_of(kStringTable +
                  "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER, end INTEGER, deviceId INTEGER, streamId"
                  " INTEGER, demangledName INTEGER, channelID INTEGER, channelType INTEGER);"
                  "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (10, 20, 0, 7, 1, 16, 1);"
                  "CREATE TABLE TARGET_INFO_GPU (id INTEGER, name TEXT);"
                  "INSERT INTO TARGET_INFO_GPU VALUES (0, 'NVIDIA H100'), (1, 'other');"));
  ASSERT_EQ(timeline.spans.size(), 1U);
  EXPECT_EQ(queue_label(timeline, timeline.spans[0]), "queue 16");
  ASSERT_EQ(timeline.devices.size(), 1U);
  EXPECT_EQ(timeline.devices[0].label, "GPU 0: NVIDIA H100");
}

TEST(Nsys, ranges_of_operators_are_left_out) {
  const Timeline timeline = import_as(
      "nsys", database_of(two_processes() +
                          "CREATE TABLE NVTX_EVENTS (start INTEGER, end INTEGER, eventType INTEGER, text TEXT, textId"
                          " INTEGER, globalTid INTEGER);"
                          "INSERT INTO NVTX_EVENTS VALUES (1, 2, 59, 'aten::copy_, op_id = 9', NULL, " +
                          std::to_string(kFirst + 5) + "), (3, 4, 60, NULL, 4, " + std::to_string(kFirst + 5) +
                          "), (5, NULL, 34, 'mark', NULL, " + std::to_string(kFirst + 5) + ");"));
  ASSERT_EQ(timeline.ranges.size(), 1U);
  EXPECT_EQ(timeline.names.at(timeline.ranges[0].name), "step 1");
  EXPECT_TRUE(has_note(timeline, "1 NVTX ranges"));
}

TEST(Nsys, databases_without_gpu_tables_are_refused) {
  const std::string other = rejection_of("nsys", database_of("CREATE TABLE t (a); INSERT INTO t VALUES (1);"));
  EXPECT_NE(other.find("no table CUPTI_ACTIVITY_KIND_KERNEL"), std::string::npos);
  EXPECT_NE(other.find("nsys export --type sqlite"), std::string::npos);
  EXPECT_NE(rejection_of("nsys", database_of("CREATE TABLE rocpd_op (a);")).find("--input-format rpd"),
            std::string::npos);
  EXPECT_NE(rejection_of("nsys", "not a database at all, but long enough to look like something").find("SQLite"),
            std::string::npos);
}

// Views, virtual tables and generated columns are the file's own code: none of it runs.
TEST(Nsys, code_in_the_database_is_not_run) {
  EXPECT_NE(
      rejection_of("nsys", database_of("CREATE TABLE t (a);"
                                       "CREATE VIEW CUPTI_ACTIVITY_KIND_KERNEL AS WITH RECURSIVE c(start) AS (SELECT 1"
                                       " UNION ALL SELECT start + 1 FROM c) SELECT * FROM c;"))
          .find("no table"),
      std::string::npos);
  const Timeline timeline = import_as(
      "nsys",
      database_of("CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER, end INTEGER AS (length(zeroblob(1e9)))"
                  " VIRTUAL, deviceId INTEGER, streamId INTEGER);"
                  "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL (start, deviceId, streamId) VALUES (1, 0, 7);"));
  EXPECT_TRUE(timeline.spans.empty());
  EXPECT_FALSE(timeline.dropped.empty());
}

// Whatever bytes are damaged, it ends in a timeline or in our error.
TEST(Nsys, damaged_databases_are_read_as_far_as_they_go) {
  std::string many = two_processes();
  for (int i = 0; i < 300; ++i) many += nsys_kernel(5000 + i, 6000 + i, 0, 1, 7, "NULL", kFirst, 1);
  const std::string whole = database_of(many);
  std::size_t read = 0;
  for (std::size_t at = 100; at < whole.size(); at += 97) {
    std::string damaged = whole;
    for (std::size_t i = at; i < std::min(at + 40, damaged.size()); ++i) damaged[i] = static_cast<char>(0xA5 + i);
    try {
      EXPECT_LE(import_as("nsys", damaged).spans.size(), 400U);
      ++read;
    } catch (const Error& error) {
      EXPECT_EQ(error.fault, Fault::input);
    }
  }
  EXPECT_GT(read, 10U);
  const std::string half = rejection_of("nsys", std::string_view(whole).substr(0, whole.size() / 2));
  EXPECT_NE(half.find(".recover"), std::string::npos);
}

TEST(Nsys, a_path_is_opened_in_place_whatever_its_name) {
  ScratchFolder folder;
  std::string bytes = database_of(two_processes());
  const auto path = folder.write("a b%20?c#d.sqlite", bytes);
  EXPECT_EQ(import_traces({path}, {}).at(0).timeline.spans.size(), 4U);
  folder.write("a b%20?c#d.sqlite-wal", "something");
  EXPECT_TRUE(has_note(import_traces({path}, {}).at(0).timeline, "was not read"));
  bytes[18] = bytes[19] = 2;  // WAL mode
  EXPECT_EQ(import_as("nsys", bytes).spans.size(), 4U);
  EXPECT_EQ(import_traces({folder.write("wal.sqlite", bytes)}, {}).at(0).timeline.spans.size(), 4U);
}

void check_real(const char* name, std::size_t kernels, std::size_t copies, std::size_t memsets, std::size_t calls) {
  const auto path = real_file(name);
  if (!path) GTEST_SKIP() << "WEIR_REAL_DATA does not name the folder of real captures";
  const auto traces = import_traces({*path}, {});
  const Timeline& timeline = traces.at(0).timeline;
  EXPECT_EQ(traces[0].files.at(0).format, "nsys");
  EXPECT_EQ(count(timeline, SpanKind::kernel) + count(timeline, SpanKind::collective), kernels);
  EXPECT_EQ(count(timeline, SpanKind::copy), copies);
  EXPECT_EQ(count(timeline, SpanKind::memset), memsets);
  EXPECT_EQ(timeline.calls.size(), calls);
  EXPECT_GT(count(timeline, SpanKind::collective), 0U);
  EXPECT_EQ(timeline.processes.size(), 2U);
  EXPECT_EQ(timeline.devices.size(), 2U);
  EXPECT_FALSE(timeline.has_dependencies);
  EXPECT_TRUE(timeline.dropped.empty());
}

TEST(Nsys, real_export_before) { check_real("nsys/mfu_2gpu_before.sqlite", 4010, 1020, 269, 7466); }
TEST(Nsys, real_export_after) { check_real("nsys/mfu_2gpu_after.sqlite", 3587, 904, 242, 6682); }

}  // namespace
}  // namespace weir
#endif
