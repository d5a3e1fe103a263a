// Results made up for histories, and a file or a database for them that goes away with the test.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>
#include <weir_build.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "report/history/intake.h"
#include "report/history/store.h"
#include "support/postgres_server.h"

namespace weir::testing {

struct MadeResult {
  std::string workload = "hetero_kernels";
  int streams = 8;
  double latency_ns = 1000;
  std::string created = "2026-11-01T00:00:00Z";
  std::string model = "NVIDIA H200";
  std::string driver = "570.1";
  std::string kernel = "Linux 6.1";
  std::string failure;
  Json variables = Json::object();
};

inline Json result_json(const MadeResult& made) {
  Json latency = Json::array();
  for (int i = 0; i < 20; ++i) latency.push_back(std::round(made.latency_ns * (1 + 0.001 * (i % 5 - 2))));
  return {{"schema", "weir.result/2"},
          {"status", made.failure.empty() ? "complete" : "failed"},
          {"failure", made.failure.empty() ? Json() : Json(made.failure)},
          {"created", made.created},
          {"weir", {{"version", "0.1.0"}, {"commit", "abcdef"}}},
          {"workload", {{"name", made.workload}, {"unit", "GFLOP/s"}}},
          {"parameters", {{"size", 4096}}},
          {"streams", made.streams},
          {"submit", "inline"},
          {"sync_mode", "per_iteration"},
          {"device", {{"name", "cuda:0"}, {"model", made.model}, {"driver", made.driver}, {"memory_bytes", 1000}}},
          {"environment",
           {{"kernel", made.kernel},
            {"cpus", 8},
            {"memory_bytes", 25234767872},
            {"load_average", "0.1"},
            {"variables", made.variables}}},
          {"work_per_iteration", 2.0},
          {"samples", {{"latency_ns", latency}, {"interval_ns", latency}}}};
}

// A folder of its own for each test.
class HistoryTest : public ::testing::Test {
 protected:
  void SetUp() override {
#if !WEIR_HAVE_SQLITE
    GTEST_SKIP() << "built without SQLite";
#endif
    std::string name = (std::filesystem::temp_directory_path() / "weir_history_XXXXXX").string();
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    folder_ = name;
    where_ = file().string();
  }
  void TearDown() override {
    std::error_code ignored;
    if (!folder_.empty()) std::filesystem::remove_all(folder_, ignored);
  }
  std::filesystem::path file(const std::string& name = "history.db") const { return folder_ / name; }
  // What --db would name.
  const std::string& where() const { return where_; }
  std::filesystem::path write(const std::string& name, const std::string& text) const {
    std::ofstream(folder_ / name, std::ios::binary) << text;
    return folder_ / name;
  }

  history::Added add(const std::vector<MadeResult>& results, const std::string& commit = "",
                     const std::string& tag = "") {
    static int number = 0;
    std::vector<std::filesystem::path> paths;
    for (const MadeResult& made : results)
      paths.push_back(write(fmt::format("made_{}.json", number++), result_json(made).dump()));
    const history::Intake intake = history::read_intake(paths);
    EXPECT_TRUE(intake.refused.empty()) << intake.refused[0];
    history::Store store(where(), history::DatabaseAccess::write);
    return store.add(intake, {tag, commit, commit.empty() ? "" : "given"});
  }
  // One entry for each value, a day apart.
  void add_series(const std::vector<double>& values, MadeResult made = {}) {
    for (std::size_t i = 0; i < values.size(); ++i) {
      made.latency_ns = values[i];
      made.created = fmt::format("2026-{:02}-{:02}T12:00:00Z", 1 + i / 28, 1 + i % 28);
      add({made}, fmt::format("c{:07}", i));
    }
  }

  std::filesystem::path folder_;
  std::string where_;
};

// The same in every engine: "sqlite", "postgresql".
class EngineTest : public HistoryTest, public ::testing::WithParamInterface<const char*> {
 protected:
  void SetUp() override {
    HistoryTest::SetUp();
    if (IsSkipped() || is_sqlite()) return;
    if (const std::string missing = history::postgres_shortfall(); !missing.empty()) GTEST_SKIP() << missing;
    if (const std::string& reason = PostgresServer::shared().reason(); !reason.empty()) GTEST_SKIP() << reason;
    where_ = PostgresServer::shared().make_database();
  }
  bool is_sqlite() const { return std::string_view(GetParam()) == "sqlite"; }
};

#define WEIR_IN_EVERY_ENGINE(tests)                                                  \
  INSTANTIATE_TEST_SUITE_P(Engine, tests, ::testing::Values("sqlite", "postgresql"), \
                           [](const auto& each) { return std::string(each.param); })

}  // namespace weir::testing
