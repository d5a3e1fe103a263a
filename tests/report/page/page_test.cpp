// The page itself: environments, ids, the order of findings and the headline; and the document inside HTML.
#include "report/page/page.h"

#include <gtest/gtest.h>

#include <set>

#include "report/page/html.h"
#include "report/page/list.h"
#include "report/page/samples.h"

namespace weir::page {
namespace {

Page empty_page() { return Page("A report", "2026-01-02T03:04:05Z", {"weir", "report"}); }

Json device(const std::string& name) { return {{"name", name}, {"model", "GPU"}, {"driver", "1.2"}}; }

TEST(Page, knows_an_environment_again_whatever_the_load) {
  Page page = empty_page();
  const auto first = page.environment(device("cuda:0"), {{"cpus", 8}, {"load_average", "0.1"}});
  EXPECT_EQ(first, page.environment(device("cuda:0"), {{"cpus", 8}, {"load_average", "9.9"}}));
  EXPECT_NE(first, page.environment(device("cuda:1"), {{"cpus", 8}}));
  EXPECT_NE(first, page.environment(device("cuda:0"), {{"cpus", 4}}));
  EXPECT_EQ(page.environment(nullptr, nullptr), std::nullopt);
  EXPECT_EQ(page.environment("cuda:0", 7), std::nullopt);
}

TEST(Page, tells_environments_of_one_device_apart_by_what_differs) {
  Page page = empty_page();
  for (const char* connections : {"8", "32", "32 "})
    page.environment(device("cuda:0"), {{"variables", {{"CUDA_DEVICE_MAX_CONNECTIONS", connections}}}});
  page.environment({{"name", "cuda:0"}, {"model", "GPU"}, {"driver", "2.0"}},
                   {{"variables", {{"CUDA_DEVICE_MAX_CONNECTIONS", "8"}}}});
  const Json document = std::move(page).document();
  std::set<std::string> labels, ids;
  for (const Json& environment : document["environments"]) {
    labels.insert(environment["label"].string());
    ids.insert(environment["id"].string());
  }
  EXPECT_EQ(labels.size(), 4u);
  EXPECT_EQ(ids.size(), 4u);
  EXPECT_TRUE(labels.contains("GPU · cuda:0"));
  EXPECT_TRUE(labels.contains("GPU · cuda:0 · CUDA_DEVICE_MAX_CONNECTIONS=32"));
  EXPECT_TRUE(labels.contains("GPU · cuda:0 · device driver 2.0"));
}

TEST(Page, gives_every_item_an_id_of_its_own) {
  Page page = empty_page();
  std::set<std::string> ids;
  for (const char* list : {"scaling", "scaling", "texts"})
    ids.insert(page.add(list, page.item(list, "same title", Page::kNoSource, std::nullopt)));
  EXPECT_EQ(ids.size(), 3u);
  EXPECT_EQ(page.item_count(), 3u);
}

TEST(Page, puts_the_worst_finding_first_and_into_the_headline) {
  Page page = empty_page();
  page.find({Tone::neutral, 9, "Known.", "", ""});
  page.find({Tone::good, 9, "Faster.", "", ""});
  page.find({Tone::warning, 9, "Noisy.", "Wait.", ""});
  page.find({Tone::bad, 0.1, "Small trouble.", "", ""});
  page.find({Tone::bad, 0.9, "Large trouble. And more of it.", "", "x-1"});
  const Json verdict = std::move(page).document()["verdict"];
  EXPECT_EQ(verdict["tone"], "bad");
  EXPECT_EQ(verdict["headline"], "Large trouble. And 1 more problem.");
  std::vector<std::string> order;
  for (const Json& finding : verdict["findings"]) order.push_back(finding["tone"].string());
  EXPECT_EQ(order, (std::vector<std::string>{"bad", "bad", "warning", "good", "neutral"}));
  EXPECT_EQ(verdict["findings"][0]["anchor"], "x-1");
  EXPECT_TRUE(verdict["findings"][0]["advice"].is_null());
}

TEST(Page, a_race_is_a_finding) {
  Page page = empty_page();
  const Json race = {{"first", {{"command", "1.9"}, {"label", "copy"}, {"stream", "stream 13"}}},
                     {"second", nullptr},
                     {"missing", "wait for the copy first"}};
  const Json found = {{"schema", "weir.race/1"}, {"races", {race}}, {"answer", "found"}};
  section_list::text(page, page.add_source("race.json", "weir.race/1", found), found);
  const Json verdict = std::move(page).document()["verdict"];
  EXPECT_EQ(verdict["headline"],
            "Nothing orders copy (1.9, stream 13) and the host, and the output depends on which comes first.");
  ASSERT_EQ(verdict["findings"].size(), 1u);
  EXPECT_EQ(verdict["findings"][0]["advice"], "wait for the copy first");
}

TEST(Page, says_over_what_it_looked_where_nothing_stands_out) {
  Page page = empty_page();
  page.add_source("a.json", "weir.result/2", testing::result_document());
  page.add_source("b.json", "weir.sweep/1", testing::sweep_document({}));
  const Json verdict = std::move(page).document()["verdict"];
  EXPECT_EQ(verdict["tone"], "neutral");
  EXPECT_EQ(verdict["headline"], "Nothing stands out in 2 files (1 result, 1 sweep).");
}

TEST(Page, takes_a_sources_facts_from_the_first_result_of_a_sweep) {
  Page page = empty_page();
  const std::size_t source =
      page.add_source("s.json", "weir.sweep/1", testing::sweep_document({testing::result_document()}));
  EXPECT_EQ(page.label_of(page.environment_of(source)), "NVIDIA H200 (simulated) · sim:h200");
  const Json document = std::move(page).document();
  EXPECT_EQ(document["sources"][0]["status"], "complete");
  EXPECT_EQ(document["sources"][0]["command_line"][1], "sweep");
}

TEST(Page, cuts_what_nobody_can_read_and_leaves_spans_whole) {
  Page page = empty_page();
  Json item = page.item("timelines", std::string(10 << 20, 'x'), Page::kNoSource, std::nullopt);
  item["groups"] = {{{"lanes", {{{"spans", std::string(10'000, 'A')}}}}}};
  page.add("timelines", item);
  page.find({Tone::bad, 0, std::string(10 << 20, 'y'), "", ""});
  page.refuse(std::string(10 << 20, 'p'), std::string(10 << 20, 'z'));
  const Json document = std::move(page).document();
  EXPECT_LT(document.dump().size(), 40'000u);
  EXPECT_TRUE(document["timelines"][0]["title"].get<std::string>().ends_with("(cut: 10485760 bytes in all)"));
  EXPECT_EQ(document["timelines"][0]["groups"][0]["lanes"][0]["spans"].get<std::string>().size(), 10'000u);
}

constexpr std::string_view kTemplate =
    "<!doctype html><title>Weir report</title><script>const p = '__WEIR_DOCUMENT__';</script>"
    "<script type=\"application/json\">__WEIR_DOCUMENT__</script><p>end</p>";

TEST(Html, holds_the_document_and_lets_nothing_out_of_it) {
  const std::string evil = "</script><script>alert(1)</script><!-- & \xe2\x80\xa8 \xff \x1b[31m";
  Json document = {{"title", evil}, {evil, {evil, 1.5, nullptr}}};
  const std::string html = html_page(kTemplate, document);
  EXPECT_TRUE(html.starts_with("<!doctype html><title>&lt;/script&gt;&lt;script&gt;alert(1)"));
  EXPECT_TRUE(html.ends_with("</script><p>end</p>"));
  const std::string begin = "<script type=\"application/json\">";
  const std::size_t from = html.find(begin) + begin.size();
  const std::string json = html.substr(from, html.rfind("</script>") - from);
  EXPECT_EQ(json.find_first_of("<>&"), std::string::npos);
  for (const char c : json) EXPECT_TRUE(c >= 0x20 && c < 0x7f) << static_cast<int>(c);
  const Json back = Json::parse(json);
  EXPECT_EQ(back["title"], "</script><script>alert(1)</script><!-- & \xe2\x80\xa8 \xef\xbf\xbd \x1b[31m");
  EXPECT_NE(html.find("const p = '__WEIR_DOCUMENT__'"), std::string::npos) << "the script's own word must stay";
}

TEST(Html, fails_on_a_template_without_a_place) { EXPECT_ANY_THROW(html_page("<html></html>", Json::object())); }

}  // namespace
}  // namespace weir::page
