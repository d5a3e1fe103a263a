#include <gtest/gtest.h>

#include "report/text/documents.h"
#include "support/text.h"

namespace weir {
namespace {

// What a trend of two runs on either side of a change looks like; fields that a test does not look at are left out.
Json trend() {
  return Json::parse(R"({
    "schema": "weir.history/2", "kind": "trend", "file": "h.db", "selection": {"workload": "moe"},
    "machines": [{"id": "0123456789ab", "label": "H200, cuda:0", "differs_from_first": []}],
    "series": [{"title": "moe, 8 streams", "machine": "0123456789ab", "metric": "latency", "unit": "ns",
      "points": [{"at": "2026-03-01T12:00:00Z", "commit": "aaaaaaaaaaaaaaaa", "tag": null, "p50": 1000000, "interval": [990000, 1010000], "count": 9},
                 {"at": "2026-03-02T12:00:00Z", "commit": "bbbbbbbbbbbbbbbb", "tag": "nightly", "p50": 1081000, "interval": null, "count": 9}],
      "failed": [],
      "changes": [{"index": 1, "ratio": 1.081, "p": 0.001, "verdict": "slower", "before": {"p50": 1000000}, "after": {"p50": 1081000},
        "last_before": {"at": "", "commit": "aaaaaaaaaaaaaaaa", "entry": 1}, "first_after": {"at": "", "commit": "bbbbbbbbbbbbbbbb", "entry": 2},
        "explanations": [{"fact": "kernel", "before": "Linux 6.1", "after": "Linux 6.18"}]}],
      "changes_reason": null, "drift": null, "notes": []}],
    "gate": null})");
}

TEST(HistoryText, a_change_names_its_commits_and_what_changed_with_it) {
  const std::string text = report_text(history_report(trend()));
  EXPECT_TRUE(has(text, "Slower by 8.1 % between aaaaaaaaaa and bbbbbbbbbb: 1.00 ms to 1.08 ms")) << text;
  EXPECT_TRUE(has(text, "kernel from Linux 6.1")) << text;
  EXPECT_TRUE(has(text, "+-1.0 %")) << text;
  EXPECT_TRUE(has(report_markdown(history_report(trend())), "slower by 8.1 %"));
}

TEST(HistoryText, without_commits_entries_are_named) {
  Json document = trend();
  document["series"][0]["changes"][0]["last_before"]["commit"] = nullptr;
  EXPECT_TRUE(has(report_text(history_report(document)), "between entries 1 and 2"))
      << report_text(history_report(document));
  document = trend();
  document["series"][0]["changes"][0]["first_after"]["commit"] = "aaaaaaaaaaaaaaaa";
  EXPECT_TRUE(has(report_text(history_report(document)), "both at aaaaaaaaaa"))
      << report_text(history_report(document));
}

TEST(HistoryText, long_series_show_their_end_unless_told_otherwise) {
  Json document = trend();
  Json& points = document["series"][0]["points"];
  while (points.size() < 50) points.push_back(points[0]);
  EXPECT_TRUE(has(report_text(history_report(document)), "30 runs before, which --full shows"));
  EXPECT_FALSE(has(report_text(history_report(document, true)), "--full"));
}

TEST(HistoryText, fields_that_are_missing_do_no_harm) {
  for (const char* kind : {"add", "list", "show", "trend"}) {
    EXPECT_FALSE(report_text(history_report(Json{{"kind", kind}})).empty());
    EXPECT_FALSE(
        report_text(history_report(
                        Json{{"kind", kind}, {"entries", 5}, {"machines", {1, "x"}}, {"series", {1}}, {"points", {2}}}))
            .empty());
  }
}

}  // namespace
}  // namespace weir
