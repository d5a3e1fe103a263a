#include "report/history/store.h"

#include <gtest/gtest.h>
#include <sys/wait.h>

#include "base/error.h"
#include "measure/bootstrap.h"
#include "report/history/made.h"

#if WEIR_HAVE_SQLITE
#include <sqlite3.h>
#endif

namespace weir::history {
namespace {

using testing::HistoryTest;
using testing::MadeResult;
using Stores = HistoryTest;

std::string refusal(const std::filesystem::path& path, DatabaseAccess access) {
  try {
    Store store(path, access);
    store.entries();
    store.points();
    store.machines();
    return {};
  } catch (const Error& error) {
    EXPECT_EQ(error.fault, Fault::input) << error.what();
    return error.what();
  }
}

TEST_F(Stores, keeps_entries_points_and_every_sample) {
  MadeResult failed;
  failed.workload = "moe";
  failed.failure = "out of memory";
  const Added added = add({{}, failed}, "abc1234", "nightly");
  EXPECT_EQ(added.points, 2U);
  EXPECT_EQ(added.failed, 1U);
  Store store(file(), DatabaseAccess::read);
  const std::vector<Entry> entries = store.entries();
  ASSERT_EQ(entries.size(), 1U);
  EXPECT_EQ(entries[0].commit, "abc1234");
  EXPECT_EQ(entries[0].tag, "nightly");
  EXPECT_EQ(entries[0].points, 2U);
  EXPECT_EQ(entries[0].failed, 1U);
  EXPECT_EQ(entries[0].workloads, (std::vector<std::string>{"hetero_kernels", "moe"}));
  const std::vector<Point> points = store.points();
  ASSERT_EQ(points.size(), 2U);
  EXPECT_EQ(points[0].key.at("streams"), "8");
  EXPECT_EQ(points[0].key.at("param.size"), "4096");
  EXPECT_EQ(points[0].latency.median, 1000);
  ASSERT_TRUE(points[0].latency.low.has_value());
  EXPECT_LE(*points[0].latency.low, 1000);
  EXPECT_EQ(points[0].latency.count, 20U);
  EXPECT_EQ(store.samples(points[0].id, "latency").size(), 20U);
  EXPECT_EQ(store.samples(points[0].id, "latency")[0], 998);
  EXPECT_NEAR(store.samples(points[0].id, "throughput")[2], 2.0 * 1e9 / 1000, 1e-6);
  EXPECT_EQ(points[1].failure, "the run failed: out of memory");
  EXPECT_EQ(store.conditions(points[0].conditions).first["model"], "NVIDIA H200");
}

TEST_F(Stores, the_same_result_is_added_once) {
  EXPECT_EQ(add({{}}).points, 1U);
  const Added again = add({{}});
  EXPECT_EQ(again.points, 0U);
  EXPECT_EQ(again.known, 1U);
  EXPECT_FALSE(again.entry.has_value());
  EXPECT_EQ(again.known_entries, (std::vector<std::int64_t>{1}));
  MadeResult later;
  later.created = "2026-11-02T00:00:00Z";
  const Added both = add({{}, later, later});
  EXPECT_EQ(both.points, 1U);
  EXPECT_EQ(both.known, 2U);
  EXPECT_EQ(Store(file(), DatabaseAccess::read).entries().size(), 2U);
}

TEST_F(Stores, points_come_in_the_order_of_measuring) {
  MadeResult made;
  made.created = "2026-11-05T00:00:00Z";
  add({made}, "new");
  made.created = "2026-11-03T00:00:00Z";
  add({made}, "old");
  const auto points = Store(file(), DatabaseAccess::read).points();
  ASSERT_EQ(points.size(), 2U);
  EXPECT_EQ(points[0].commit, "old");
}

TEST_F(Stores, filters_and_machines) {
  add({{}}, "", "nightly");
  MadeResult other;
  other.model = "MI300X";
  other.workload = "moe";
  add({other});
  Store store(file(), DatabaseAccess::read);
  EntryFilter by_tag;
  by_tag.tag = "nightly";
  EXPECT_EQ(store.entries(by_tag).size(), 1U);
  EntryFilter by_workload;
  by_workload.workload = "moe";
  ASSERT_EQ(store.entries(by_workload).size(), 1U);
  EXPECT_EQ(store.entries(by_workload)[0].id, 2);
  const auto machines = store.machines();
  ASSERT_EQ(machines.size(), 2U);
  EntryFilter by_machine;
  by_machine.machine = machines[1].id.substr(0, 8);
  EXPECT_EQ(store.entries(by_machine).size(), 1U);
  EXPECT_THROW(store.resolve_machine("nonsense"), Error);
}

TEST_F(Stores, a_removed_entry_is_gone_and_can_be_added_again) {
  add({{}});
  {
    Store store(file(), DatabaseAccess::write);
    EXPECT_TRUE(store.remove(1));
    EXPECT_FALSE(store.remove(1));
    EXPECT_TRUE(store.points().empty());
    EXPECT_TRUE(store.machines().empty());
  }
  const Added again = add({{}});
  EXPECT_EQ(again.points, 1U);
  EXPECT_EQ(again.entry, 2) << "numbers are not given twice";
}

TEST_F(Stores, hostile_texts_stay_texts) {
  MadeResult made;
  made.workload = "x'); DROP TABLE point; --\x1b[2J<script>\"";
  made.model = std::string("a\0b", 3);
  EXPECT_EQ(add({made}, "'; DELETE FROM entry; --", "\"").points, 1U);
  Store store(file(), DatabaseAccess::read);
  ASSERT_EQ(store.points().size(), 1U);
  EXPECT_EQ(store.points()[0].workload(), made.workload);
  EXPECT_EQ(store.entries()[0].commit, "'; DELETE FROM entry; --");
}

TEST_F(Stores, what_is_no_history_is_refused_in_words) {
  EXPECT_NE(refusal(file("none.db"), DatabaseAccess::read).find("no such history"), std::string::npos);
  EXPECT_FALSE(std::filesystem::exists(file("none.db")));
  EXPECT_NE(refusal(folder_, DatabaseAccess::write).find("folder"), std::string::npos);
  const auto text = write("text.db",
                          "this is no database, but a text that is longer than a header of one hundred bytes"
                          " so that nobody takes it for a short one");
  for (const DatabaseAccess access : {DatabaseAccess::read, DatabaseAccess::write})
    EXPECT_NE(refusal(text, access).find("not an SQLite database"), std::string::npos);
  EXPECT_NE(refusal(write("empty.db", ""), DatabaseAccess::read).find("empty"), std::string::npos);
  EXPECT_EQ(refusal(file("empty.db"), DatabaseAccess::write), "");  // an empty file is made one
}

#if WEIR_HAVE_SQLITE
void run_sql(const std::filesystem::path& path, const std::string& sql) {
  sqlite3* handle = nullptr;
  ASSERT_EQ(sqlite3_open(path.c_str(), &handle), SQLITE_OK);
  EXPECT_EQ(sqlite3_exec(handle, sql.c_str(), nullptr, nullptr, nullptr), SQLITE_OK) << sqlite3_errmsg(handle);
  sqlite3_close(handle);
}

TEST_F(Stores, databases_of_others_and_of_newer_versions_are_left_alone) {
  run_sql(file("other.db"), "CREATE TABLE bookmarks(url TEXT)");
  for (const DatabaseAccess access : {DatabaseAccess::read, DatabaseAccess::write})
    EXPECT_NE(refusal(file("other.db"), access).find("another program"), std::string::npos);
  add({{}});
  run_sql(file(), "PRAGMA user_version = 2");
  for (const DatabaseAccess access : {DatabaseAccess::read, DatabaseAccess::write})
    EXPECT_NE(refusal(file(), access).find("version 2"), std::string::npos);
  run_sql(file(), "PRAGMA user_version = 1; ALTER TABLE point RENAME TO dot");
  EXPECT_NE(refusal(file(), DatabaseAccess::read).find("not a history that this Weir can read"), std::string::npos);
}

TEST_F(Stores, rows_that_make_no_sense_are_read_without_harm) {
  add({{}});
  run_sql(file(),
          "UPDATE point SET key = '[[[[', latency_samples = x'6980', latency_median = 'much', latency_count = -5, "
          "measured = x'00ff'; UPDATE conditions SET device = '[1]', environment = printf('%.*c', 100000, '[')");
  Store store(file(), DatabaseAccess::read);
  const auto points = store.points();
  ASSERT_EQ(points.size(), 1U);
  EXPECT_TRUE(points[0].key.empty());
  EXPECT_FALSE(points[0].latency.median.has_value());
  EXPECT_EQ(points[0].latency.count, 0U);
  EXPECT_THROW(store.samples(points[0].id, "latency"), Error);
  EXPECT_TRUE(store.conditions(points[0].conditions).first.is_null());
  EXPECT_TRUE(store.conditions(points[0].conditions).second.is_null());
}
#endif

TEST_F(Stores, damaged_files_are_refused_or_read_but_never_crash) {
  for (int i = 0; i < 30; ++i) {
    MadeResult made;
    made.created = fmt::format("2026-11-{:02}T00:00:00Z", i + 1);
    add({made});
  }
  std::ifstream in(file(), std::ios::binary);
  const std::string whole((std::istreambuf_iterator<char>(in)), {});
  SplitMix random(7);
  for (int round = 0; round < 200; ++round) {
    std::string damaged = whole;
    if (round % 4 == 0) damaged.resize(random.below(static_cast<std::uint32_t>(whole.size())));
    for (int i = 0; i < 1 + round % 20 && !damaged.empty(); ++i)
      damaged[random.below(static_cast<std::uint32_t>(damaged.size()))] = static_cast<char>(random.next());
    const auto path = write("damaged.db", damaged);
    try {
      Store store(path, round % 2 == 0 ? DatabaseAccess::read : DatabaseAccess::write);
      store.entries();
      for (const Point& point : store.points()) store.samples(point.id, "latency");
    } catch (const Error&) {
    }
  }
}

TEST_F(Stores, many_who_add_at_once_all_succeed) {
  constexpr int kProcesses = 6;
  std::vector<pid_t> children;
  for (int i = 0; i < kProcesses; ++i) {
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      int failures = 0;
      for (int k = 0; k < 5; ++k) {
        MadeResult made;
        made.created = fmt::format("2026-{:02}-{:02}T00:00:00Z", i + 1, k + 1);
        const std::vector<std::filesystem::path> paths = {
            write(fmt::format("of_{}_{}.json", i, k), testing::result_json(made).dump())};
        try {
          Store store(file(), DatabaseAccess::write);
          if (store.add(read_intake(paths), {}).points != 1) ++failures;
        } catch (...) {
          ++failures;
        }
      }
      ::_exit(failures);
    }
    children.push_back(child);
  }
  for (const pid_t child : children) {
    int status = 0;
    ::waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
  }
  EXPECT_EQ(Store(file(), DatabaseAccess::read).entries().size(), 5U * kProcesses);
}

TEST_F(Stores, what_was_killed_in_the_middle_leaves_nothing) {
  add({{}});
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    Database database(file(), DatabaseAccess::write);
    Transaction transaction(database);
    Statement(database, "DELETE FROM point").run();
    Statement(database, "DELETE FROM entry").run();
    ::kill(::getpid(), SIGKILL);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_TRUE(WIFSIGNALED(status));
  EXPECT_EQ(Store(file(), DatabaseAccess::read).points().size(), 1U);
  MadeResult next;
  next.created = "2026-12-01T00:00:00Z";
  EXPECT_EQ(add({next}).points, 1U);
}

}  // namespace
}  // namespace weir::history
