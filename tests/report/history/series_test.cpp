#include "report/history/series.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "report/history/document.h"
#include "report/history/items.h"
#include "report/history/made.h"

namespace weir::history {
namespace {

using testing::HistoryTest;
using testing::MadeResult;
using SeriesOfHistory = HistoryTest;

const std::vector<double> kSlower = {1000, 1004, 996, 1001, 999, 1082, 1079, 1085, 1080};

HistorySelection of(const std::string& workload) {
  HistorySelection selection;
  selection.workload = workload;
  return selection;
}

TEST_F(SeriesOfHistory, a_change_has_its_commits) {
  add_series(kSlower);
  Store store(file(), DatabaseAccess::read);
  TrendOptions options;
  options.selection = of("hetero_kernels");
  const Json trend = trend_document(store, options);
  ASSERT_EQ(trend["series"].size(), 1U);
  const Json& changes = trend["series"][0]["changes"];
  ASSERT_EQ(changes.size(), 1U);
  EXPECT_EQ(changes[0]["index"], 5);
  EXPECT_EQ(changes[0]["verdict"], "slower");
  EXPECT_NEAR(changes[0]["ratio"].get<double>(), 1.081, 0.001);
  EXPECT_EQ(changes[0]["last_before"]["commit"], "c0000004");
  EXPECT_EQ(changes[0]["first_after"]["commit"], "c0000005");
  EXPECT_EQ(gate_code(trend), 0);
}

TEST_F(SeriesOfHistory, throughput_is_better_when_it_is_more) {
  add_series(kSlower);
  Store store(file(), DatabaseAccess::read);
  HistorySelection selection = of("hetero_kernels");
  selection.metric = "throughput";
  const auto series = make_series(store, selection);
  ASSERT_EQ(series.size(), 1U);
  EXPECT_FALSE(series[0].is_less_better);
  ASSERT_EQ(series[0].judged.changes.size(), 1U);
  EXPECT_LT(series[0].judged.changes[0].ratio, 1);
  EXPECT_TRUE(series[0].is_worse(series[0].judged.changes[0]));
  selection.metric = "beauty";
  EXPECT_THROW(make_series(store, selection), Error);
}

TEST_F(SeriesOfHistory, machines_are_never_mixed) {
  MadeResult fast, slow;
  slow.driver = "580.2";
  add_series({1000, 1001, 1002, 1003, 1004}, fast);
  for (int i = 0; i < 5; ++i) {
    slow.latency_ns = 2000 + i;
    slow.created = fmt::format("2026-03-0{}T00:00:00Z", i + 1);
    add({slow});
  }
  Store store(file(), DatabaseAccess::read);
  TrendOptions options;
  options.selection = of("hetero_kernels");
  const Json trend = trend_document(store, options);
  ASSERT_EQ(trend["series"].size(), 2U);
  for (const Json& series : trend["series"]) {
    EXPECT_EQ(series["points"].size(), 5U);
    EXPECT_TRUE(series["changes"].empty());
  }
  ASSERT_EQ(trend["machines"].size(), 2U);
  EXPECT_TRUE(trend["machines"][0]["differs_from_first"].empty());
  ASSERT_EQ(trend["machines"][1]["differs_from_first"].size(), 1U);
  EXPECT_EQ(trend["machines"][1]["differs_from_first"][0]["fact"], "device.driver");
  options.selection.machine = trend["machines"][1]["id"].string();
  EXPECT_EQ(trend_document(store, options)["series"].size(), 1U);
}

TEST_F(SeriesOfHistory, configurations_are_series_of_their_own_and_titles_tell_them_apart) {
  MadeResult four;
  four.streams = 4;
  add({{}, four});
  Store store(file(), DatabaseAccess::read);
  const auto series = make_series(store, of("hetero_kernels"));
  ASSERT_EQ(series.size(), 2U);
  EXPECT_EQ(series[0].title, "hetero_kernels, 4 streams");
  EXPECT_EQ(series[1].title, "hetero_kernels, 8 streams");
  HistorySelection one = of("hetero_kernels");
  one.key["streams"] = "4";
  EXPECT_EQ(make_series(store, one).size(), 1U);
}

TEST_F(SeriesOfHistory, kernel_versions_annotate_a_change) {
  MadeResult made;
  for (std::size_t i = 0; i < kSlower.size(); ++i) {
    made.latency_ns = kSlower[i];
    made.kernel = i < 5 ? "Linux 6.1" : "Linux 6.18";
    made.created = fmt::format("2026-01-{:02}T12:00:00Z", i + 1);
    add({made});
  }
  Store store(file(), DatabaseAccess::read);
  TrendOptions options;
  options.selection = of("hetero_kernels");
  const Json trend = trend_document(store, options);
  ASSERT_EQ(trend["series"].size(), 1U);
  const Json& facts = trend["series"][0]["changes"][0]["explanations"];
  ASSERT_EQ(facts.size(), 1U);
  EXPECT_EQ(facts[0]["fact"], "kernel");
  EXPECT_EQ(facts[0]["after"], "Linux 6.18");
}

TEST_F(SeriesOfHistory, the_gate_looks_at_the_last_change_only_and_only_while_it_is_recent) {
  add_series(kSlower);
  TrendOptions options;
  options.selection = of("hetero_kernels");
  options.is_gate = true;
  {
    Store store(file(), DatabaseAccess::read);
    EXPECT_EQ(gate_code(trend_document(store, options)), 3);
    options.within = 3;  // it was four runs ago
    EXPECT_EQ(gate_code(trend_document(store, options)), 0);
  }
  options.within = 10;
  MadeResult made;
  for (int i = 0; i < 6; ++i) {  // and it got better again
    made.latency_ns = 1000 + i;
    made.created = fmt::format("2026-05-0{}T00:00:00Z", i + 1);
    add({made});
  }
  Store store(file(), DatabaseAccess::read);
  const Json trend = trend_document(store, options);
  EXPECT_EQ(trend["series"][0]["changes"].size(), 2U);
  EXPECT_EQ(gate_code(trend), 0);
}

TEST_F(SeriesOfHistory, failed_runs_are_kept_apart_and_the_newest_fails_the_gate) {
  add_series({1000, 1001, 1002, 1003, 1004, 1005, 1006});
  MadeResult failed;
  failed.failure = "device lost";
  failed.created = "2026-06-01T00:00:00Z";
  add({failed});
  TrendOptions options;
  options.selection = of("hetero_kernels");
  options.is_gate = true;
  {
    Store store(file(), DatabaseAccess::read);
    const Json trend = trend_document(store, options);
    EXPECT_EQ(trend["series"][0]["points"].size(), 7U);
    ASSERT_EQ(trend["series"][0]["failed"].size(), 1U);
    EXPECT_EQ(trend["series"][0]["failed"][0]["reason"], "the run failed: device lost");
    EXPECT_EQ(gate_code(trend), 3);
  }
  MadeResult fine;
  fine.created = "2026-06-02T00:00:00Z";
  add({fine});
  Store store(file(), DatabaseAccess::read);
  EXPECT_EQ(gate_code(trend_document(store, options)), 0);
}

TEST_F(SeriesOfHistory, a_selection_that_nothing_fits_says_what_there_is) {
  add({{}});
  Store store(file(), DatabaseAccess::read);
  TrendOptions options;
  options.selection = of("nothing");
  try {
    trend_document(store, options);
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(error.hint.find("hetero_kernels"), std::string::npos);
  }
}

TEST_F(SeriesOfHistory, items_are_what_the_page_asks_for) {
  add_series(kSlower);
  MadeResult other;
  other.workload = "moe";
  add({other});
  const std::vector<Json> items = history_items(file());
  ASSERT_EQ(items.size(), 2U);
  const Json& first = items[0];  // the one that changed
  EXPECT_EQ(first["workload"], "hetero_kernels");
  EXPECT_EQ(first["metric"], "latency");
  EXPECT_EQ(first["unit"], "ns");
  EXPECT_EQ(first["is_less_better"], true);
  EXPECT_EQ(first["device"]["model"], "NVIDIA H200");
  EXPECT_TRUE(first["environment"].is_object());
  ASSERT_EQ(first["points"].size(), kSlower.size());
  EXPECT_EQ(first["points"][0]["commit"], "c0000000");
  EXPECT_TRUE(first["points"][0]["tag"].is_null());
  EXPECT_EQ(first["points"][0]["interval"].size(), 2U);
  ASSERT_EQ(first["changes"].size(), 1U);
  EXPECT_EQ(first["changes"][0]["verdict"], "slower");
  EXPECT_EQ(history_items(file(), of("moe")).size(), 1U);
  EXPECT_TRUE(history_items(file(), of("nothing")).empty());
  EXPECT_THROW(history_items(file("none.db")), Error);
}

TEST_F(SeriesOfHistory, csv_has_a_row_for_each_point_and_no_formulas) {
  MadeResult made;
  made.workload = "=cmd|'/C calc'!A0";
  add({{}, made}, "abc", "a,\"b\"");
  Store store(file(), DatabaseAccess::read);
  const std::string csv = points_csv(store, {});
  EXPECT_EQ(std::count(csv.begin(), csv.end(), '\n'), 3);
  EXPECT_NE(csv.find(",'=cmd|'/C calc'!A0,"), std::string::npos) << csv;
  EXPECT_NE(csv.find("\"a,\"\"b\"\"\""), std::string::npos) << csv;
}

}  // namespace
}  // namespace weir::history
