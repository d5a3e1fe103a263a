// What the text of weir channel says: who wins, two modes, what failed and what cannot be run; within 80 columns.
#include <gtest/gtest.h>

#include <sstream>

#include "lab/channels/channel_document.h"
#include "report/text/documents.h"
#include "run/channel_testing.h"
#include "support/text.h"

namespace weir::testing {
namespace {

using channel_bench::Unit;

ChannelReport full_report() {
  ChannelReport report;
  std::vector<double> bistable(10, 17e6);
  bistable.resize(20, 51e6);
  report.run = channel_run({
      channel_result("ping_pong/one_line/floor", {{200}, {210}}),
      channel_result("round_trip/one_line/spsc", {{240}, {252}}),
      channel_result("round_trip/one_line/boost_spsc", {{480}, {490}}),
      channel_result("throughput/batch/1000/spsc", {bistable, bistable}, Unit::per_second),
      channel_result("throughput/batch/1000/mutex_deque", {{60e6}, {61e6}}, Unit::per_second),
      channel_result("throughput/batch/10000/with_a_name_that_is_far_too_long_for_a_table", {{1e6}}, Unit::per_second),
      channel_result("kernel_latency/copy/spsc", {}),
      channel_result("kernel_latency/copy/mpsc", {}),
      channel_result("contention/4x250/mpsc", {{1e5}}),
  });
  auto& results = report.run.results;
  results[1].target = channel_bench::Target{5000, "round trip < 5 us"};
  results[3].target = channel_bench::Target{1e9, "> 1 G/s"};
  results[6].unavailable = results[7].unavailable = "there is no GPU here";
  results[8].measurements[0].found.failure = "did not end within 20 s";
  for (const char* group : {"ping_pong", "round_trip", "throughput", "kernel_latency", "contention"})
    report.groups.push_back({group, "what it is about", ""});
  report.capacity_asked = 1024;
  report.warnings.push_back({"busy_machine", "The load was 9.9.", "Wait."});
  return report;
}

TEST(ChannelReportText, SaysWhoWinsAndWhatIsMissing) {
  const std::string text = report_text(channel_report(channel_document(full_report(), {})));
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 80u) << line;
  for (const char* part : {"6 benchmarks measured, 1 failed, 2 cannot be run here", "1.20x", "0.51x",
                           "batch/1000/spsc has two modes: 17.0 M/s (50 % of the samples) and 51.0 M/s",
                           "mutex_deque is", "faster than spsc here", "4x250/mpsc failed: did not end within 20 s",
                           "not measured (there is no GPU here): copy/spsc, copy/mpsc", "round trip < 5 us", "pass",
                           "FAIL", "The load was 9.9. Wait."}) {
    // Lines are broken anywhere.
    std::string flat;
    for (const char c : text)
      if (c != '\n')
        flat += c;
      else if (!flat.ends_with(' '))
        flat += ' ';
    while (has(flat, "  ")) flat.erase(flat.find("  "), 1);
    EXPECT_TRUE(has(flat, part)) << part << "\n" << text;
  }
  EXPECT_TRUE(has(report_markdown(channel_report(channel_document(full_report(), {}))), "## Targets: "));
}

TEST(ChannelReportText, ShowsWhatTheRequirementsPromise) {
  ChannelReport report;
  report.run = channel_run({
      channel_result("send_latency/small/spsc", {{8}, {9}}),
      channel_result("send_latency/small/boost_spsc", {{8}, {9}}),
      channel_result("send_latency/small/mutex_deque", {{34}, {34}}),
      channel_result("payload_clone/1KB/payload", {{13}}),
      channel_result("payload_clone/1MB/payload", {{13}}),
  });
  for (const char* group : {"send_latency", "payload_clone"}) report.groups.push_back({group, "what it is about", ""});
  const Json document = channel_document(report, {});
  const std::string text = report_text(channel_report(document));
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 80u) << line;
  for (const char* part : {"against mutex", "send latency", "4.00x", "5x", "FAIL",
                           "pass: channels beat the mutex: the mutex is faster in 0 of 1",
                           "pass: a clone costs the same at any size: 13.0 ns to 13.0 ns"})
    EXPECT_TRUE(has(text, part)) << part << "\n" << text;
  EXPECT_TRUE(has(report_markdown(channel_report(document)), "## Criteria"))
      << report_markdown(channel_report(document));
  EXPECT_DOUBLE_EQ(document["benchmarks"][0]["mutex"]["speedup"].get<double>(), 4);
  EXPECT_EQ(document["factors"][0]["is_met"], false);
}

TEST(ChannelReportText, TellsAComparison) {
  ChannelReport report = full_report();
  ChannelRun before = report.run;
  for (ChannelMeasurement& measurement : before.results[1].measurements)
    for (double& sample : measurement.found.samples) sample /= 2;
  report.comparison = compare_channels(before, "main", report.run);
  const std::string text = report_text(channel_report(channel_document(report, {})));
  EXPECT_TRUE(has(text, "Against the baseline 'main'")) << text;
  EXPECT_TRUE(has(text, "+100.0 %")) << text;
  EXPECT_TRUE(has(text, "failed: did not end within 20 s (1 benchmark)")) << text;
}

TEST(ChannelReportText, TakesAnyDocument) {
  for (const char* text : {"{}", "[]",
                           R"({"benchmarks":[1,null,{}],"groups":[{}],"comparison":{"changes":[{}]},)"
                           R"("calibration":{"groups":[3]},"warnings":[{}],"mutex_wins":[7]})"})
    EXPECT_FALSE(report_text(channel_report(parse_json(text, "x"))).empty());
}

}  // namespace
}  // namespace weir::testing
