// The SQLite export, read back with SQLite: rows, nulls, what refers to what, and files that are in the way.
#include "trace/export/timeline_sqlite.h"

#include <gtest/gtest.h>
#include <unistd.h>
#include <weir_build.h>

#include <filesystem>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/file.h"
#include "support/random_timeline.h"
#include "trace/timeline_builder.h"

#if WEIR_HAVE_SQLITE
#include <sqlite3.h>

namespace weir {
namespace {

namespace fs = std::filesystem;

class TimelineSqlite : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = (fs::temp_directory_path() / "weir_sqlite_XXXXXX").string();
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    folder_ = name;
  }
  void TearDown() override { fs::remove_all(folder_); }
  fs::path file() const { return folder_ / "t.db"; }
  std::size_t files() const { return static_cast<std::size_t>(std::distance(fs::directory_iterator(folder_), {})); }

  // Rows as "a|b|c", nulls as "-".
  std::vector<std::string> rows(const std::string& sql) const {
    sqlite3* database = nullptr;
    EXPECT_EQ(sqlite3_open_v2(file().c_str(), &database, SQLITE_OPEN_READONLY, nullptr), SQLITE_OK);
    std::vector<std::string> found;
    char* message = nullptr;
    const auto take = [](void* to, int columns, char** values, char**) {
      std::string row;
      for (int i = 0; i < columns; ++i) row += std::string(i > 0 ? "|" : "") + (values[i] == nullptr ? "-" : values[i]);
      static_cast<std::vector<std::string>*>(to)->push_back(row);
      return 0;
    };
    EXPECT_EQ(sqlite3_exec(database, sql.c_str(), take, &found, &message), SQLITE_OK) << message;
    sqlite3_close(database);
    return found;
  }

 private:
  fs::path folder_;
};
using Rows = std::vector<std::string>;

Timeline sample() {
  Timeline t;
  t.source = "by hand";
  t.names = {"gemm",  "Memcpy HtoD", "all_reduce", "cudaLaunchKernel", "aten::mm",          "bf16 [2, 3], bf16 [3, 4]",
             "model", "layer 0",     "group 0",    "ProfilerStep#1",   "train.py(7): step", "line\nbreak"};
  t.processes = {{3, "job"}};
  t.devices = {{.process = 0, .id = 2, .label = "GPU 2", .model = "NVIDIA H200", .multiprocessors = 132}};
  t.streams = {{0, 7, "stream 7", -1}, {0, 9, "stream 9", std::nullopt}};
  t.queues = {{4, 0, "queue 4"}, {kCopyQueues, 0, "copy engine 0"}};
  t.modules = {{6, kNoModule}, {7, 0}};
  t.operations = {{.name = 4, .shapes = 5, .module = 1, .phase = Phase::forward}, {.name = 11}};
  t.has_operations = true;
  HostCall call{3, 11, 77, 0, CallKind::launch, 100, 110};
  call.operation = 0;
  call.line = 10;
  call.is_first_of_operation = true;
  t.calls = {call};
  Span gemm = test::command(SpanKind::kernel, 0, 200, 260, 4, 100);
  gemm.name = 0;
  gemm.call = 0;
  gemm.blocks = 64;
  gemm.threads = 256;
  Span copy = test::command(SpanKind::copy, 1, 300, 310, kCopyQueues);
  copy.name = 1;
  copy.bytes = 4096;
  Span reduce = test::command(SpanKind::collective, 0, 400, 1400);
  reduce.name = 2;
  Span nothing = test::command(SpanKind::kernel, 0, kNoTime, kNoTime);
  nothing.name = 11;
  t.spans = {gemm, copy, reduce, nothing};
  t.collectives = {{2, CollectiveKind::all_reduce, 4, 8, 1'000'000, 12}};
  t.dependencies = {{0, 1}};
  t.has_dependencies = true;
  t.ranges = {{9, 0, 90, 1500}};
  t.notes = {"a note"};
  return t;
}

TEST_F(TimelineSqlite, has_everything_and_nulls_for_the_rest) {
  write_timeline_sqlite(sample(), file(), false);
  EXPECT_EQ(rows("SELECT value FROM meta WHERE key = 'schema'"), Rows{"weir.timeline_sqlite/1"});
  EXPECT_EQ(rows("SELECT value FROM meta WHERE key = 'note 1'"), Rows{"a note"});
  EXPECT_EQ(rows("SELECT kind, work, name, stream_id, queue_id, call_id, bytes, blocks, threads, submitted_ns, "
                 "started_ns, ended_ns, duration_ns FROM spans ORDER BY id"),
            (Rows{"kernel|matrix|gemm|0|4|0|-|64|256|100|200|260|60",
                  "copy|copy|Memcpy HtoD|1|1000000|-|4096|-|-|-|300|310|10",
                  "collective|communication|all_reduce|0|-|-|-|-|-|-|400|1400|1000",
                  "kernel|unrecognised|line break|0|-|-|-|-|-|-|-|-|-"}));
  EXPECT_EQ(rows("SELECT name, shapes, phase, flop, bytes FROM operators ORDER BY id"),
            (Rows{"aten::mm|bf16 [2, 3], bf16 [3, 4]|forward|48.0|52.0", "line break|-|-|-|-"}));
  EXPECT_EQ(rows("SELECT m.path FROM operators o JOIN modules m ON m.id = o.module_id"), Rows{"model/layer 0"});
  EXPECT_EQ(
      rows("SELECT kind, name, thread, correlation, started_ns, operator_id, is_first_of_operator, line FROM calls"),
      Rows{"launch|cudaLaunchKernel|11|77|100|0|1|train.py(7): step"});
  EXPECT_EQ(rows("SELECT number, priority FROM streams"), (Rows{"7|-1", "9|-"}));
  EXPECT_EQ(rows("SELECT label, is_copy_engine FROM queues"), (Rows{"queue 4|0", "copy engine 0|1"}));
  EXPECT_EQ(rows("SELECT p.rank, d.number, d.model FROM devices d JOIN processes p ON p.id = d.process_id"),
            Rows{"3|2|NVIDIA H200"});
  // 1 MB in 1 us, and 2 * 3 / 4 of it on the links.
  EXPECT_EQ(
      rows("SELECT kind, ranks, group_name, bytes, sequence, algorithm_bytes_per_s, bus_bytes_per_s FROM collectives"),
      Rows{"all_reduce|4|group 0|1000000|12|1000000000000.0|1500000000000.0"});
  EXPECT_EQ(rows("SELECT before_id, after_id FROM dependencies"), Rows{"0|1"});
  EXPECT_EQ(rows("SELECT name, ended_ns - started_ns FROM ranges"), Rows{"ProfilerStep#1|1410"});
  EXPECT_EQ(rows("PRAGMA integrity_check"), Rows{"ok"});
  EXPECT_EQ(rows("PRAGMA foreign_key_check"), Rows{});
  EXPECT_EQ(rows("SELECT count(*) FROM sqlite_master WHERE type = 'index' AND name NOT LIKE 'sqlite%'"), Rows{"10"});
}

TEST_F(TimelineSqlite, sums_are_those_of_the_timeline) {
  test::RandomTimeline random(5);
  for (int round = 0; round < 20; ++round) {
    const Timeline t = random.timeline(60, 50);  // without lanes: nothing to refer to
    std::int64_t sum = 0, timed = 0;
    for (const Span& span : t.spans) {
      if (span.started_ns == kNoTime) continue;
      ++timed;
      sum += span.ended_ns - span.started_ns;
    }
    write_timeline_sqlite(t, file(), true);
    EXPECT_EQ(rows("SELECT count(*), count(started_ns), coalesce(sum(duration_ns), 0), count(stream_id) FROM spans"),
              Rows{std::to_string(t.spans.size()) + "|" + std::to_string(timed) + "|" + std::to_string(sum) + "|0"});
  }
}

// docs/traces.md shows three queries; they are run as they are written there.
TEST_F(TimelineSqlite, documented_queries_answer) {
  const std::string page = read_file(WEIR_SOURCE_DIR "/docs/traces.md");
  const std::size_t begin = page.find("```sql\n"), end = page.find("```", begin + 7);
  ASSERT_NE(begin, std::string::npos);
  Timeline t = sample();
  t.spans[1].queue = 4;  // another stream on the kernel's queue
  write_timeline_sqlite(t, file(), false);
  EXPECT_EQ(rows(page.substr(begin + 7, end - begin - 7)),
            (Rows{"queue 4|stream 7,stream 9|2|7.0e-05", "aten::mm|bf16 [2, 3], bf16 [3, 4]|1|6.0e-05|0.0008",
                  "all_reduce|1000000|4|1|1500.0|1500.0"}));
}

TEST_F(TimelineSqlite, is_whole_or_not_there) {
  write_file(file(), "mine", false);
  EXPECT_THROW(write_timeline_sqlite(sample(), file(), false), Error);
  EXPECT_EQ(read_file(file()), "mine");
  write_timeline_sqlite(sample(), file(), true);
  EXPECT_EQ(rows("SELECT count(*) FROM spans"), Rows{"4"});
  fs::remove(file());
  Timeline many = sample();
  many.spans.resize(200'000, many.spans[1]);
  struct Stopped {};
  EXPECT_THROW(write_timeline_sqlite(many, file(), false, [] { throw Stopped(); }), Stopped);
  EXPECT_EQ(files(), 0u);
}

}  // namespace
}  // namespace weir
#endif
