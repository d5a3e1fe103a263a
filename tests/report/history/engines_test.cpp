// What a history promises in every engine: entries whole or not at all, each result once, many writers at a time, and
// texts that stay texts.
#include <gtest/gtest.h>
#include <sys/wait.h>

#include "base/error.h"
#include "report/history/made.h"
#include "report/history/predictions.h"

namespace weir::history {
namespace {

using testing::MadeResult;
using Engines = testing::EngineTest;
WEIR_IN_EVERY_ENGINE(Engines);

TEST_P(Engines, keeps_entries_points_and_every_sample) {
  MadeResult failed;
  failed.workload = "moe";
  failed.failure = "out of memory";
  const Added added = add({{}, failed}, "abc1234", "nightly");
  EXPECT_EQ(added.points, 2U);
  EXPECT_EQ(added.failed, 1U);
  Store store(where(), DatabaseAccess::read);
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

TEST_P(Engines, the_same_result_is_added_once) {
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
  EXPECT_EQ(Store(where(), DatabaseAccess::read).entries().size(), 2U);
}

TEST_P(Engines, points_come_in_the_order_of_measuring) {
  MadeResult made;
  made.created = "2026-11-05T00:00:00Z";
  add({made}, "new");
  made.created = "2026-11-03T00:00:00Z";
  add({made}, "old");
  const auto points = Store(where(), DatabaseAccess::read).points();
  ASSERT_EQ(points.size(), 2U);
  EXPECT_EQ(points[0].commit, "old");
}

TEST_P(Engines, filters_and_machines) {
  add({{}}, "", "nightly");
  MadeResult other;
  other.model = "MI300X";
  other.workload = "moe";
  add({other});
  Store store(where(), DatabaseAccess::read);
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

TEST_P(Engines, a_removed_entry_is_gone_and_can_be_added_again) {
  add({{}});
  {
    Store store(where(), DatabaseAccess::write);
    EXPECT_TRUE(store.remove(1));
    EXPECT_FALSE(store.remove(1));
    EXPECT_TRUE(store.points().empty());
    EXPECT_TRUE(store.machines().empty());
  }
  const Added again = add({{}});
  EXPECT_EQ(again.points, 1U);
  EXPECT_EQ(again.entry, 2) << "numbers are not given twice";
}

TEST_P(Engines, hostile_texts_stay_texts) {
  MadeResult made;
  made.workload = "x'); DROP TABLE point; --\x1b[2J<script>\"";
  made.model = std::string("a\0b", 3);
  EXPECT_EQ(add({made}, "'; DELETE FROM entry; --", "\"").points, 1U);
  Store store(where(), DatabaseAccess::read);
  ASSERT_EQ(store.points().size(), 1U);
  EXPECT_EQ(store.points()[0].workload(), made.workload);
  EXPECT_EQ(store.entries()[0].commit, "'; DELETE FROM entry; --");
}

TEST_P(Engines, many_who_add_at_once_all_succeed) {
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
          Store store(where(), DatabaseAccess::write);
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
  EXPECT_EQ(Store(where(), DatabaseAccess::read).entries().size(), 5U * kProcesses);
}

TEST_P(Engines, what_was_killed_in_the_middle_leaves_nothing) {
  add({{}});
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    Database database(where(), DatabaseAccess::write);
    Transaction transaction(database);
    Statement(database, "DELETE FROM point").run();
    Statement(database, "DELETE FROM entry").run();
    ::kill(::getpid(), SIGKILL);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_TRUE(WIFSIGNALED(status));
  EXPECT_EQ(Store(where(), DatabaseAccess::read).points().size(), 1U);
  MadeResult next;
  next.created = "2026-12-01T00:00:00Z";
  EXPECT_EQ(add({next}).points, 1U);
}

TEST_P(Engines, what_is_old_goes_and_a_run_of_each_day_stays) {
  MadeResult made;
  for (const char* created :
       {"2026-03-01T01:00:00Z", "2026-03-01T02:00:00Z", "2026-03-02T01:00:00Z", "2026-04-01T00:00:00Z"}) {
    made.created = created;
    made.latency_ns += 10;
    add({made});
  }
  Store store(where(), DatabaseAccess::write);
  PruneOptions options{"2026-04-01T00:00:00Z", true};
  EXPECT_EQ(store.would_prune(options).points, 1U);
  EXPECT_EQ(store.would_prune(options).entries, 1U);
  EXPECT_EQ(store.points().size(), 4U) << "nothing is removed by asking";
  EXPECT_EQ(store.prune(options).points, 1U);
  ASSERT_EQ(store.points().size(), 3U);
  EXPECT_EQ(store.points()[0].measured, "2026-03-01T02:00:00Z") << "the last of the day stays";
  options.is_keeping_daily = false;
  const Pruned pruned = store.prune(options);
  EXPECT_EQ(pruned.points, 2U);
  EXPECT_EQ(pruned.entries, 2U);
  EXPECT_EQ(store.entries().size(), 1U);
  EXPECT_EQ(store.prune(options).points, 0U);
  EXPECT_GT(store.size_bytes(), 1000U);
}

// The interleaving that a lock must prevent: a machine is removed as unused while another process adds a point to it.
TEST_P(Engines, who_removes_and_who_adds_do_not_disturb_each_other) {
  constexpr int kRounds = 20;
  add({{}});
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    int failures = 0;
    for (int i = 0; i < kRounds; ++i) try {
        Store store(where(), DatabaseAccess::write);
        store.prune({"2026-12-01T00:00:00Z", false});
      } catch (...) {
        ++failures;
      }
    ::_exit(failures);
  }
  for (int i = 0; i < kRounds; ++i) {
    MadeResult made;
    made.model = fmt::format("model {}", i % 2);
    made.created = fmt::format("2027-01-{:02}T00:00:00Z", i + 1);
    EXPECT_EQ(add({made}).points, 1U);
    made.created = fmt::format("2026-10-{:02}T00:00:00Z", i + 1);  // which the other removes
    EXPECT_EQ(add({made}).points, 1U);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  Store store(where(), DatabaseAccess::write);
  store.prune({"2026-12-01T00:00:00Z", false});
  EXPECT_EQ(store.points().size(), static_cast<std::size_t>(kRounds));
}

TEST_P(Engines, a_database_without_a_history_is_no_history) {
  if (is_sqlite()) GTEST_SKIP() << "store_test.cpp has the kinds of files";
  EXPECT_THROW(Store(where(), DatabaseAccess::read), Error);
  EXPECT_THROW(Store(testing::PostgresServer::shared().address("nowhere"), DatabaseAccess::write), Error);
}

TEST_P(Engines, rows_of_one_statement_are_not_mixed_with_those_of_another) {
  for (int i = 0; i < 3; ++i) {
    MadeResult made;
    made.created = fmt::format("2026-11-{:02}T00:00:00Z", i + 1);
    add({made});
  }
  Database database(where(), DatabaseAccess::read);
  {
    Statement points(database, "SELECT id FROM point ORDER BY id");
    ASSERT_TRUE(points.next());  // two rows are left unread
  }
  Statement count(database, "SELECT count(*), sum(latency_median), '?' FROM point WHERE id > ?");
  ASSERT_TRUE(count.bind(std::int64_t{1}).next());
  EXPECT_EQ(count.integer(0), 2);
  EXPECT_EQ(count.real(1), 2000);
  EXPECT_EQ(count.text(2), "?");
}

}  // namespace
}  // namespace weir::history
