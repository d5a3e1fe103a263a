// The metrics' text against the grammar of OpenMetrics 1.0, by the checker that all our metrics have to pass.
#include "lab/watch/openmetrics.h"

#include <gtest/gtest.h>

#include <string>

#include "lab/watch/hand_made.h"
#include "support/openmetrics_check.h"

namespace weir::watch {
namespace {

using weir::testing::check_openmetrics;
using weir::testing::Exposition;
using weir::testing::MetricPoint;

TEST(OpenMetricsChecker, finds_what_is_wrong) {
  const std::string begin = "# TYPE a_b gauge\n";
  EXPECT_NO_THROW(check_openmetrics(begin + "a_b{x=\"1\\\"\\\\\\n\"} 2\n# EOF\n"));
  for (const char* bad :
       {"a_b 2\n", "a_b{x=\"1\"} 2\na_b{x=\"1\"} 3\n# EOF\n", "a_c 2\n# EOF\n", "a_b{x=\"\\q\"} 2\n# EOF\n",
        "a_b{x=\"1} 2\n# EOF\n", "a_b 2 \n# EOF\n", "# UNIT a_b bytes\na_b 2\n# EOF\n", "\na_b 2\n# EOF\n",
        "# TYPE a_b gauge\n# EOF\n", "a_b x\n# EOF\n", "a_b NaN\n# EOF\n", "a_b +Inf\n# EOF\n",
        "a_b 1 1600000000\n# EOF\n", "a_b{1=\"2\"} 2\n# EOF\n"})
    EXPECT_ANY_THROW(check_openmetrics(begin + bad)) << bad;
  EXPECT_ANY_THROW(check_openmetrics("# TYPE a info\na_info 1\n# EOF\n")) << "node_exporter refuses it";
  EXPECT_ANY_THROW(check_openmetrics("# TYPE c counter\nc 2\n# EOF\n"));
}

TEST(OpenMetrics, what_is_known_is_there_and_nothing_else) {
  const Exposition read = check_openmetrics(metrics_text(testing::kfd_sample()));
  const std::string busy = "f7bc/4000/compute/1000", saved = "f7bc/4000/compute/2000", dark = "f7bc/4001/compute/3000";
  ASSERT_NE(read.find("weir_watch_queue_backlog_packets", {{"queue", busy}}), nullptr);
  EXPECT_EQ(read.find("weir_watch_queue_backlog_packets", {{"queue", busy}})->value, 12);
  EXPECT_EQ(read.find("weir_watch_queue_backlog_packets", {{"queue", busy}})->labels.at("pid"), "4000");
  EXPECT_EQ(read.find("weir_watch_queue_backlog_packets", {{"queue", saved}})->value, 0);
  EXPECT_EQ(read.find("weir_watch_queue_active", {{"queue", saved}})->value, 0);
  EXPECT_EQ(read.find("weir_watch_queue_preempted", {{"queue", saved}})->value, 1);
  EXPECT_EQ(read.find("weir_watch_queue_packets_total", {{"queue", busy}})->value, 634);
  EXPECT_EQ(read.find("weir_watch_samples_total")->value, 7);
  for (const MetricPoint& point : read.points)
    if (point.labels.contains("queue")) {
      EXPECT_NE(point.labels.at("queue"), dark) << point.name;
    }
  EXPECT_FALSE(read.types.contains("weir_watch_queue_streams"));
  EXPECT_EQ(read.units.at("weir_watch_window_seconds"), "seconds");
}

TEST(OpenMetrics, facts_are_gauges_with_their_unit) {
  Sample sample = testing::many_rows(2);
  sample.facts = {{"power", "watts", "Of the whole device.", known(312.5)},
                  {"utilisation", "ratio", "Lately.", unknown("no sensor")}};
  const Exposition read = check_openmetrics(metrics_text(sample));
  EXPECT_EQ(read.find("weir_watch_device_power_watts")->value, 312.5);
  EXPECT_EQ(read.units.at("weir_watch_device_power_watts"), "watts");
  EXPECT_EQ(read.find("weir_watch_device_utilisation_ratio"), nullptr);
}

TEST(OpenMetrics, labels_are_escaped_and_come_back) {
  Sample sample = testing::many_rows(3);
  sample.rows[0].key = "a\"b\\c\nd";
  sample.rows[1].key = "\x1b[31m\t";
  sample.rows[2].key = "\xc3\xa4 \xff \xed\xa0\x80 \xf0\x9f\x98\x80 \xe2\x82";
  const Exposition read = check_openmetrics(metrics_text(sample));
  EXPECT_NE(read.find("weir_watch_queue_active", {{"queue", "a\"b\\c\nd"}}), nullptr);
  EXPECT_NE(read.find("weir_watch_queue_active", {{"queue", "?[31m?"}}), nullptr);
  const std::string mark = "?";
  EXPECT_NE(read.find("weir_watch_queue_active",
                      {{"queue", "\xc3\xa4 " + mark + " " + mark + mark + mark + " \xf0\x9f\x98\x80 " + mark + mark}}),
            nullptr);
}

TEST(OpenMetrics, a_source_without_queues_says_0_and_one_that_cannot_see_says_nothing) {
  EXPECT_EQ(check_openmetrics(metrics_text(Sample{})).find("weir_watch_queues")->value, 0);
  Sample blind;
  blind.missing.push_back({"hqds", "/x", "permission denied", "Run as root."});
  EXPECT_EQ(check_openmetrics(metrics_text(blind)).find("weir_watch_queues"), nullptr);
}

TEST(OpenMetrics, begins_as_files_of_a_watch_do) { EXPECT_TRUE(metrics_text(Sample{}).starts_with(kMetricsBegin)); }

}  // namespace
}  // namespace weir::watch
