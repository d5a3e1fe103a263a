// Drives `weir history` as a user would: adding, listing, trends with changes, the gate, and files that are no history.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <weir_build.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "base/json.h"
#include "cli/program.h"
#include "cli/queues_checks.h"
#include "support/postgres_server.h"

namespace weir::testing {
namespace {

class History : public ::testing::Test {
 protected:
  void SetUp() override {
#if !WEIR_HAVE_SQLITE
    GTEST_SKIP() << "built without SQLite";
#endif
    const Outcome run = weir({"run", "hetero_kernels", "--device", "sim:h200", "--iterations", "30", "--no-trace", "-o",
                              folder_ / "run.json", "-q"});
    ASSERT_EQ(run.code, 0) << run.err;
    result_ = read_json(folder_ / "run.json");
  }

  // A result whose samples are all about `latency_ns`, of that day.
  std::string made(int day, double latency_ns, const std::string& driver = "") const {
    Json result = result_;
    int i = 0;
    for (const char* list : {"latency_ns", "interval_ns"})
      for (Json& sample : result["samples"][list]) sample = static_cast<std::int64_t>(latency_ns + ++i % 7 * 1000);
    result["created"] = fmt::format("2026-03-{:02}T12:00:00Z", day);
    if (!driver.empty()) result["device"]["driver"] = driver;
    const std::string file = folder_ / fmt::format("day_{}{}.json", day, driver);
    std::ofstream(file) << result;
    return file;
  }
  Outcome history(std::vector<std::string> arguments) const {
    arguments.insert(arguments.begin(), "history");
    return weir(arguments, folder_.path());
  }
  // Twelve days, slower by 8 % from the eighth on.
  void add_days() const {
    for (int day = 1; day <= 12; ++day) {
      const Outcome added = history({"add", made(day, (day < 8 ? 10e6 : 10.8e6) + day * 3000 % 50000), "--commit",
                                     fmt::format("{:02}{:038}", day, 0), "--tag", "nightly", "-q"});
      ASSERT_EQ(added.code, 0) << added.err;
      EXPECT_EQ(added.out, "");
    }
  }

  const Folder folder_;
  Json result_;
};

TEST_F(History, a_report_has_the_serial_of_the_device_of_a_series) {
  result_["device"]["serial"] = "SN1003";
  add_days();
  const Outcome report = weir(
      {"report", folder_ / "day_1.json", "--history", folder_ / "weir_history.db", "--json", folder_ / "report.json"},
      folder_.path());
  ASSERT_EQ(report.code, 0) << report.err;
  const Json document = read_json(folder_ / "report.json");
  ASSERT_FALSE(document["histories"].empty());
  for (const Json& series : document["histories"]) EXPECT_EQ(series["serial"], "SN1003");
}

TEST_F(History, its_runs_show_how_much_processes_differ) {
  result_["device"]["name"] = "cuda:0";  // simulated devices need no history: their processes agree
  result_["device"]["backend"] = "cuda";
  add_days();
  const std::string slower = made(20, 13e6), similar = made(21, 10.1e6);
  const auto compared = [&](const std::string& test, std::vector<std::string> more) {
    more.insert(more.begin(),
                {"compare", folder_ / "day_1.json", test, "--calibration", folder_ / "nothing.json", "--json"});
    return weir(more, folder_.path());
  };
  std::ofstream(folder_ / "nothing.json") << R"({"schema": "weir.calibration/1", "steps": []})";
  const Outcome alone = compared(slower, {});
  EXPECT_EQ(alone.code, 0) << alone.out << alone.err;
  EXPECT_TRUE(has(alone.out, "to settle it, run both sides as: weir run hetero_kernels --device sim:h200"))
      << alone.out;
  const Outcome known = compared(slower, {"--history", folder_ / "weir_history.db"});
  EXPECT_EQ(known.code, 3) << known.out << known.err;
  EXPECT_TRUE(has(known.out, "12 runs in")) << known.out;
  EXPECT_EQ(compared(similar, {"--history", folder_ / "weir_history.db"}).code, 0);
  EXPECT_EQ(compared(similar, {"--history", folder_ / "run.json"}).code, 2) << "no history";
}

TEST_F(History, adds_results_once_and_lists_them) {
  const Outcome first = history({"add", "run.json", "--tag", "first", "--commit", "abc1234"});
  ASSERT_EQ(first.code, 0) << first.err;
  EXPECT_TRUE(has(first.out, "1 result added as entry 1.")) << first.out;
  EXPECT_TRUE(has(first.out, "Commit: abc1234 (given)")) << first.out;
  EXPECT_TRUE(has(first.out, "sim:h200")) << first.out;
  EXPECT_TRUE(std::filesystem::exists(folder_ / "weir_history.db"));
  const Outcome again = history({"add", "run.json"});
  EXPECT_EQ(again.code, 0);
  EXPECT_TRUE(has(again.out, "Nothing was added: the one result was there already (entry 1).")) << again.out;
  const Outcome list = history({"list"});
  EXPECT_EQ(list.code, 0);
  expect_narrow(list.out);
  EXPECT_TRUE(has(list.out, "abc1234")) << list.out;
  EXPECT_TRUE(has(list.out, "1 entry")) << list.out;
  EXPECT_TRUE(has(history({"list", "--tag", "other"}).out, "0 entries"));
  const Outcome show = history({"show", "1"});
  EXPECT_EQ(show.code, 0) << show.err;
  expect_narrow(show.out);
  EXPECT_TRUE(has(show.out, "hetero_kernels")) << show.out;
}

TEST_F(History, documents_are_valid) {
  add_days();
  for (const auto& [name, arguments] :
       std::vector<std::pair<std::string, std::vector<std::string>>>{{"list", {"list"}},
                                                                     {"show", {"show", "1"}},
                                                                     {"trend", {"trend", "hetero_kernels", "--gate"}},
                                                                     {"add", {"add", "run.json"}}}) {
    std::vector<std::string> words = arguments;
    words.insert(words.end(), {"--json", "-o", name + ".json", "-q"});
    const Outcome printed = history(words);
    EXPECT_TRUE(printed.code == 0 || printed.code == 3) << printed.err;
    expect_valid_as(folder_ / (name + ".json"), "weir.history.2.json");
  }
}

TEST_F(History, a_trend_says_where_it_changed_and_the_gate_fails) {
  add_days();
  const Outcome trend = history({"trend", "hetero_kernels"});
  ASSERT_EQ(trend.code, 0) << trend.err;
  expect_narrow(trend.out);
  EXPECT_TRUE(has(trend.out, "Slower by ")) << trend.out;
  EXPECT_TRUE(has(trend.out, "between 0700000000 and 0800000000")) << trend.out;
  EXPECT_EQ(history({"trend", "hetero_kernels", "--gate"}).code, 3);
  EXPECT_EQ(history({"trend", "hetero_kernels", "--gate", "--within", "3"}).code, 0);
  EXPECT_EQ(history({"trend", "hetero_kernels", "--gate", "--threshold", "50%"}).code, 0);
  EXPECT_EQ(history({"trend", "hetero_kernels", "--gate", "--threshold", "50%"}).code, 0);
  const Outcome bare = history({"trend", "hetero_kernels", "--gate", "--threshold", "50"});
  EXPECT_EQ(bare.code, 2);
  EXPECT_TRUE(has(bare.err, "Write --threshold 50%.")) << bare.err;
  const Outcome throughput = history({"trend", "hetero_kernels", "--metric", "throughput", "--streams", "8"});
  EXPECT_TRUE(has(throughput.out, "Slower by ")) << throughput.out << throughput.err;
}

TEST_F(History, machines_have_series_of_their_own_and_it_says_so) {
  add_days();
  for (int day = 1; day <= 3; ++day) ASSERT_EQ(history({"add", made(day, 20e6, "580.2"), "-q"}).code, 0);
  const Outcome trend = history({"trend", "hetero_kernels"});
  EXPECT_TRUE(has(trend.out, "Measured on 2 machines")) << trend.out;
  EXPECT_TRUE(has(trend.out, "sim:h200: device.driver ")) << trend.out;
  EXPECT_TRUE(has(trend.out, "Not judged: 3 values")) << trend.out;
}

TEST_F(History, entries_can_be_removed_and_exported) {
  add_days();
  EXPECT_EQ(history({"remove", "12"}).code, 0);
  EXPECT_EQ(history({"remove", "12"}).code, 2);
  const Outcome csv = history({"export"});
  EXPECT_EQ(csv.code, 0);
  EXPECT_EQ(std::count(csv.out.begin(), csv.out.end(), '\n'), 12) << csv.out;
  EXPECT_EQ(history({"export", "-o", "points.csv"}).code, 0);
  EXPECT_EQ(history({"export", "-o", "points.csv"}).code, 2) << "nothing is overwritten";
}

TEST_F(History, what_is_old_can_be_removed_and_is_counted_first) {
  add_days();
  const Outcome asked = history({"remove", "--before", "2026-03-05", "--dry-run"});
  EXPECT_EQ(asked.code, 0) << asked.err;
  EXPECT_TRUE(has(asked.out, "4 results, 0 probes and 4 entries of which nothing is left would be removed"))
      << asked.out;
  EXPECT_TRUE(has(history({"list"}).out, "12 entries"));
  EXPECT_TRUE(has(history({"remove", "--before", "2026-03-05", "--keep-daily"}).out, "0 results")) << "one a day";
  EXPECT_EQ(history({"remove", "--before", "2026-03-05", "-q"}).code, 0);
  EXPECT_TRUE(has(history({"list"}).out, "8 entries"));
  EXPECT_EQ(history({"remove", "--before", "1d"}).code, 0);
  for (const std::vector<std::string>& wrong :
       std::vector<std::vector<std::string>>{{"remove"},
                                             {"remove", "1", "--before", "1d"},
                                             {"remove", "1", "--dry-run"},
                                             {"remove", "--before", "yesterday"},
                                             {"remove", "--before", "0d"},
                                             {"remove", "--before", "1d", "--db", "nowhere.db"}})
    EXPECT_EQ(history(wrong).code, 2);
}

TEST_F(History, a_database_takes_the_place_of_the_file) {
  if (const std::string& reason = PostgresServer::shared().reason(); !reason.empty()) GTEST_SKIP() << reason;
  const std::string database = PostgresServer::shared().make_database();
  const auto there = [&](std::vector<std::string> words) {
    words.insert(words.end(), {"--db", database});
    return history(words);
  };
  EXPECT_EQ(there({"list"}).code, 2) << "there is no history yet";
  for (int day = 1; day <= 12; ++day)
    ASSERT_EQ(there({"add", made(day, (day < 8 ? 10e6 : 10.8e6) + day * 3000 % 50000), "-q"}).code, 0);
  EXPECT_FALSE(std::filesystem::exists(folder_ / "weir_history.db"));
  EXPECT_TRUE(has(there({"list"}).out, "12 entries"));
  EXPECT_TRUE(has(there({"trend", "hetero_kernels"}).out, "Slower by "));
  EXPECT_EQ(there({"trend", "hetero_kernels", "--gate"}).code, 3);
  EXPECT_EQ(there({"list", "--json", "-o", "list.json", "-q"}).code, 0);
  expect_valid_as(folder_ / "list.json", "weir.history.2.json");
  EXPECT_EQ(there({"remove", "12"}).code, 0);
  const Outcome csv = there({"export"});
  EXPECT_EQ(std::count(csv.out.begin(), csv.out.end(), '\n'), 12) << csv.out;
  const Outcome nobody = history({"list", "--db", "postgresql://ann:s3cret@127.0.0.1:1/fleet"});
  EXPECT_EQ(nobody.code, 1);
  EXPECT_TRUE(has(nobody.err, "postgresql://ann@127.0.0.1:1/fleet: cannot connect")) << nobody.err;
  EXPECT_FALSE(has(nobody.err, "s3cret")) << nobody.err;
}

TEST_F(History, takes_the_commit_from_git) {
  if (run_program({"git", "--version"}).code != 0) GTEST_SKIP() << "git is not installed";
  const auto git = [&](std::vector<std::string> words) {
    words.insert(words.begin(), {"git", "-c", "user.name=n", "-c", "user.email=e@example.org"});
    return run_program(words, folder_.path());
  };
  ASSERT_EQ(git({"init", "-q"}).code, 0);
  ASSERT_EQ(git({"add", "run.json"}).code, 0);
  ASSERT_EQ(git({"commit", "-q", "-m", "first"}).code, 0);
  const std::string head = git({"rev-parse", "HEAD"}).out.substr(0, 40);
  const Outcome added = history({"add", "run.json"});
  EXPECT_TRUE(has(added.out, fmt::format("Commit: {} (git).", head))) << added.out;
}

TEST_F(History, bad_input_is_named_and_adds_nothing) {
  std::ofstream(folder_ / "broken.json") << "{\"schema\": \"weir.result/2\",";
  const Outcome broken = history({"add", "run.json", "broken.json", "nowhere.json"});
  EXPECT_EQ(broken.code, 2);
  EXPECT_TRUE(has(broken.err, "broken.json")) << broken.err;
  EXPECT_TRUE(has(broken.err, "nowhere.json")) << broken.err;
  EXPECT_FALSE(std::filesystem::exists(folder_ / "weir_history.db"));
  EXPECT_EQ(history({"list"}).code, 2);
  std::ofstream(folder_ / "text.db") << std::string(500, 'x');
  for (const char* command : {"list", "export"}) {
    const Outcome text = history({command, "--db", "text.db"});
    EXPECT_EQ(text.code, 2);
    EXPECT_TRUE(has(text.err, "not an SQLite database")) << text.err;
  }
  EXPECT_EQ(history({"add", "run.json", "--db", "text.db"}).code, 2);
  ASSERT_EQ(history({"add", "run.json", "-q"}).code, 0);
  const Outcome unknown = history({"trend", "nothing"});
  EXPECT_EQ(unknown.code, 2);
  EXPECT_TRUE(has(unknown.err, "hetero_kernels")) << unknown.err;
  EXPECT_EQ(history({"trend", "hetero_kernels", "--machine", "zzz"}).code, 2);
  EXPECT_EQ(history({"trend", "hetero_kernels", "--within", "1"}).code, 2);
  EXPECT_EQ(history({"show", "one"}).code, 2);
  EXPECT_EQ(history({"show", "99"}).code, 2);
}

TEST_F(History, nothing_in_a_name_reaches_the_terminal_or_the_database) {
  Json hostile = result_;
  hostile["workload"]["name"] = "x'); DROP TABLE point; --\x1b[2J";
  hostile["device"]["model"] = "\x1b]0;owned\x07<script>";
  std::ofstream(folder_ / "hostile.json") << hostile;
  ASSERT_EQ(history({"add", "hostile.json", "--tag", "\x1b[31m"}).code, 0);
  for (const Outcome& printed :
       {history({"list"}), history({"show", "1"}), history({"trend", "x'); DROP TABLE point; --\x1b[2J"})}) {
    EXPECT_EQ(printed.code, 0) << printed.err;
    EXPECT_EQ(printed.out.find('\x1b'), std::string::npos) << printed.out;
  }
}

}  // namespace
}  // namespace weir::testing
