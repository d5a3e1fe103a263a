#include "report/history/store.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/error.h"
#include "measure/bootstrap.h"
#include "report/history/fleet_nodes.h"
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
  run_sql(file(), "PRAGMA user_version = 3");
  for (const DatabaseAccess access : {DatabaseAccess::read, DatabaseAccess::write})
    EXPECT_NE(refusal(file(), access).find("version 3"), std::string::npos);
  run_sql(file(), "PRAGMA user_version = 2; ALTER TABLE point RENAME TO dot");
  EXPECT_NE(refusal(file(), DatabaseAccess::read).find("not a history that this Weir can read"), std::string::npos);
}

// tests/data/history/version1.db is what weir 0.1 made of result_1.json and another one.
TEST_F(Stores, a_file_of_version_1_is_read_as_it_is_and_upgraded_by_the_next_add) {
  const std::filesystem::path data = WEIR_SOURCE_DIR "/tests/data/history";
  std::filesystem::copy_file(data / "version1.db", file());
  std::vector<Point> before;
  {
    Store store(where(), DatabaseAccess::read);
    EXPECT_EQ(store.database().version(), 1);
    before = store.points();
    ASSERT_EQ(before.size(), 2U);
    EXPECT_EQ(store.entries().size(), 2U);
    EXPECT_EQ(store.resolve_machine(before[0].machine.substr(0, 6)), before[0].machine);
    EXPECT_TRUE(newest_nodes(store).empty());
    EXPECT_TRUE(device_changes(store).empty());
    EXPECT_EQ(store.would_prune({"2026-11-12T00:00:00Z", false}).points, 1U);
  }
  const std::vector<std::filesystem::path> known = {data / "result_1.json"};
  {
    Store store(where(), DatabaseAccess::write);
    EXPECT_EQ(store.database().version(), 2);
    EXPECT_EQ(store.add(read_intake(known), {}).known, 1U) << "digests of version 1 are recognised";
  }
  EXPECT_EQ(add({{}}).points, 1U);
  Store store(where(), DatabaseAccess::read);
  EXPECT_EQ(store.database().version(), 2);
  const std::vector<Point> after = store.points();
  ASSERT_EQ(after.size(), 3U);
  for (const Point& old : before) {
    const auto same = std::find_if(after.begin(), after.end(), [&](const Point& each) { return each.id == old.id; });
    ASSERT_NE(same, after.end());
    EXPECT_EQ(same->key, old.key);
    EXPECT_EQ(same->latency.median, old.latency.median);
    EXPECT_EQ(same->commit, old.commit);
    EXPECT_EQ(store.samples(same->id, "latency").size(), same->latency.count);
  }
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

}  // namespace
}  // namespace weir::history
